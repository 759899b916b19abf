// Tokens: what is kept of them, and who is let in by them.
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric-manager/security/authenticator.h"
#include "fabric-manager/security/token_file.h"
#include "tests/fabric-manager/security/temp_folder.h"

namespace memtide::fm {
namespace {

using testing::HasSubstr;
using testing::Not;

TokenRecord record_of(const NewToken& token, Role role = Role::kViewer) {
    TokenRecord record;
    record.id = token.id;
    record.hash = token.hash;
    record.role = role;
    record.created = Time(std::chrono::seconds(1'800'000'000));
    return record;
}

TEST(Tokens, AreAllDifferentAndTellTheirIds) {
    std::set<std::string> seen;
    for (int i = 0; i < 100; ++i) {
        const NewToken token = make_token();
        EXPECT_TRUE(seen.insert(token.text).second);
        EXPECT_EQ(token_id(token.text), token.id);
        EXPECT_EQ(token.hash, hash_token(token.text));
        EXPECT_EQ(token.text.size(), 78U);
    }
}

TEST(Tokens, TheHashIsSha256) {
    EXPECT_EQ(hash_token("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Tokens, WhatDoesNotLookLikeOneHasNoId) {
    const std::string good = make_token().text;
    for (const std::string& text :
         {std::string(), std::string("mt_"), good + "0", good.substr(1), "MT" + good.substr(2)})
        EXPECT_FALSE(token_id(text)) << text;
}

TEST(Tokens, TheHeaderIsReadAsRfc6750Says) {
    EXPECT_EQ(bearer_token("Bearer abc"), "abc");
    EXPECT_EQ(bearer_token("bEARER   abc"), "abc");
    for (const char* header : {"", "Bearer", "Bearer ", "Bearer  ", "Bearerabc", "Basic abc", "Bearer a b",
                               "Bearer a, Bearer b", "Bearer \x01"})
        EXPECT_FALSE(bearer_token(header)) << header;
}

TEST(TokenFile, WhatIsNoFileIsRefusedAndNotWaitedFor) {
    const TempFolder folder;
    ASSERT_EQ(::mkfifo(folder.file("tokens").c_str(), 0600), 0);
    EXPECT_EQ(load_tokens(folder.file("tokens")).error().code, ErrorCode::kInvalidArgument);
}

TEST(TokenFile, WhatIsWrittenIsReadAgain) {
    Tokens tokens;
    for (const Role role : kRoles) {
        TokenRecord record = record_of(make_token(), role);
        if (role == Role::kTenant) record.tenant = "blue";
        if (role == Role::kAgent) record.host = HostId("host0");
        record.note = "\"quoted\" and\nmore";
        record.expires = record.created + std::chrono::hours(1);
        tokens.push_back(record);
    }
    const auto read = parse_tokens(format_tokens(tokens));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, tokens);
}

TEST(TokenFile, MistakesAreToldWithTheirLine) {
    const std::string hash(64, 'a');
    const auto mistake = [](const std::string& text) {
        const auto read = parse_tokens(text);
        return read ? "" : read.error().message;
    };
    const std::string good = R"({"id":"x","sha256":")" + hash + R"(","role":"admin","created":1})" + "\n";
    EXPECT_EQ(mistake("# comment\n\n" + good), "");
    EXPECT_THAT(mistake(good + "nonsense\n"), HasSubstr("line 2"));
    EXPECT_THAT(mistake(good + good), HasSubstr("there already"));
    EXPECT_THAT(mistake(R"({"id":"x","sha256":"zz","role":"admin","created":1})"),
                HasSubstr("64 hexadecimal"));
    EXPECT_THAT(mistake(R"({"id":"x","sha256":")" + hash + R"(","role":"king","created":1})"),
                HasSubstr("role"));
    EXPECT_THAT(mistake(R"({"id":"x","sha256":")" + hash + R"(","role":"tenant","created":1})"),
                HasSubstr("must have a tenant"));
    EXPECT_THAT(mistake(R"({"id":"x","sha256":")" + hash + R"(","role":"admin","host":"h","created":1})"),
                HasSubstr("must have a host if its role is agent"));
    EXPECT_THAT(mistake(R"({"id":"x","sha256":")" + hash + R"(","role":"admin","created":1,"exprires":2})"),
                HasSubstr("exprires"));
}

TEST(TokenFile, TimesBeyondWhatCanBeCountedAreRefused) {
    const auto line = [](const char* expires) {
        return std::string(R"({"id":"0123456789","sha256":")") + std::string(64, '0') +
               R"(","role":"viewer","created":0,"expires":)" + expires + "}";
    };
    EXPECT_TRUE(parse_tokens(line("9214646400")));
    EXPECT_FALSE(parse_tokens(line("15600000000")));
}

TEST(TokenFile, AFileThatIsNotThereHasNoTokensAndANewOneIsPrivate) {
    const TempFolder folder;
    EXPECT_TRUE(load_tokens(folder.file("tokens"))->empty());
    ASSERT_TRUE(edit_tokens(folder.file("tokens"), [](Tokens& tokens) -> Result<> {
        tokens.push_back(record_of(make_token()));
        return {};
    }));
    EXPECT_EQ(load_tokens(folder.file("tokens"))->size(), 1U);
    using std::filesystem::perms;
    EXPECT_EQ(std::filesystem::status(folder.file("tokens")).permissions(),
              perms::owner_read | perms::owner_write);
}

TEST(TokenFile, AFileThatOthersMayUseIsRefused) {
    const TempFolder folder;
    std::ofstream(folder.file("tokens")) << "";
    std::filesystem::permissions(folder.file("tokens"), std::filesystem::perms(0644));
    const auto loaded = load_tokens(folder.file("tokens"));
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, ErrorCode::kPermission);
    EXPECT_THAT(loaded.error().message, HasSubstr("chmod 600"));
}

TEST(TokenFile, ManyEditorsLoseNothing) {
    const TempFolder folder;
    constexpr int kThreads = 4;
    constexpr int kEach = 10;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
        threads.emplace_back([&] {
            for (int j = 0; j < kEach; ++j)
                EXPECT_TRUE(edit_tokens(folder.file("tokens"), [](Tokens& tokens) -> Result<> {
                    tokens.push_back(record_of(make_token()));
                    return {};
                }));
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(load_tokens(folder.file("tokens"))->size(), static_cast<std::size_t>(kThreads * kEach));
}

class Authentication : public testing::Test {
  protected:
    NewToken add(TokenRecord record, NewToken token) {
        record.id = token.id;
        record.hash = token.hash;
        EXPECT_TRUE(edit_tokens(path_, [&](Tokens& tokens) -> Result<> {
            tokens.push_back(record);
            return {};
        }));
        return token;
    }
    static http::Request request_with(const std::string& authorization) {
        http::Request request;
        request.headers["Authorization"] = authorization;
        return request;
    }
    TempFolder folder_;
    std::string path_ = folder_.file("tokens");
    Time now_{std::chrono::seconds(1'900'000'000)};
};

TEST_F(Authentication, ATokenIsKnownByItsText) {
    TokenRecord record = record_of({});
    record.role = Role::kTenant;
    record.tenant = "blue";
    const NewToken token = add(record, make_token());
    const auto authenticator = *Authenticator::open(path_);
    const auto caller = authenticator.identify(request_with("Bearer " + token.text), now_);
    ASSERT_TRUE(caller);
    EXPECT_EQ((*caller)->name, "token " + token.id);
    EXPECT_EQ((*caller)->role, Role::kTenant);
    EXPECT_EQ((*caller)->tenant, "blue");
}

TEST_F(Authentication, WrongTokensAreToldApartOnlyInTheAuditLog) {
    const NewToken token = add(record_of({}), make_token());
    const auto authenticator = *Authenticator::open(path_);
    std::string wrong = token.text;
    wrong.back() = wrong.back() == '0' ? '1' : '0';
    const auto first = authenticator.identify(request_with("Bearer " + wrong), now_);
    const auto second = authenticator.identify(request_with("Bearer " + make_token().text), now_);
    ASSERT_FALSE(first);
    ASSERT_FALSE(second);
    EXPECT_EQ(first.error().told, second.error().told);
    EXPECT_NE(first.error().why, second.error().why);
    for (const auto& refusal : {first.error(), second.error()})
        EXPECT_THAT(refusal.why + refusal.told, Not(HasSubstr(wrong)));
}

TEST_F(Authentication, AnExpiredTokenIsWorthless) {
    TokenRecord record = record_of({});
    record.expires = now_;
    const NewToken token = add(record, make_token());
    const auto authenticator = *Authenticator::open(path_);
    EXPECT_TRUE(authenticator.identify(request_with("Bearer " + token.text), now_ - std::chrono::seconds(1)));
    const auto late = authenticator.identify(request_with("Bearer " + token.text), now_);
    ASSERT_FALSE(late);
    EXPECT_THAT(late.error().told, HasSubstr("expired"));
}

TEST_F(Authentication, ARevokedTokenIsWorthlessOnceTheFileWasReadAgain) {
    const NewToken token = add(record_of({}), make_token());
    auto authenticator = *Authenticator::open(path_);
    const auto caller = authenticator.identify(request_with("Bearer " + token.text), now_);
    ASSERT_TRUE(caller);
    EXPECT_FALSE(*authenticator.refresh());
    ASSERT_TRUE(edit_tokens(path_, [](Tokens& tokens) -> Result<> {
        tokens.clear();
        return {};
    }));
    EXPECT_TRUE(*authenticator.refresh());
    EXPECT_FALSE(authenticator.identify(request_with("Bearer " + token.text), now_));
    EXPECT_FALSE(authenticator.is_still_valid(**caller, now_));
}

TEST_F(Authentication, AFileThatWentBadLeavesTheTokensOfBeforeInUse) {
    const NewToken token = add(record_of({}), make_token());
    auto authenticator = *Authenticator::open(path_);
    std::ofstream(path_) << "nonsense\n";
    EXPECT_FALSE(authenticator.refresh());
    EXPECT_TRUE(authenticator.refresh());  // told once
    EXPECT_TRUE(authenticator.identify(request_with("Bearer " + token.text), now_));
}

TEST_F(Authentication, ACertificateMakesAnAgentOfTheHostsInIt) {
    const auto authenticator = *Authenticator::open(path_);
    http::Request request;
    request.certificate = std::make_shared<const tls::PeerCertificate>(
        tls::PeerCertificate{.common_name = "host0", .dns_names = {"host0", "host1"}, .fingerprint = {}});
    const auto caller = authenticator.identify(request, now_);
    ASSERT_TRUE(caller);
    EXPECT_EQ((*caller)->role, Role::kAgent);
    EXPECT_TRUE((*caller)->speaks_for(HostId("host1")));
    EXPECT_FALSE((*caller)->speaks_for(HostId("host")));
    EXPECT_FALSE((*caller)->speaks_for(HostId("host10")));
    // A wrong token is not made good by a certificate.
    request.headers["Authorization"] = "Bearer " + make_token().text;
    EXPECT_FALSE(authenticator.identify(request, now_));
}

TEST_F(Authentication, WhoShowsNothingIsAnonymous) {
    const auto authenticator = *Authenticator::open(path_);
    const auto caller = authenticator.identify(http::Request{}, now_);
    ASSERT_TRUE(caller);
    EXPECT_FALSE((*caller)->role);
    for (const Privilege privilege : kPrivileges)
        EXPECT_EQ((*caller)->has(privilege), privilege == Privilege::kPublic);
}

}  // namespace
}  // namespace memtide::fm
