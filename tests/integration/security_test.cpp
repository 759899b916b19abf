// The real manager with TLS, tokens and certificates: who gets in, who does not, and what the logs say of it.
#include <csignal>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/tls/client_context.h"
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Security : public Fabric {
  protected:
    void SetUp() override {
        ok({MEMTIDE_FABRIC_MANAGER, "certs", "init", certs(), "--server", "127.0.0.1", "--agent", "host0",
            "--agent", "host1"});
    }
    std::string certs(const std::string& name = {}) {
        return folder_.file("certs") + (name.empty() ? "" : "/" + name);
    }
    static process::Output run(std::vector<std::string> argv) {
        process::Command command;
        command.argv = std::move(argv);
        auto output = process::run(command, std::chrono::seconds(60));
        if (!output) throw std::runtime_error(output.error().message);
        return *output;
    }
    // What it printed.
    static std::string ok(std::vector<std::string> argv) {
        const process::Output output = run(std::move(argv));
        EXPECT_EQ(output.exit.code, 0) << output.standard_error;
        return output.standard_output;
    }
    // A file with a new token.
    std::string token(const std::string& name, std::vector<std::string> options) {
        std::vector<std::string> argv{MEMTIDE_FABRIC_MANAGER, "token", "create",           "--tokens",
                                      folder_.file("tokens"), "--out", folder_.file(name), "--role"};
        argv.insert(argv.end(), options.begin(), options.end());
        ok(std::move(argv));
        return folder_.file(name);
    }
    void run_secured(const std::string& more = {}) {
        ManagerOptions options;
        options.timing = kQuickTiming;
        options.more = fmt::format(
            "tls: {{certificate: {}, key: {}, client_ca: {}, revoked: {}}}\n"
            "authentication: {{requests_per_second: 0}}\n{}",
            certs("server.pem"), certs("server.key"), certs("ca.pem"), certs("crl.pem"), more);
        ok({MEMTIDE_FABRIC_MANAGER, "certs", "revoke", certs()});
        run_manager(options);
        url_ = fmt::format("https://127.0.0.1:{}", tcp_port(*manager_));
    }
    http::CredentialFiles files(const std::string& token_file = {}, const std::string& certificate = {}) {
        http::CredentialFiles result;
        result.tls.ca = certs("ca.pem");
        result.token_file = token_file;
        if (certificate.empty()) return result;
        result.tls.certificate = certs(certificate + ".pem");
        result.tls.key = certs(certificate + ".key");
        return result;
    }
    RestClient client(const http::CredentialFiles& given) {
        return RestClient(url_, *http::Credentials::load(given));
    }
    std::string secret_in(const std::string& file) {
        const std::string text = read_file(file);
        return text.substr(14, 64);
    }
    std::string url_;
};

TEST_F(Security, TheWholePathRunsWithCertificatesAndTokens) {
    run_switch();
    run_secured();
    for (const char* host : {"host0", "host1"})
        agents_.push_back(
            std::make_unique<FakeAgent>(background_.executor(), url_, host, FakeAgent::obedient(),
                                        *http::Credentials::load(files({}, std::string("agent-") + host))));
    const std::string file = token("operator", {"operator"});
    // The CLI, as people use it.
    const auto memtide = [&](std::vector<std::string> words) {
        std::vector<std::string> argv{MEMTIDE_CLI,     "--url",        url_, "--ca",
                                      certs("ca.pem"), "--token-file", file, "--json"};
        argv.insert(argv.end(), words.begin(), words.end());
        return run(argv);
    };
    EXPECT_TRUE(eventually([&] { return memtide({"pool"}).exit.code == 0; }));
    EXPECT_TRUE(eventually(
        [&] { return boost::json::parse(memtide({"pool"}).standard_output).at("capacity").as_int64() > 0; }));
    const process::Output composed = memtide({"compose", "host0", "256MiB"});
    EXPECT_EQ(composed.exit.code, 0) << composed.standard_error;
    const std::string id = text(boost::json::parse(composed.standard_output), "id");
    EXPECT_EQ(memtide({"release", id}).exit.code, 0);
}

