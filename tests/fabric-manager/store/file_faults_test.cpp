// Files that fail, fill up or go away under a running store.
#include <cerrno>

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "tests/fabric-manager/store/store_fixture.h"

namespace memtide::fm {
namespace {

class FileFaults : public StoreFixture {
  protected:
    FileFaults() {
        options.fault = [this](std::string_view point) {
            return point == failing_at ? std::exchange(error_number, once ? 0 : error_number) : 0;
        };
    }
    void fail_at(std::string point, int number, bool only_once = false) {
        failing_at = std::move(point);
        error_number = number;
        once = only_once;
    }
    std::string failing_at;
    int error_number = 0;
    bool once = false;
};

TEST_F(FileFaults, AReadOnlyDiskIsToldAndLeftBehindWhenItCanBeWrittenAgain) {
    auto store = open();
    fill(*store, 0, 3);
    fail_at("write", EROFS);
    const Result<> refused = apply(*store, put("c-x", 1));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
    EXPECT_NE(refused.error().message.find("read-only"), std::string::npos) << refused.error().message;
    fail_at("", 0);
    fill(*store, 3, 5);
    store.reset();
    EXPECT_EQ(compositions(*open()), 5u);
}

// What is in the log stays; nothing more is taken until the database can follow.
TEST_F(FileFaults, ADatabaseThatCannotFollowItsLogStopsTheStoreUntilItCan) {
    options.commit_after = std::chrono::milliseconds(0);
    auto store = open();
    fill(*store, 0, 3);
    EXPECT_EQ(compositions(*store), 3u);  // and the database has them
    fail_at("commit", EROFS);
    EXPECT_TRUE(apply(*store, put("c-3", 1)));
    for (int i = 0; i < 2; ++i) {
        const Result<> refused = apply(*store, put("c-x", 1));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
    }
    fail_at("", 0);
    fill(*store, 4, 6);
    EXPECT_EQ(compositions(*store), 6u);
    store.reset();
    EXPECT_EQ(compositions(*open()), 6u);
}

TEST_F(FileFaults, WhatTheDatabaseDoesNotHaveYetTheNextStartTakesFromTheLog) {
    options.commit_after = std::chrono::hours(1);
    auto store = open();
    fill(*store, 0, 3);
    EXPECT_EQ(compositions(*store), 3u);
    fail_at("commit", EIO);  // also at the end
    store.reset();
    fail_at("", 0);
    const auto again = open();
    EXPECT_EQ(compositions(*again), 3u);
    EXPECT_EQ(recovery(*again), "");
}

TEST_F(FileFaults, AFullDiskHalfWayThroughAnEntryLeavesNoTrace) {
    auto store = open();
    fill(*store, 0, 3);
    const auto size = std::filesystem::file_size(log());
    fail_at("written", ENOSPC);
    const Result<> refused = apply(*store, put("c-x", 1));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
    EXPECT_EQ(std::filesystem::file_size(log()), size);
    fail_at("", 0);
    fill(*store, 3, 5);
    store.reset();
    const auto again = open();
    EXPECT_EQ(compositions(*again), 5u);
    EXPECT_EQ(recovery(*again), "");
}

// fsync(2) that failed once says nothing the next time: what was in the group must not come back.
TEST_F(FileFaults, AfterAFailedSyncTheFilesAreOpenedAnewAndTheGroupIsGone) {
    options.commit_after = std::chrono::hours(1);  // what the database does not have yet stays
    for (const char* point : {"sync", "synced"}) {
        auto store = open();
        const std::size_t before = compositions(*store);
        const std::string old_log = log();
        fail_at(point, EIO, true);
        const Result<> refused = apply(*store, put(std::string("c-lost-") + point, 1));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kIo);
        Result<> again;
        do again = apply(*store, put(std::string("c-kept-") + point, 1));
        while (!again && again.error().message.find("in a moment") != std::string::npos);
        ASSERT_TRUE(again) << again.error().message;
        store.reset();
        const auto reopened = open();
        const Result<StoreContents> contents = reopened->load();
        EXPECT_EQ(contents->compositions.size(), before + 1);
        for (const Composition& c : contents->compositions)
            EXPECT_EQ(c.id.value.find("c-lost"), std::string::npos) << c.id.value;
    }
}

TEST_F(FileFaults, ADatabaseThatIsRenamedOrReplacedIsNoticed) {
    const auto store = open();
    fill(*store, 0, 3);
    std::filesystem::rename(options.path, options.path + ".moved");
    for (int i = 0; i < 2; ++i) {
        const Result<> refused = apply(*store, put("c-x", 1));
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().message.find("was renamed, deleted or replaced"), std::string::npos);
        write_bytes(options.path, "another file");
    }
    // Put back, all is well.
    std::filesystem::rename(options.path + ".moved", options.path);
    EXPECT_TRUE(apply(*store, put("c-x", 1)));
    EXPECT_EQ(compositions(*store), 4u);
}

TEST_F(FileFaults, ALogThatIsDeletedIsNoticed) {
    const auto store = open();
    fill(*store, 0, 3);
    std::filesystem::remove(log());
    const Result<> refused = apply(*store, put("c-x", 1));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(".log-"), std::string::npos) << refused.error().message;
}

TEST_F(FileFaults, DeletedUnderTheManagerItIsRecoveredAtTheNextStart) {
    {
        const auto store = open();
        wait_for_snapshot();
        fill(*store, 0, 20);
        std::filesystem::remove(options.path);
        EXPECT_FALSE(apply(*store, put("c-x", 1)));
    }
    const auto store = open();
    EXPECT_EQ(compositions(*store), 20u);
    EXPECT_NE(recovery(*store).find("is missing"), std::string::npos);
}

// A real file system that is full, with SQLite's shared memory on it too.
TEST_F(FileFaults, AFileSystemThatIsFullIsLeftBehindWhenThereIsRoom) {
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
            mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") != 0)
            _exit(77);
        options.fault = nullptr;
        const auto store = open();
        const std::string filler = (folder / "filler").string();
        std::size_t kept = 0;
        for (int round = 0; round < 3; ++round) {
            std::ofstream(filler, std::ios::binary) << std::string(1 << 20, 'x');
            Result<> result;
            for (int i = 0; i < 1000 && result; ++i) {
                result =
                    apply(*store, put("c-" + std::to_string(round * 1000 + i), 1, std::string(900, 'x')));
                if (result) ++kept;
            }
            if (result || result.error().code != ErrorCode::kExhausted) _exit(1);
            std::filesystem::remove(filler);
            for (int i = 0; i < 20; ++i, ++kept)
                if (!apply(*store, put(fmt::format("c-room-{}-{}", round, i), 1))) _exit(2);
        }
        _exit(compositions(*store) == kept ? 0 : 3);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "mounting a tmpfs takes root";
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace memtide::fm
