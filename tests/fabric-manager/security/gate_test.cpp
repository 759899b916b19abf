// The gate: who gets through, who is told what, and what stays in the audit log.
#include "fabric-manager/security/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fabric-manager/security/temp_folder.h"

namespace memtide::fm {
namespace {

using testing::HasSubstr;
using testing::Not;

// Keeps its lines in memory, and fails on demand.
class FakeAuditFile : public AuditFile {
  public:
    struct State {
        std::string text;
        bool full = false;
    };
    explicit FakeAuditFile(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Result<> append(std::string_view line) override {
        if (state_->full) return fail(ErrorCode::kExhausted, "no space left on device");
        state_->text += std::string(line) + "\n";
        return {};
    }
    Result<> sync() override { return {}; }
    Result<> reopen() override { return {}; }

  private:
    std::shared_ptr<State> state_;
};

class Gates : public testing::Test {
  protected:
    void open(GateOptions options = {}) {
        options.tokens = folder_.file("tokens");
        gate_ = *Gate::open(std::move(options), std::make_unique<FakeAuditFile>(audit_), metrics_);
    }
    std::string add(Role role, std::optional<std::string> tenant = {}, std::optional<HostId> host = {}) {
        const NewToken token = make_token();
        EXPECT_TRUE(edit_tokens(folder_.file("tokens"), [&](Tokens& tokens) -> Result<> {
            TokenRecord record;
            record.id = token.id;
            record.hash = token.hash;
            record.role = role;
            record.tenant = tenant;
            record.host = host;
            tokens.push_back(record);
            return {};
        }));
        return token.text;
    }
    static http::Request request(const std::string& method, const std::string& token = {},
                                 const std::string& host = "manager.example") {
        http::Request result;
        result.method = method;
        result.path = "/v1/pool";
        result.peer = "192.0.2.7:1234";
        result.headers["Host"] = host;
        if (!token.empty()) result.headers["Authorization"] = "Bearer " + token;
        return result;
    }
    // The status of the refusal; 0 when it is let through.
    unsigned enter(http::Request what, Door door = {"getPool", Privilege::kReadFabric, false}) {
        passage_ = gate_->enter(what, door);
        gate_->begin(passage_);
        const unsigned status = passage_.refusal ? passage_.refusal->status : 0;
        http::Response answer;
        if (passage_.refusal) answer = *passage_.refusal;
        gate_->leave(passage_, answer);
        return status;
    }
    TempFolder folder_;
    metrics::Registry metrics_;
    std::shared_ptr<FakeAuditFile::State> audit_ = std::make_shared<FakeAuditFile::State>();
    std::unique_ptr<Gate> gate_;
    Gate::Passage passage_;
};

TEST_F(Gates, WithoutAuthenticationThisMachineMayDoEverything) {
    open();
    EXPECT_EQ(enter(request("GET", {}, "127.0.0.1:8080")), 0U);
    EXPECT_EQ(enter(request("PUT", {}, "localhost"), {"putObserved", Privilege::kReport, true}), 0U);
}

TEST_F(Gates, WithoutAuthenticationAnotherNameInTheHostHeaderIsRefused) {
    open({.host_names = {"known.example"}});
    EXPECT_EQ(enter(request("GET", {}, "evil.example:8080")), 421U);
    EXPECT_THAT(audit_->text, HasSubstr("evil.example"));
    EXPECT_EQ(enter(request("GET", {}, "known.example")), 0U);
    http::Request unix_socket = request("GET", {}, "anything");
    unix_socket.peer = "unix";
    EXPECT_EQ(enter(unix_socket), 0U);
}

TEST_F(Gates, WithAuthenticationNobodyPassesWithoutCredentials) {
    open({.authentication = true});
    EXPECT_EQ(enter(request("GET", {}, "127.0.0.1")), 401U);
    EXPECT_THAT(passage_.refusal->headers.at("WWW-Authenticate"), HasSubstr("Bearer"));
    EXPECT_EQ(enter(request("GET"), {"getHealth", Privilege::kPublic, true}), 0U);
}

TEST_F(Gates, ARoleWithoutThePrivilegeIsTold) {
    const std::string token = add(Role::kTenant, "blue");
    open({.authentication = true});
    EXPECT_EQ(enter(request("GET", token)), 403U);
    EXPECT_THAT(passage_.refusal->body, HasSubstr("read-fabric"));
    EXPECT_THAT(audit_->text, HasSubstr(R"("reason":"role tenant lacks read-fabric")"));
}

TEST_F(Gates, AnAgentMaySpeakForItsOwnHostOnly) {
    const std::string token = add(Role::kAgent, {}, HostId("host1"));
    open({.authentication = true});
    const Door door{"putObserved", Privilege::kReport, true};
    for (const auto& [host, status] :
         std::map<std::string, unsigned>{{"host1", 0}, {"host11", 403}, {"host", 403}}) {
        http::Request report = request("PUT", token);
        report.path_parameters["host"] = host;
        EXPECT_EQ(enter(report, door), status) << host;
    }
    EXPECT_THAT(audit_->text, HasSubstr("another host's"));
}

TEST_F(Gates, WrongTokensAreSlowedDownAndRightOnesOfOthersAreNot) {
    const std::string good = add(Role::kAdmin);
    open({.authentication = true, .failures = {0.001, 3}});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(enter(request("GET", make_token().text)), 401U);
    EXPECT_EQ(enter(request("GET", make_token().text)), 429U);
    EXPECT_NE(passage_.refusal->headers.at("Retry-After"), "0");
    http::Request elsewhere = request("GET", good);
    elsewhere.peer = "192.0.2.8:1";
    EXPECT_EQ(enter(elsewhere), 0U);
}

TEST_F(Gates, ACallerThatAsksTooOftenIsToldWhenToComeBack) {
    const std::string first = add(Role::kAdmin);
    const std::string second = add(Role::kAdmin);
    open({.authentication = true, .rate = {0.1, 2}});
    EXPECT_EQ(enter(request("GET", first)), 0U);
    EXPECT_EQ(enter(request("GET", first)), 0U);
    EXPECT_EQ(enter(request("GET", first)), 429U);
    EXPECT_EQ(passage_.refusal->headers.at("Retry-After"), "10");
    EXPECT_EQ(enter(request("GET", second)), 0U);
}

TEST_F(Gates, TheTokensOfATenantShareItsRate) {
    const std::string first = add(Role::kTenant, "blue");
    const std::string second = add(Role::kTenant, "blue");
    const std::string other = add(Role::kTenant, "red");
    open({.authentication = true, .tenants = {{"blue", {0.1, 2}}}});
    const Door door{"listCompositions", Privilege::kReadCompositions, false};
    EXPECT_EQ(enter(request("GET", first), door), 0U);
    EXPECT_EQ(enter(request("GET", second), door), 0U);
    EXPECT_EQ(enter(request("GET", first), door), 429U);
    EXPECT_EQ(enter(request("GET", other), door), 0U);
}

TEST_F(Gates, WithoutAnAuditLogNothingIsChangedAndReadsGoOn) {
    const std::string token = add(Role::kAdmin);
    open({.authentication = true});
    audit_->full = true;
    const Door change{"createComposition", Privilege::kChangeCompositions, false};
    EXPECT_EQ(enter(request("POST", token), change), 503U);
    EXPECT_THAT(passage_.refusal->body, HasSubstr("audit-unavailable"));
    EXPECT_EQ(enter(request("GET", token)), 0U);
    // Agents go on reporting, else no release would end.
    EXPECT_EQ(enter(request("PUT", token), {"putObserved", Privilege::kReport, true}), 0U);
    audit_->full = false;
    EXPECT_EQ(enter(request("POST", token), change), 0U);
}

TEST_F(Gates, TheAuditLogHasNoToken) {
    const std::string token = add(Role::kAdmin);
    open({.authentication = true});
    const std::string wrong = make_token().text;
    enter(request("POST", token), {"createComposition", Privilege::kChangeCompositions, false});
    enter(request("GET", wrong));
    gate_.reset();
    EXPECT_THAT(audit_->text, HasSubstr(token.substr(3, 10)));  // its id
    for (const std::string& secret : {token, wrong})
        EXPECT_THAT(audit_->text, Not(HasSubstr(secret.substr(14))));
}

TEST_F(Gates, TokensThatCannotBeReadAgainAreATroubleUntilTheyCan) {
    open({.authentication = true});
    add(Role::kViewer);
    gate_->tick();
    EXPECT_THAT(gate_->troubles(), testing::IsEmpty());
    std::filesystem::permissions(folder_.file("tokens"), std::filesystem::perms(0644));
    gate_->tick();
    gate_->tick();
    ASSERT_THAT(gate_->troubles(), testing::ElementsAre(HasSubstr("revoked ones too")));
    EXPECT_THAT(metrics_.render(), HasSubstr(R"(memtide_fm_credentials_stale{kind="tokens"} 1)"));
    std::filesystem::permissions(folder_.file("tokens"), std::filesystem::perms(0600));
    gate_->tick();
    EXPECT_THAT(gate_->troubles(), testing::IsEmpty());
    EXPECT_THAT(metrics_.render(), HasSubstr(R"(memtide_fm_credentials_stale{kind="tokens"} 0)"));
}

TEST_F(Gates, CertificatesThatCannotBeReadAgainAreATroubleUntilTheyCan) {
    open();
    gate_->certificates_were_read(Error{ErrorCode::kPermission, "open server.key"});
    EXPECT_THAT(gate_->troubles(), testing::ElementsAre(HasSubstr("server.key")));
    gate_->certificates_were_read(std::nullopt);
    EXPECT_THAT(gate_->troubles(), testing::IsEmpty());
}

TEST_F(Gates, AFailedHandshakeIsTold) {
    open({.authentication = true});
    gate_->tls_refused("192.0.2.9:77", "certificate verify failed");
    EXPECT_THAT(audit_->text, HasSubstr("192.0.2.9:77"));
    EXPECT_THAT(audit_->text, HasSubstr("TLS: certificate verify failed"));
}

}  // namespace
}  // namespace memtide::fm