TEST_F(Security, TheCliSaysWhatIsMissing) {
    run_secured();
    const auto pool = [&](std::vector<std::string> options) {
        std::vector<std::string> argv{MEMTIDE_CLI, "--url", url_};
        argv.insert(argv.end(), options.begin(), options.end());
        argv.emplace_back("pool");
        const process::Output output = run(argv);
        EXPECT_EQ(output.exit.code, 1);
        return output.standard_error;
    };
    EXPECT_THAT(pool({}), HasSubstr("was not issued by a CA in the system's CAs"));
    EXPECT_THAT(pool({"--ca", certs("ca.pem")}), HasSubstr("--token-file"));
    EXPECT_THAT(pool({"--ca", folder_.file("none.pem")}),
                AllOf(HasSubstr("none.pem"), HasSubstr("No such file")));
    const std::string viewer = token("tenant", {"tenant", "--tenant", "blue"});
    EXPECT_THAT(pool({"--ca", certs("ca.pem"), "--token-file", viewer}),
                HasSubstr("lacks the privilege read-fabric"));
}

TEST_F(Security, AnAgentMayOnlySpeakForItsOwnHost) {
    run_secured();
    RestClient agent = client(files({}, "agent-host0"));
    EXPECT_EQ(agent.get("/v1/hosts/host0/desired?timeout=0s").status, 200U);
    EXPECT_EQ(agent.send_json("PUT", "/v1/hosts/host0/observed", R"({"boot_id":"b"})").status, 204U);
    EXPECT_EQ(agent.get("/v1/hosts/host1/desired").status, 403U);
    EXPECT_EQ(agent.send_json("PUT", "/v1/hosts/host1/observed", R"({"boot_id":"b"})").status, 403U);
    EXPECT_EQ(agent.get("/v1/pool").status, 403U);
    RestClient by_token = client(files(token("agent", {"agent", "--host", "host1"})));
    EXPECT_EQ(by_token.get("/v1/hosts/host1/desired?timeout=0s").status, 200U);
    EXPECT_EQ(by_token.get("/v1/hosts/host0/desired").status, 403U);
    EXPECT_THAT(read_file(folder_.file("audit.log")), HasSubstr("another host's"));
}

TEST_F(Security, AForgedCertificateIsRefusedAndAudited) {
    run_secured();
    ok({MEMTIDE_FABRIC_MANAGER, "certs", "init", folder_.file("forged"), "--agent", "host0"});
    http::CredentialFiles forged = files();
    forged.tls.certificate = folder_.file("forged/agent-host0.pem");
    forged.tls.key = folder_.file("forged/agent-host0.key");
    const RestAnswer answer = client(forged).get("/v1/hosts/host0/desired?timeout=0s");
    EXPECT_EQ(answer.status, 0U);
    EXPECT_THAT(answer.body, HasSubstr("did not accept the client certificate"));
    EXPECT_TRUE(eventually([&] {
        return read_file(folder_.file("audit.log")).find("TLS: certificate verify failed") !=
               std::string::npos;
    }));
}

TEST_F(Security, ARevokedCertificateIsRefusedWithoutARestart) {
    run_secured();
    RestClient agent = client(files({}, "agent-host0"));
    EXPECT_EQ(agent.get("/v1/hosts/host0/desired?timeout=0s").status, 200U);
    std::filesystem::copy_file(certs("agent-host0.pem"), certs("kept.pem"));
    std::filesystem::copy_file(certs("agent-host0.key"), certs("kept.key"));
    ok({MEMTIDE_FABRIC_MANAGER, "certs", "revoke", certs(), "host0"});
    EXPECT_TRUE(eventually([&] { return client(files({}, "kept")).get("/healthz").status == 0; }));
    // The connection that there was ends after its next answer.
    EXPECT_TRUE(eventually([&] { return agent.get("/healthz").status == 0; }));
}

