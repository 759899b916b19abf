// Emulated hosts and a real manager with what people run: TLS, agents known by certificate, tokens.
#include <cstdio>
#include <optional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/eventually.h"
#include "tests/integration/rest_client.h"
#include "tests/integration/secured.h"

namespace memtide::test {
namespace {

using testing::HasSubstr;

constexpr int kHosts = 4;
constexpr const char* kTiming = "timing: {switch_poll: 100ms, retry_max: 200ms, shutdown_grace: 1s}\n";

class SecuredFleet : public testing::Test {
  protected:
    void run_fleet(std::vector<std::string> more = {}) {
        FleetOptions options{
            .manager = {}, .hosts = kHosts, .switches = 1, .devices = 1, .options = std::move(more)};
        fleet_.emplace(start_fleet(folder_, secured_.fleet(std::move(options))));
    }
    // Of the manager, before it starts.
    void change_config(const std::string& from, const std::string& to) {
        std::string config = read_file(folder_.file("fleet.yaml"));
        const auto at = config.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        write_file(folder_.file("fleet.yaml"), config.replace(at, from.size(), to));
    }
    void wait_until_read_again() {
        ASSERT_TRUE(eventually(
            [&] { return manager_->output().find("certificates were read again") != std::string::npos; }));
    }
    void run_manager() { manager_.emplace(start_fleet_manager(folder_, kTiming)); }
    void TearDown() override {
        if (!HasFailure()) return;
        if (fleet_) std::fputs(fleet_->output().c_str(), stderr);
        if (manager_) std::fputs(manager_->output().c_str(), stderr);
    }
    bool is_connected(const std::string& host) {
        const RestAnswer answer = rest_.get("/v1/hosts/" + host);
        return answer.status == 200 && answer.json.at("agent").at("connected").as_bool();
    }
    // The switch has been read too.
    bool all_connected() {
        if (rest_.get("/readyz").status != 200) return false;
        for (int i = 0; i < kHosts; ++i)
            if (!is_connected(fmt::format("host{}", i))) return false;
        return true;
    }
    std::uint64_t fleet_count(const char* name) {
        return control_.get("/v1/status").json.at("since_start").at(name).to_number<std::uint64_t>();
    }
    void compose_and_release(const std::string& host) {
        const RestAnswer made = rest_.compose(host, "256MiB");
        ASSERT_EQ(made.status, 202U) << made.body;
        const std::string id = text(made.json, "id");
        EXPECT_EQ(text(rest_.wait(id, "Online"), "state"), "Online");
        EXPECT_EQ(rest_.call("DELETE", "/v1/compositions/" + id).status, 202U);
        EXPECT_EQ(text(rest_.wait(id, "Released"), "state"), "Released");
    }
    bool fleet_says(const std::string& words) {
        return eventually([&] { return fleet_->output().find(words) != std::string::npos; });
    }

    TempFolder folder_;
    Secured secured_{folder_, kHosts};
    RestClient rest_{secured_.url(), secured_.client()};
    RestClient control_{fleet_control(folder_)};
    std::optional<Daemon> fleet_;
    std::optional<Daemon> manager_;
};

TEST_F(SecuredFleet, ComposesAndReleasesAsWithoutTls) {
    run_fleet();
    run_manager();
    ASSERT_TRUE(eventually([&] { return all_connected(); }));
    compose_and_release("host2");
    EXPECT_EQ(fleet_count("refused_agents"), 0U);
    EXPECT_EQ(fleet_count("refused_reports"), 0U);
}

TEST_F(SecuredFleet, AHostThatShowsAnothersCertificateIsRefusedAndAudited) {
    run_fleet();
    run_manager();
    ASSERT_TRUE(eventually([&] { return all_connected(); }));
    ASSERT_EQ(control_.call("PUT", "/v1/hosts/host1/faults/wrong-certificate").status, 204U);
    EXPECT_TRUE(eventually([&] { return fleet_count("refused_certificates") >= 2; }));
    // The answer comes before the line is in the file.
    EXPECT_TRUE(eventually([&] { return secured_.audit().find("another host's") != std::string::npos; }));
    EXPECT_THAT(secured_.audit(),
                testing::ContainsRegex("certificate host2[^\n]*/v1/hosts/host1/[^\n]*refused"));
    ASSERT_EQ(control_.call("DELETE", "/v1/hosts/host1/faults/wrong-certificate").status, 204U);
    compose_and_release("host1");
    compose_and_release("host2");
    EXPECT_EQ(fleet_count("violations"), 0U);
}

TEST_F(SecuredFleet, ARevokedHostComesBackWithItsNewCertificate) {
    run_fleet();
    change_config("log_level: warning\n", "log_level: info\n");
    run_manager();
    ASSERT_TRUE(eventually([&] { return all_connected(); }));
    secured_.revoke_agent("host3");
    wait_until_read_again();
    // A connection of before ends with its next answer: that of the poll, or of a report.
    const RestAnswer made = rest_.compose("host3", "256MiB");
    ASSERT_EQ(made.status, 202U) << made.body;
    EXPECT_TRUE(eventually([&] { return fleet_count("refused_agents") > 0; }));
    secured_.renew_agent("host3");
    EXPECT_EQ(text(rest_.wait(text(made.json, "id"), "Online"), "state"), "Online");
}

TEST_F(SecuredFleet, TheManagersNewCertificateIsTakenWhileItRuns) {
    run_fleet();
    change_config("log_level: warning\n", "log_level: info\n");
    run_manager();
    ASSERT_TRUE(eventually([&] { return all_connected(); }));
    secured_.renew_server();
    wait_until_read_again();
    compose_and_release("host0");
    EXPECT_EQ(fleet_count("refused_agents"), 0U);
}

TEST_F(SecuredFleet, AManagerOfAnotherCaIsToldOf) {
    Secured::run({"certs", "init", folder_.file("other")});
    run_fleet({"--ca=" + folder_.file("other/ca.pem")});
    run_manager();
    EXPECT_TRUE(fleet_says("was not issued by a CA in " + folder_.file("other/ca.pem")));
}

TEST_F(SecuredFleet, HostsOfAnotherCaAreRefusedAndTold) {
    run_fleet();
    Secured::run({"certs", "init", folder_.file("other")});
    change_config(secured_.certs("ca.pem"), folder_.file("other/ca.pem"));
    change_config("  revoked: \"" + secured_.certs("crl.pem") + "\"\n", "");
    run_manager();
    EXPECT_TRUE(fleet_says("did not accept the client certificate"));
    EXPECT_TRUE(eventually(
        [&] { return secured_.audit().find("TLS: certificate verify failed") != std::string::npos; }));
}

TEST_F(SecuredFleet, AManagerWithoutTlsIsToldOf) {
    run_fleet();
    const std::string config = read_file(folder_.file("fleet.yaml"));
    write_file(folder_.file("fleet.yaml"), config.substr(0, config.find("tls:\n")));
    run_manager();
    EXPECT_TRUE(fleet_says("it does not speak TLS"));
}

}  // namespace
}  // namespace memtide::test
