// Certificates and contexts: what is wrong with a file is said with its name; changed files are used.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>

#include "common/tls/client_context.h"
#include "common/tls/server_context.h"
#include "tests/common/tls/certificates.h"

namespace memtide::tls {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Contexts : public testing::Test {
  protected:
    void SetUp() override { files_.issue_server(); }
    ServerFiles server_files() {
        return {.certificate = files_.path("server.pem"),
                .key = files_.path("server.key"),
                .client_ca = {},
                .revoked = {}};
    }
    std::string mistake(ServerFiles files) {
        const auto loaded = ServerContext::load(std::move(files));
        return loaded ? "" : loaded.error().message;
    }
    Certificates files_;
};

TEST_F(Contexts, GoodFilesAreTaken) { EXPECT_EQ(mistake(server_files()), ""); }

TEST_F(Contexts, AMissingFileIsNamed) {
    auto files = server_files();
    files.certificate = files_.path("nothing.pem");
    EXPECT_THAT(mistake(files), AllOf(HasSubstr("nothing.pem"), HasSubstr("No such file")));
}

TEST_F(Contexts, AFolderIsNoFile) {
    auto files = server_files();
    files.client_ca = std::filesystem::path(files_.path("x")).parent_path();
    EXPECT_THAT(mistake(files), HasSubstr("not a regular file"));
}

TEST_F(Contexts, AFileWithoutCertificateIsNamed) {
    auto files = server_files();
    files.certificate = files_.write("text.pem", "nothing of the kind\n");
    EXPECT_THAT(mistake(files), AllOf(HasSubstr("text.pem"), HasSubstr("no certificate in PEM")));
}

TEST_F(Contexts, AKeyOfAnotherCertificateIsNamed) {
    files_.issue_client("other");
    auto files = server_files();
    files.key = files_.path("other.key");
    EXPECT_THAT(mistake(files),
                AllOf(HasSubstr("other.key"), HasSubstr("does not belong to"), HasSubstr("server.pem")));
}

TEST_F(Contexts, AKeyThatEveryoneMayReadIsRefused) {
    std::filesystem::permissions(files_.path("server.key"), std::filesystem::perms::others_read,
                                 std::filesystem::perm_options::add);
    EXPECT_THAT(mistake(server_files()), AllOf(HasSubstr("server.key"), HasSubstr("chmod 600")));
}

TEST_F(Contexts, AnExpiredCertificateIsRefusedWithTheDay) {
    files_.issue("server", {.common_name = "old",
                            .dns_names = {},
                            .addresses = {},
                            .begins = std::chrono::hours(-48),
                            .ends = std::chrono::hours(-24)});
    EXPECT_THAT(mistake(server_files()), AllOf(HasSubstr("server.pem"), HasSubstr("expired on")));
}

TEST_F(Contexts, ACertificateOfTheFutureIsRefused) {
    files_.issue("server", {.common_name = "new",
                            .dns_names = {},
                            .addresses = {},
                            .begins = std::chrono::hours(24),
                            .ends = std::chrono::hours(48)});
    EXPECT_THAT(mistake(server_files()), HasSubstr("not valid before"));
}

TEST_F(Contexts, AnEmptyCaFileIsRefused) {
    auto files = server_files();
    files.client_ca = files_.write("empty.pem", "");
    EXPECT_THAT(mistake(files), AllOf(HasSubstr("empty.pem"), HasSubstr("holds no certificate")));
}

TEST_F(Contexts, ChangedFilesAreReadAgain) {
    const auto context = *ServerContext::load(server_files());
    EXPECT_FALSE(*context->reload_if_changed());
    const auto before = context->generation();
    files_.issue_server();
    const auto reloaded = context->reload_if_changed();
    ASSERT_TRUE(reloaded);
    EXPECT_TRUE(*reloaded);
    EXPECT_GT(context->generation(), before);
    EXPECT_FALSE(*context->reload_if_changed());
}

TEST_F(Contexts, HalfAPairIsWaitedForAndAPairThatStaysWrongIsToldOnce) {
    const auto context = *ServerContext::load(server_files());
    files_.issue_client("other");
    std::filesystem::copy_file(files_.path("other.pem"), files_.path("server.pem"),
                               std::filesystem::copy_options::overwrite_existing);
    const auto first = context->reload_if_changed();
    ASSERT_TRUE(first);  // the key may be on its way
    EXPECT_FALSE(*first);
    const auto second = context->reload_if_changed();
    ASSERT_FALSE(second);
    EXPECT_THAT(second.error().message, HasSubstr("does not belong to"));
    EXPECT_TRUE(context->reload_if_changed());  // told once
    files_.issue_server();
    EXPECT_TRUE(*context->reload_if_changed());
}

TEST(ClientContexts, ACertificateNeedsItsKey) {
    const auto loaded = ClientContext::load({.ca = {}, .certificate = "/some.pem", .key = {}});
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().message, HasSubstr("needs its key"));
}

std::string der_of(const std::string& pem) {
    const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    const X509Ptr certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    unsigned char* der = nullptr;
    const int size = i2d_X509(certificate.get(), &der);
    std::string text(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
    OPENSSL_free(der);
    return text;
}

TEST(PeerCertificates, NamesComeFromTheAlternativeNameElseFromTheCommonName) {
    const Certificates files;
    const auto both =
        files.ca().issue({.common_name = "cn", .dns_names = {"host0", "host1"}, .addresses = {}});
    const auto seen = describe_der(der_of(both->certificate));
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->common_name, "cn");
    EXPECT_THAT(seen->host_names(), ElementsAre("host0", "host1"));
    EXPECT_EQ(seen->fingerprint.size(), 64U);
    const auto only = files.ca().issue({.common_name = "host7", .dns_names = {}, .addresses = {}});
    EXPECT_THAT(describe_der(der_of(only->certificate))->host_names(), ElementsAre("host7"));
}

TEST(PeerCertificates, NamesThatDeceiveAreLeftOut) {
    const Certificates files;
    const auto issued =
        files.ca().issue({.common_name = std::string("host0\0.evil", 11), .dns_names = {}, .addresses = {}});
    ASSERT_TRUE(issued);
    EXPECT_THAT(describe_der(der_of(issued->certificate))->host_names(), IsEmpty());
}

TEST(PeerCertificates, WhatIsNoCertificateIsRefused) {
    EXPECT_FALSE(describe_der(""));
    EXPECT_FALSE(describe_der(std::string(100, '\x30')));
}

TEST(Authorities, WhatCannotStandInACertificateIsRefused) {
    const Certificates files;
    for (const char* name : {"", "a,DNS:b", "a b", "a\n"})
        EXPECT_FALSE(files.ca().issue({.common_name = "x", .dns_names = {name}, .addresses = {}})) << name;
    EXPECT_FALSE(files.ca().issue({.common_name = "x", .dns_names = {}, .addresses = {"localhost"}}));
    EXPECT_FALSE(files.ca().issue({.common_name = "", .dns_names = {}, .addresses = {}}));
}

TEST(Authorities, ACaIsKnownAgainAndALeafIsNone) {
    const Certificates files;
    EXPECT_TRUE(Authority::from_pem(*files.ca().pem()));
    EXPECT_FALSE(
        Authority::from_pem(*files.ca().issue({.common_name = "x", .dns_names = {}, .addresses = {}})));
    EXPECT_FALSE(Authority::from_pem({"", ""}));
}

}  // namespace
}  // namespace memtide::tls