TEST_F(Security, ACertificateThatWasReplacedIsRevokedWithTheOthersOfItsName) {
    run_secured();
    for (const char* end : {".pem", ".key"})
        std::filesystem::copy_file(certs(std::string("agent-host0") + end), certs(std::string("old") + end));
    ok({MEMTIDE_FABRIC_MANAGER, "certs", "issue", certs(), "--agent", "host0"});
    for (const char* end : {".pem", ".key"})
        std::filesystem::copy_file(certs(std::string("agent-host0") + end), certs(std::string("new") + end));
    const http::CredentialFiles old = files({}, "old");
    const http::CredentialFiles current = files({}, "new");
    const std::string desired = "/v1/hosts/host0/desired?timeout=0s";
    EXPECT_EQ(client(old).get(desired).status, 200U);
    EXPECT_EQ(client(current).get(desired).status, 200U);
    EXPECT_THAT(ok({MEMTIDE_FABRIC_MANAGER, "certs", "list", certs()}),
                AllOf(HasSubstr("replaced"), HasSubstr("in use"), Not(HasSubstr("revoked"))));
    ok({MEMTIDE_FABRIC_MANAGER, "certs", "revoke", certs(), "host0"});
    const auto refused = [&](const http::CredentialFiles& given) {
        return client(given).get("/healthz").status == 0;  // the handshake fails
    };
    EXPECT_TRUE(eventually([&] { return refused(old) && refused(current); }));
    EXPECT_EQ(client(files({}, "agent-host1")).get("/v1/hosts/host1/desired?timeout=0s").status, 200U);
    // Once more does no harm, and a new one is as good as any.
    ok({MEMTIDE_FABRIC_MANAGER, "certs", "revoke", certs(), "host0"});
    ok({MEMTIDE_FABRIC_MANAGER, "certs", "issue", certs(), "--agent", "host0"});
    EXPECT_TRUE(eventually([&] { return client(files({}, "agent-host0")).get(desired).status == 200U; }));
    EXPECT_TRUE(refused(old));
    const process::Output unknown = run({MEMTIDE_FABRIC_MANAGER, "certs", "revoke", certs(), "host9"});
    EXPECT_EQ(unknown.exit.code, 1);
    EXPECT_THAT(unknown.standard_error, AllOf(HasSubstr("host9"), HasSubstr("did you mean")));
}

TEST_F(Security, TokensComeAndGoWhileTheManagerRuns) {
    run_secured();
    const std::string file = token("viewer", {"viewer"});
    RestClient viewer = client(files(file));
    EXPECT_TRUE(eventually([&] { return viewer.get("/v1/hosts").status == 200; }));
    const std::string id = read_file(file).substr(3, 10);
    EXPECT_THAT(ok({MEMTIDE_FABRIC_MANAGER, "token", "list", "--tokens", folder_.file("tokens")}),
                AllOf(HasSubstr(id), HasSubstr("viewer"), Not(HasSubstr(secret_in(file)))));
    ok({MEMTIDE_FABRIC_MANAGER, "token", "revoke", "--config", folder_.file("manager.yaml"), id});
    EXPECT_TRUE(eventually([&] { return viewer.get("/v1/hosts").status == 401; }));
    EXPECT_EQ(
        run({MEMTIDE_FABRIC_MANAGER, "token", "revoke", "--tokens", folder_.file("tokens"), id}).exit.code,
        1);
}

TEST_F(Security, TokensThatCannotBeReadAgainAreAReasonOfReadyz) {
    run_secured();
    const std::string viewer = token("viewer", {"viewer"});
    ASSERT_TRUE(eventually([&] { return client(files(viewer)).get("/v1/pool").status == 200U; }));
    std::filesystem::permissions(folder_.file("tokens"), std::filesystem::perms(0644));
    EXPECT_TRUE(eventually([&] {
        return boost::json::serialize(client(files(viewer)).get("/readyz").json)
                   .find("tokens cannot be read") != std::string::npos;
    }));
    std::filesystem::permissions(folder_.file("tokens"), std::filesystem::perms(0600));
    EXPECT_TRUE(eventually([&] {
        return boost::json::serialize(client(files(viewer)).get("/readyz").json)
                   .find("tokens cannot be read") == std::string::npos;
    }));
}

TEST_F(Security, AnExpiredTokenIsRefused) {
    run_secured();
    RestClient brief = client(files(token("brief", {"viewer", "--expires", "1ms"})));
    EXPECT_TRUE(eventually([&] { return brief.get("/v1/hosts").body.find("expired") != std::string::npos; }));
}

TEST_F(Security, TokenCreateExplainsWhatDoesNotGoTogether) {
    const auto mistake = [&](std::vector<std::string> options) {
        std::vector<std::string> argv{MEMTIDE_FABRIC_MANAGER, "token", "create", "--tokens",
                                      folder_.file("tokens")};
        argv.insert(argv.end(), options.begin(), options.end());
        const process::Output output = run(argv);
        EXPECT_EQ(output.exit.code, 2);
        EXPECT_EQ(output.standard_output, "");
        return output.standard_error;
    };
    EXPECT_THAT(mistake({"--role", "king"}), HasSubstr("--role must be"));
    EXPECT_THAT(mistake({"--role", "tenant"}), HasSubstr("--tenant is needed"));
    EXPECT_THAT(mistake({"--role", "agent"}), HasSubstr("--host is needed"));
    EXPECT_THAT(mistake({"--role", "admin", "--host", "host0"}), HasSubstr("--host makes no sense"));
    EXPECT_THAT(mistake({"--role", "admin", "--expires", "soon"}), HasSubstr("duration"));
    EXPECT_THAT(mistake({"--role", "opertor"}), HasSubstr("\"opertor\"; did you mean \"operator\"?"));
    EXPECT_FALSE(std::filesystem::exists(folder_.file("tokens")));
}

