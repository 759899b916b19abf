// What emulated agents show to the manager: what is missing or does not fit is said with its name.
#include "cxl-emul/hosts/agent_credentials.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/tls/certificates.h"

namespace memtide::emul {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using tls::CertificateRequest;

class AgentCredentials : public testing::Test {
  protected:
    AgentCredentials() {
        for (const char* const host : {"host0", "host1"}) issue(host);
    }
    CertificateRequest request_for(const std::string& host) {
        return {.common_name = host, .dns_names = {host}, .use = CertificateRequest::Use::kClient};
    }
    void issue(const std::string& host) { files_.issue("agent-" + host, request_for(host)); }
    auto load() {
        AgentCertificateFiles given;
        given.folder = std::filesystem::path(files_.path("x")).parent_path().string();
        return load_agent_credentials(given, hosts_);
    }
    std::string mistake() {
        const auto loaded = load();
        return loaded ? "" : loaded.error().message;
    }

    tls::Certificates files_;
    std::vector<HostId> hosts_{HostId("host0"), HostId("host1")};
};

TEST_F(AgentCredentials, EachHostHasItsOwn) {
    const auto loaded = load();
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    ASSERT_EQ(loaded->size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
        const auto context = *(*loaded)[i]->tls();
        EXPECT_EQ(tls::describe(context->certificate()).host_names(),
                  std::vector<std::string>{hosts_[i].value});
    }
}

TEST_F(AgentCredentials, WithoutAFolderAllShowNothingAndAreOneClient) {
    const auto loaded = load_agent_credentials({}, hosts_);
    ASSERT_TRUE(loaded.has_value());
    EXPECT_EQ(loaded->at(0), loaded->at(1));
    AgentCertificateFiles only_ca;
    only_ca.ca = files_.path("nothing.pem");
    const auto wrong = load_agent_credentials(only_ca, hosts_);
    ASSERT_FALSE(wrong.has_value());
    EXPECT_THAT(wrong.error().message, AllOf(HasSubstr("nothing.pem"), HasSubstr("No such file")));
}

TEST_F(AgentCredentials, AllThatAreMissingAreToldOfWithWhatMakesThem) {
    hosts_.emplace_back("host2");
    EXPECT_THAT(mistake(), AllOf(HasSubstr("agent-host2.pem is not there (nor are 1 others)"),
                                 HasSubstr("certs issue"), HasSubstr("--emulated-hosts 3")));
    std::filesystem::remove(files_.path("ca.pem"));
    hosts_.pop_back();
    EXPECT_THAT(mistake(), HasSubstr("ca.pem"));
    AgentCertificateFiles nowhere;
    nowhere.folder = files_.path("nowhere");
    EXPECT_THAT(load_agent_credentials(nowhere, hosts_).error().message,
                AllOf(HasSubstr("there is no folder"), HasSubstr("certs init")));
}

TEST_F(AgentCredentials, TheKeyOfAnotherIsNamed) {
    std::filesystem::copy_file(files_.path("agent-host0.key"), files_.path("agent-host1.key"),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_THAT(mistake(),
                AllOf(HasSubstr("host1: "), HasSubstr("agent-host1.key does not belong to the certificate")));
}

TEST_F(AgentCredentials, TheCertificateOfAnotherIsNamed) {
    files_.issue("agent-host1", request_for("host0"));
    EXPECT_THAT(mistake(), AllOf(HasSubstr("agent-host1.pem is for host0, and not for host1")));
}

TEST_F(AgentCredentials, AnExpiredCertificateIsNamed) {
    CertificateRequest old = request_for("host1");
    old.begins = std::chrono::hours(-48);
    old.ends = std::chrono::hours(-24);
    files_.issue("agent-host1", old);
    EXPECT_THAT(mistake(),
                AllOf(HasSubstr("host1: "), HasSubstr("agent-host1.pem"), HasSubstr("expired on")));
}

TEST_F(AgentCredentials, AKeyThatEveryoneMayReadIsRefused) {
    std::filesystem::permissions(files_.path("agent-host0.key"), std::filesystem::perms::others_read,
                                 std::filesystem::perm_options::add);
    EXPECT_THAT(mistake(), AllOf(HasSubstr("agent-host0.key"), HasSubstr("chmod 600")));
}

TEST_F(AgentCredentials, ARenewedCertificateIsShownFromTheNextConnectionOn) {
    const auto loaded = load();
    ASSERT_TRUE(loaded.has_value());
    const auto context = *loaded->at(0)->tls();
    const std::string before = tls::describe(context->certificate()).fingerprint;
    issue("host0");
    (void)context->make_session(-1, "127.0.0.1");
    const std::string after = tls::describe(context->certificate()).fingerprint;
    EXPECT_NE(after, before);
    files_.write("agent-host0.pem", "half of a certificate\n");
    (void)context->make_session(-1, "127.0.0.1");
    EXPECT_EQ(tls::describe(context->certificate()).fingerprint, after) << "the old one stays in use";
}

}  // namespace
}  // namespace memtide::emul
