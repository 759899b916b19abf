// The audit log: whole lines, bounded files, and a full disk that is noticed and got over.
#include <csignal>
#include <filesystem>
#include <sstream>

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "fabric-manager/security/audit_log.h"
#include "tests/fabric-manager/security/temp_folder.h"

namespace memtide::fm {
namespace {

namespace json = boost::json;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<json::value> lines_of(const std::string& text) {
    std::vector<json::value> result;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) result.push_back(json::parse(line));
    return result;
}

class Audit : public testing::Test {
  protected:
    AuditFileOptions options() {
        AuditFileOptions result;
        result.path = folder_.file("audit.log");
        return result;
    }
    static AuditRecord record(const std::string& who = "token x") {
        AuditRecord result;
        result.request = 7;
        result.who = who;
        result.role = "admin";
        result.peer = "127.0.0.1:1234";
        result.method = "POST";
        result.operation = "createComposition";
        result.path = "/v1/compositions";
        result.allowed = true;
        return result;
    }
    TempFolder folder_;
    Time now_{std::chrono::seconds(1'800'000'000)};
};

TEST_F(Audit, AChangeIsToldBeforeAndAfter) {
    AuditLog log(*open_audit_file(options()));
    ASSERT_TRUE(log.begin(record(), now_));
    log.end(record(), {.status = 202, .code = {}, .object = "/v1/compositions/c-1"}, now_);
    const auto lines = lines_of(folder_.read("audit.log"));
    ASSERT_THAT(lines, SizeIs(2));
    EXPECT_EQ(lines[0].at("event"), "begin");
    EXPECT_EQ(lines[0].at("time"), "2027-01-15T08:00:00.000Z");
    EXPECT_EQ(lines[0].at("decision"), "allowed");
    EXPECT_EQ(lines[1].at("event"), "end");
    EXPECT_EQ(lines[1].at("request"), lines[0].at("request"));
    EXPECT_EQ(lines[1].at("status"), 202);
    EXPECT_EQ(lines[1].at("object"), "/v1/compositions/c-1");
}

TEST_F(Audit, OnlyItsOwnerMayReadIt) {
    std::ofstream(folder_.file("audit.log")) << "";
    std::filesystem::permissions(folder_.file("audit.log"), std::filesystem::perms(0644));
    ASSERT_TRUE(open_audit_file(options()));
    EXPECT_EQ(std::filesystem::status(folder_.file("audit.log")).permissions(), std::filesystem::perms(0600));
}

TEST_F(Audit, WhatClientsChooseCannotBreakALine) {
    AuditLog log(*open_audit_file(options()));
    AuditRecord evil = record();
    evil.path = "/v1/\n{\"who\":\"admin\"}\xff" + std::string(5000, 'x');
    log.write(evil, {.status = 404, .code = {}, .object = {}}, now_);
    const auto lines = lines_of(folder_.read("audit.log"));
    ASSERT_THAT(lines, SizeIs(1));
    EXPECT_LT(folder_.read("audit.log").size(), 1500U);
}

TEST_F(Audit, WhatIsRepeatedIsCountedAndToldOnceAMinute) {
    AuditLog log(*open_audit_file(options()));
    for (int i = 0; i < 100; ++i) {
        AuditRecord poll = record();
        poll.peer = "127.0.0.1:" + std::to_string(1000 + i);
        log.count(poll, {.status = 200, .code = {}, .object = {}}, now_);
    }
    log.tick(now_ + std::chrono::seconds(59));
    EXPECT_THAT(lines_of(folder_.read("audit.log")), SizeIs(1));
    log.tick(now_ + std::chrono::seconds(60));
    const auto lines = lines_of(folder_.read("audit.log"));
    ASSERT_THAT(lines, SizeIs(2));
    EXPECT_EQ(lines[1].at("event"), "repeated");
    EXPECT_EQ(lines[1].at("count"), 99);
    // Another status, or somebody else, is another decision.
    log.count(record(), {.status = 503, .code = {}, .object = {}}, now_);
    log.count(record("token y"), {.status = 200, .code = {}, .object = {}}, now_);
    EXPECT_THAT(lines_of(folder_.read("audit.log")), SizeIs(4));
}

TEST_F(Audit, FilesDoNotGrowBeyondTheirSizeAndTheOldestGo) {
    AuditFileOptions small = options();
    small.rotate_bytes = 1000;
    small.keep = 2;
    auto file = *open_audit_file(small);
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(file->append("line " + std::to_string(i) + std::string(90, '.')));
    EXPECT_THAT(folder_.read("audit.log"), HasSubstr("line 99"));
    for (const char* name : {"audit.log", "audit.log.1", "audit.log.2"}) {
        EXPECT_LE(std::filesystem::file_size(folder_.file(name)), 1000U) << name;
        EXPECT_EQ(std::filesystem::status(folder_.file(name)).permissions(), std::filesystem::perms(0600));
    }
    EXPECT_FALSE(std::filesystem::exists(folder_.file("audit.log.3")));
}

TEST_F(Audit, HalfALineOfACrashIsEnded) {
    std::ofstream(folder_.file("audit.log")) << "{\"half\":";
    auto file = *open_audit_file(options());
    ASSERT_TRUE(file->append("whole"));
    EXPECT_EQ(folder_.read("audit.log"), "{\"half\":\nwhole\n");
}

TEST_F(Audit, AfterTheFileWasMovedAwayReopenMakesANewOne) {
    auto file = *open_audit_file(options());
    ASSERT_TRUE(file->append("old"));
    std::filesystem::rename(folder_.file("audit.log"), folder_.file("moved"));
    ASSERT_TRUE(file->reopen());
    ASSERT_TRUE(file->append("new"));
    EXPECT_EQ(folder_.read("audit.log"), "new\n");
    EXPECT_EQ(folder_.read("moved"), "old\n");
}

TEST_F(Audit, AFullDiskIsAnErrorThatLeavesNoHalfLineAndIsGotOver) {
    std::signal(SIGXFSZ, SIG_IGN);
    AuditLog log(*open_audit_file(options()));
    ASSERT_TRUE(log.begin(record(), now_));
    const std::string before = folder_.read("audit.log");
    rlimit old{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
    // Room for the beginning of the next line only.
    const rlimit full{before.size() + 10, old.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
    const auto refused = log.begin(record(), now_);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
    EXPECT_TRUE(log.is_failing());
    EXPECT_EQ(folder_.read("audit.log"), before);
    EXPECT_TRUE(log.begin(record(), now_));
    EXPECT_FALSE(log.is_failing());
    EXPECT_THAT(lines_of(folder_.read("audit.log")), SizeIs(2));
    EXPECT_EQ(log.lost_lines(), 1U);
}

TEST_F(Audit, AFolderIsNoLog) {
    AuditFileOptions wrong = options();
    wrong.path = std::filesystem::path(wrong.path).parent_path();
    EXPECT_FALSE(open_audit_file(wrong));
    wrong.path = "/dev/null";
    EXPECT_FALSE(open_audit_file(wrong));
}

}  // namespace
}  // namespace memtide::fm