TEST_F(Security, ATokenOfSomebodyWhomTheConfigurationLacksIsRefused) {
    ManagerOptions options;
    options.more = "authentication: {}\ntenants: [{name: blue}]\n";
    write_file(folder_.file("named.yaml"), manager_yaml(folder_, options));
    const auto create = [&](std::vector<std::string> more) {
        std::vector<std::string> argv{MEMTIDE_FABRIC_MANAGER,     "token", "create", "--config",
                                      folder_.file("named.yaml"), "--role"};
        argv.insert(argv.end(), more.begin(), more.end());
        return run(argv);
    };
    const process::Output tenant = create({"tenant", "--tenant", "bleu"});
    EXPECT_EQ(tenant.exit.code, 2);
    EXPECT_THAT(tenant.standard_error, HasSubstr("no tenant \"bleu\"; did you mean \"blue\"?"));
    const process::Output host = create({"agent", "--host", "host7"});
    EXPECT_EQ(host.exit.code, 2);
    EXPECT_THAT(host.standard_error, HasSubstr("no host \"host7\"; did you mean"));
    EXPECT_EQ(create({"tenant", "--tenant", "blue"}).exit.code, 0);
}

TEST_F(Security, RootsTokenCommandsLeaveTheFileToTheManagersUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root to give files to another user";
    constexpr uid_t kService = 61'234;
    ASSERT_EQ(::chown(folder_.file("").c_str(), kService, kService), 0);
    token("viewer", {"viewer"});
    for (const char* name : {"tokens", "tokens.lock", "viewer"}) {
        struct stat status{};
        ASSERT_EQ(::stat(folder_.file(name).c_str(), &status), 0) << name;
        EXPECT_EQ(status.st_uid, kService) << name;
    }
}

TEST_F(Security, TwoThatIssueAtOnceLeavePairsThatFit) {
    const std::string folder = certs("");
    std::vector<std::thread> both;
    for (int i = 0; i < 2; ++i)
        both.emplace_back(
            [&] { ok({MEMTIDE_FABRIC_MANAGER, "certs", "issue", folder, "--emulated-hosts", "8"}); });
    for (std::thread& one : both) one.join();
    for (int i = 0; i < 8; ++i) {
        const std::string name = fmt::format("agent-host{}", i);
        const auto pair = tls::ClientContext::load(
            {.ca = certs("ca.pem"), .certificate = certs(name + ".pem"), .key = certs(name + ".key")});
        EXPECT_TRUE(pair) << pair.error().message;
    }
}

TEST_F(Security, AFileThatIsNoCertificateDoesNotKeepOthersFromBeingRevoked) {
    write_file(certs("issued/00ff.pem"), "");
    ASSERT_EQ(::mkfifo(certs("issued/0100.pem").c_str(), 0600), 0);
    const process::Output output = run({MEMTIDE_FABRIC_MANAGER, "certs", "revoke", certs(""), "host1"});
    EXPECT_EQ(output.exit.code, 2);
    EXPECT_THAT(output.standard_error, HasSubstr("00ff.pem"));
    EXPECT_THAT(output.standard_error, HasSubstr("0100.pem"));
    EXPECT_FALSE(std::filesystem::exists(certs("agent-host1.key")));
    const process::Output list = run({MEMTIDE_FABRIC_MANAGER, "certs", "list", certs("")});
    EXPECT_THAT(list.standard_output, HasSubstr("revoked"));
}

TEST_F(Security, NewCertificatesAreServedWithoutARestart) {
    run_secured();
    RestClient kept = client(files(token("viewer", {"viewer"})));
    EXPECT_TRUE(eventually([&] { return kept.get("/v1/hosts").status == 200; }));
    ok({MEMTIDE_FABRIC_MANAGER, "certs", "issue", certs(), "--server", "192.0.2.1"});
    EXPECT_TRUE(eventually([&] {
        return client(files()).get("/healthz").body.find("is not for 127.0.0.1") != std::string::npos;
    }));
    EXPECT_EQ(kept.get("/v1/hosts").status, 200U);
    ok({MEMTIDE_FABRIC_MANAGER, "certs", "issue", certs(), "--server", "127.0.0.1"});
    ASSERT_EQ(::kill(manager_->pid(), SIGHUP), 0);
    EXPECT_TRUE(eventually([&] { return client(files()).get("/healthz").status == 200; }));
}

