#include <csignal>
#include <fstream>

#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fabric-manager/store/store_fixture.h"

namespace memtide::fm {
namespace {

using SqliteStoreTest = StoreFixture;

TEST_F(SqliteStoreTest, EverythingOfAMutationIsThereAfterReopening) {
    Mutation mutation = put("c-1", 1);
    Event event;
    event.id = 7;
    event.type = "composition.state";
    mutation.events.push_back(event);
    mutation.quarantine.push_back({SerialNumber{~0ull}, mebibytes(256), "why"});
    mutation.hosts.push_back({HostId("host0"), 12});
    mutation.idempotency = IdempotencyRecord{"key", "hash", mutation.compositions[0].composition};
    {
        const auto store = open();
        ASSERT_TRUE(apply(*store, mutation));
    }
    const auto store = open();
    const Result<StoreContents> contents = store->load();
    ASSERT_TRUE(contents);
    EXPECT_EQ(contents->compositions.at(0).id, CompositionId("c-1"));
    EXPECT_EQ(contents->quarantine.at(0).serial, SerialNumber{~0ull});
    EXPECT_EQ(contents->quarantine.at(0).detail, "why");
    EXPECT_EQ(contents->hosts.at(0).revision, 12u);
    EXPECT_EQ(contents->idempotency.at(0).body_hash, "hash");
    EXPECT_EQ(contents->last_event, 7u);
    EXPECT_EQ(events(*store, 6).at(0), event);
    EXPECT_TRUE(events(*store, 7).empty());
}

TEST_F(SqliteStoreTest, CompositionChangesOnlyFromTheRevisionBefore) {
    const auto store = open();
    ASSERT_TRUE(apply(*store, put("c-1", 1)));
    EXPECT_EQ(apply(*store, put("c-1", 1)).error().code, ErrorCode::kConflict);
    EXPECT_EQ(apply(*store, put("c-1", 3)).error().code, ErrorCode::kConflict);
    EXPECT_EQ(apply(*store, put("c-2", 2)).error().code, ErrorCode::kConflict);
    ASSERT_TRUE(apply(*store, put("c-1", 2)));
    EXPECT_EQ(store->load()->compositions.at(0).revision, 2u);
}

TEST_F(SqliteStoreTest, RefusedMutationLeavesNoTraceAndDoesNotHarmItsGroup) {
    const auto store = open();
    Mutation bad = put("c-1", 5);
    Event event;
    event.id = 1;
    bad.events.push_back(event);
    bad.compositions.insert(bad.compositions.begin(), put("c-9", 1).compositions[0]);
    std::promise<Result<>> first, second, third;
    store->apply(put("c-1", 1), [&](Result<> r) { first.set_value(r); });
    store->apply(bad, [&](Result<> r) { second.set_value(r); });
    store->apply(put("c-2", 1), [&](Result<> r) { third.set_value(r); });
    EXPECT_TRUE(first.get_future().get());
    EXPECT_FALSE(second.get_future().get());
    EXPECT_TRUE(third.get_future().get());
    EXPECT_EQ(store->load()->compositions.size(), 2u);
    EXPECT_TRUE(events(*store, 0).empty());
}

TEST_F(SqliteStoreTest, WatcherSeesWhatBecameDurable) {
    const auto store = open();
    std::vector<std::string> seen;
    store->watch([&](const Mutation& m) { seen.push_back(m.compositions[0].composition.id.value); });
    ASSERT_TRUE(apply(*store, put("c-1", 1)));
    ASSERT_FALSE(apply(*store, put("c-1", 1)));
    ASSERT_TRUE(apply(*store, put("c-2", 1)));
    EXPECT_EQ(seen, (std::vector<std::string>{"c-1", "c-2"}));
}

TEST_F(SqliteStoreTest, WhatIsForgottenIsGone) {
    const auto store = open();
    Mutation mutation = put("c-1", 1);
    mutation.idempotency = IdempotencyRecord{"key", "hash", {}};
    for (std::uint64_t id = 1; id <= 5; ++id) {
        mutation.events.emplace_back();
        mutation.events.back().id = id;
    }
    mutation.quarantine.push_back({SerialNumber{1}, mebibytes(256), "why"});
    ASSERT_TRUE(apply(*store, mutation));
    Mutation forget;
    forget.compositions = mutation.compositions;
    forget.compositions[0].forget = true;
    forget.forget_events_up_to = 3;
    forget.forget_idempotency = {"key"};
    forget.quarantine.push_back({SerialNumber{1}, mebibytes(256), "", true});
    ASSERT_TRUE(apply(*store, forget));
    const Result<StoreContents> contents = store->load();
    EXPECT_TRUE(contents->compositions.empty());
    EXPECT_TRUE(contents->idempotency.empty());
    EXPECT_TRUE(contents->quarantine.empty());
    EXPECT_EQ(contents->first_event, 4u);
    EXPECT_EQ(events(*store, 0).size(), 2u);
}

TEST_F(SqliteStoreTest, FullDiskFailsTheMutationAndKeepsTheRest) {
    options.limit = Bytes{64 * 4096};
    const auto store = open();
    std::uint64_t kept = 0;
    Result<> result;
    for (int i = 0; i < 1000 && result; ++i) {
        result = apply(*store, put("c-" + std::to_string(i), 1, std::string(2000, 'x')));
        if (result) ++kept;
    }
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kExhausted);
    EXPECT_EQ(store->load()->compositions.size(), kept);
    // With room again it goes on.
    Mutation forget = put("c-0", 1);
    forget.compositions[0].forget = true;
    EXPECT_TRUE(apply(*store, forget));
    EXPECT_TRUE(apply(*store, put("c-new", 1)));
}

TEST_F(SqliteStoreTest, FailingWriteIsAnIoError) {
    const pid_t child = fork();
    if (child == 0) {  // a process of its own: the limit holds for all its files
        const auto store = open();
        signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{200'000, 200'000};
        setrlimit(RLIMIT_FSIZE, &limit);
        Result<> result;
        std::size_t kept = 0;
        for (int i = 0; i < 1000 && result; ++i) {
            result = apply(*store, put("c-" + std::to_string(i), 1, std::string(2000, 'x')));
            if (result) ++kept;
        }
        const bool told = !result && (result.error().code == ErrorCode::kIo ||
                                      result.error().code == ErrorCode::kExhausted);
        _exit(told && store->load()->compositions.size() == kept ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(SqliteStoreTest, AcknowledgedMutationsSurviveKillAndATornWal) {
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        const auto store = open();
        for (int i = 0;; ++i) {
            if (!apply(*store, put("c-" + std::to_string(i), 1, std::string(500, 'x')))) _exit(1);
            if (write(pipes[1], &i, sizeof i) != sizeof i) _exit(1);
        }
    }
    int acknowledged = 0;
    while (acknowledged < 50)
        ASSERT_EQ(read(pipes[0], &acknowledged, sizeof acknowledged), ssize_t{sizeof acknowledged});
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(pipes[0]);
    close(pipes[1]);
    // Writes that were under way when the power went.
    std::ofstream(options.path + "-wal", std::ios::app | std::ios::binary) << std::string(1000, '\x5a');
    std::ofstream(StatePaths(options.path).logs().back(), std::ios::app | std::ios::binary) << "ENTR\x7";
    const auto store = open();
    EXPECT_GT(store->load()->compositions.size(), static_cast<std::size_t>(acknowledged));
}

TEST_F(SqliteStoreTest, FileThatIsNoDatabaseIsRefused) {
    std::ofstream(options.path) << "listen: 127.0.0.1:8080\n" << std::string(8192, '#');
    EXPECT_EQ(open_sqlite_store(options).error().code, ErrorCode::kProtocol);
}

TEST_F(SqliteStoreTest, OtherSchemaAndOtherProgramsAreRefused) {
    {
        const auto store = open();
    }
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(options.path.c_str(), &raw), SQLITE_OK);
    sqlite3_exec(raw, "PRAGMA user_version=99", nullptr, nullptr, nullptr);
    sqlite3_close(raw);
    const Result<std::unique_ptr<Store>> newer = open_sqlite_store(options);
    ASSERT_FALSE(newer);
    EXPECT_NE(newer.error().message.find("schema version 99"), std::string::npos);
    ASSERT_EQ(sqlite3_open(options.path.c_str(), &raw), SQLITE_OK);
    sqlite3_exec(raw, "PRAGMA application_id=5", nullptr, nullptr, nullptr);
    sqlite3_close(raw);
    EXPECT_NE(open_sqlite_store(options).error().message.find("another program"), std::string::npos);
}

TEST_F(SqliteStoreTest, FolderThatDoesNotExistIsAClearError) {
    options.path = (folder / "nowhere" / "state.db").string();
    const Result<std::unique_ptr<Store>> store = open_sqlite_store(options);
    ASSERT_FALSE(store);
    EXPECT_NE(store.error().message.find("folder"), std::string::npos);
}

}  // namespace
}  // namespace memtide::fm