TEST_F(Security, WithBothItListensWhereOthersComeFrom) {
    ManagerOptions options;
    options.more = fmt::format("tls: {{certificate: {}, key: {}}}\nauthentication: {{}}\n",
                               certs("server.pem"), certs("server.key"));
    std::string yaml = manager_yaml(folder_, options);
    yaml.replace(yaml.find("127.0.0.1:0"), 11, "0.0.0.0:0");
    write_file(folder_.file("open.yaml"), yaml);
    EXPECT_EQ(
        run({MEMTIDE_FABRIC_MANAGER, "--config", folder_.file("open.yaml"), "--check-config"}).exit.code, 0);
    // Either alone will not do.
    for (const char* section : {"tls: ", "authentication: "}) {
        std::string less = yaml;
        const auto at = less.find(section);
        less.erase(at, less.find('\n', at) - at);
        write_file(folder_.file("less.yaml"), less);
        const process::Output output = run({MEMTIDE_FABRIC_MANAGER, "--config", folder_.file("less.yaml")});
        EXPECT_EQ(output.exit.code, 2);
        EXPECT_THAT(output.standard_error, HasSubstr("less.yaml:1:10: 0.0.0.0:0 is not a loopback address"));
    }
}

TEST_F(Security, AnotherNameInTheHostHeaderIsRefusedWithoutAuthentication) {
    run_manager();
    RestClient plain(fmt::format("http://127.0.0.1:{}", tcp_port(*manager_)));
    EXPECT_EQ(plain.get("/healthz").status, 200U);
    RestClient named(fmt::format("http://localhost:{}", tcp_port(*manager_)));
    EXPECT_EQ(named.get("/healthz").status, 200U);
}

TEST_F(Security, AFullDiskUnderTheAuditLogRefusesChangesAndNothingElse) {
    run_switch();
    run_secured("audit: {file: " + folder_.file("own.log") + "}\n");
    RestClient operator_client = client(files(token("operator", {"operator"})));
    EXPECT_TRUE(eventually([&] { return operator_client.get("/v1/hosts").status == 200; }));
    const auto limit_files = [&](rlim_t bytes) {
        rlimit limit{};
        ASSERT_EQ(prlimit(manager_->pid(), RLIMIT_FSIZE, nullptr, &limit), 0);
        limit.rlim_cur = bytes;
        ASSERT_EQ(prlimit(manager_->pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
    };
    limit_files(1);
    const RestAnswer refused = operator_client.compose("host0", "256MiB");
    EXPECT_EQ(refused.status, 503U) << refused.body;
    EXPECT_EQ(refused.code(), "audit-unavailable");
    EXPECT_EQ(operator_client.get("/v1/compositions").status, 200U);
    limit_files(RLIM_INFINITY);
    EXPECT_EQ(operator_client.compose("host0", "256MiB").status, 202U);
}

TEST_F(Security, NoLogHasASecretInIt) {
    run_switch();
    run_secured();
    const std::string good = token("operator", {"operator"});
    const std::string unknown = folder_.file("unknown");
    write_file(unknown, "mt_0000000000_" + std::string(64, 'd') + "\n");
    std::filesystem::permissions(unknown, std::filesystem::perms(0600));
    EXPECT_TRUE(eventually([&] { return client(files(good)).get("/v1/hosts").status == 200; }));
    client(files(good)).compose("host0", "256MiB");
    EXPECT_EQ(client(files(unknown)).get("/v1/hosts").status, 401U);
    client(files()).call("GET", "/v1/hosts?token=" + secret_in(unknown));
    manager_->terminate();
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
        if (!entry.is_regular_file() || entry.path() == good || entry.path() == unknown) continue;
        const std::string content = read_file(entry.path().string());
        EXPECT_EQ(content.find(secret_in(good)), std::string::npos) << entry.path();
        EXPECT_EQ(content.find(secret_in(unknown)), std::string::npos) << entry.path();
    }
    EXPECT_THAT(read_file(folder_.file("audit.log")), HasSubstr("no token 0000000000"));
}

}  // namespace
}  // namespace memtide::test
