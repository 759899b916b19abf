// Torn, damaged and missing files: what is recovered, what is refused, and what is said.
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>

#include <fmt/format.h>

#include "tests/fabric-manager/store/store_fixture.h"

namespace memtide::fm {
namespace {

class Recovery : public StoreFixture {
  protected:
    // 100 compositions, of which some are in the snapshot only, some in the log only.
    void make() {
        {
            const auto store = open();
            wait_for_snapshot();
            fill(*store, 0, 50);
        }
        std::filesystem::remove(options.path + ".snapshot");
        options.snapshot_after = Bytes{1};
        {
            const auto store = open();  // takes a snapshot, since there is none
            wait_for_snapshot();
        }
        options.snapshot_after = mebibytes(64);
        const auto store = open();
        fill(*store, 50, 100);
    }
    void expect_whole(const std::string& reason) {
        const auto store = open();
        EXPECT_EQ(compositions(*store), 100u);
        EXPECT_EQ(events(*store, 0, 1000).size(), 101u);
        const std::string told = recovery(*store);
        EXPECT_NE(told.find(reason), std::string::npos) << told;
        EXPECT_NE(told.find("nothing that was acknowledged is lost"), std::string::npos) << told;
        fill(*store, 200, 201);
    }
};

TEST_F(Recovery, AFlippedByteInARowIsSeenAndRecovered) {
    make();
    flip_in(options.path, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    expect_whole("its checksum does not fit its contents");
}

TEST_F(Recovery, TheRowIsNamed) {
    make();
    flip_in(options.path, "\"id\":\"c-42\"");
    const auto store = open();
    EXPECT_NE(recovery(*store).find("table compositions, row c-42"), std::string::npos) << recovery(*store);
    EXPECT_NE(recovery(*store).find(options.path), std::string::npos);
}

TEST_F(Recovery, PagesOfGarbageAreRecovered) {
    make();
    std::string bytes = bytes_of(options.path);
    bytes.replace(4096 * 3, 4096 * 10, std::string(4096 * 10, '\xa5'));
    write_bytes(options.path, bytes);
    expect_whole("damaged");
}

TEST_F(Recovery, AFileThatWasCutIsRecovered) {
    make();
    write_bytes(options.path, bytes_of(options.path).substr(0, 4096 * 5));
    expect_whole(options.path);
}

TEST_F(Recovery, AFileThatIsEmptyOrGoneIsRecovered) {
    make();
    write_bytes(options.path, "");
    expect_whole("is empty");
    std::filesystem::remove(options.path);
    const auto store = open();
    EXPECT_EQ(compositions(*store), 101u);
}

// Killed before its first checkpoint, a database is all in its -wal file.
TEST_F(Recovery, AYoungDatabaseThatLostItsWalIsNotTakenForANewOne) {
    const std::filesystem::path young = folder / "young";
    {
        const auto store = open();
        wait_for_snapshot();
        fill(*store, 0, 20);
        std::filesystem::create_directory(young);
        for (const auto& file : std::filesystem::directory_iterator(folder))
            if (file.is_regular_file()) std::filesystem::copy(file.path(), young / file.path().filename());
    }
    const std::vector<std::function<void(const std::string&)>> damages{
        [](const std::string& wal) { std::filesystem::remove(wal); },
        [](const std::string& wal) { std::filesystem::resize_file(wal, 100); },
        [](const std::string& wal) {
            std::string bytes = bytes_of(wal);
            bytes[24] = static_cast<char>(bytes[24] ^ 1);
            write_bytes(wal, bytes);
        },
    };
    for (std::size_t i = 0; i < damages.size(); ++i) {
        const std::filesystem::path copy = folder / fmt::format("copy{}", i);
        std::filesystem::copy(young, copy);
        options.path = (copy / "state.db").string();
        std::filesystem::remove(options.path + "-shm");
        damages[i](options.path + "-wal");
        const auto store = open();
        EXPECT_EQ(compositions(*store), 20u) << i;
        EXPECT_NE(recovery(*store).find("nothing that was acknowledged is lost"), std::string::npos)
            << i << ": " << recovery(*store);
    }
}

TEST_F(Recovery, TheDamagedFileIsKept) {
    make();
    flip_in(options.path, "\"id\":\"c-42\"");
    const std::string damaged = bytes_of(options.path);
    (void)open();
    int kept = 0;
    for (const auto& one : std::filesystem::directory_iterator(folder))
        if (one.path().string().find("state.db.damaged-") != std::string::npos)
            kept += bytes_of(one.path().string()) == damaged ? 1 : 0;
    EXPECT_EQ(kept, 1);
}

TEST_F(Recovery, ADatabaseThatLagsBehindItsLogIsBroughtUp) {
    make();
    // As after a power failure: the log is on the disk, of the database's own log there is nothing.
    const std::string old = bytes_of(options.path);
    {
        const auto store = open();
        fill(*store, 100, 120);
    }
    write_bytes(options.path, old);
    const auto store = open();
    EXPECT_EQ(compositions(*store), 120u);
    EXPECT_EQ(recovery(*store), "");
}

TEST_F(Recovery, ATornTailOfTheLogIsCutAndWritingGoesOn) {
    for (std::size_t torn = 1; torn < 80; torn += 13) {
        {
            const auto store = open();
            apply(*store, put("c-" + std::to_string(torn), 1)).value();
        }
        const std::string bytes = bytes_of(log());
        write_bytes(log(), bytes + bytes.substr(40, torn));
    }
    const auto store = open();
    EXPECT_EQ(compositions(*store), 7u);
    EXPECT_EQ(recovery(*store), "");
}

TEST_F(Recovery, AHoleInTheLogThatTheDatabaseHasDoesNoHarm) {
    make();
    flip_in(log(), "\"id\":\"c-70\"");
    const auto store = open();
    EXPECT_EQ(compositions(*store), 100u);
}

TEST_F(Recovery, DamageOfBothIsRefusedWithWhatIsLostUntilTheOperatorSaysSo) {
    make();
    flip_in(options.path, "\"id\":\"c-42\"");
    flip_in(log(), "\"id\":\"c-70\"");
    for (int i = 0; i < 2; ++i) {
        const std::string refused = refusal();
        EXPECT_NE(refused.find("row c-42"), std::string::npos) << refused;
        EXPECT_NE(refused.find("entries 71 to 71 of the log are missing"), std::string::npos) << refused;
        EXPECT_NE(refused.find("72 to 100 cannot be used"), std::string::npos) << refused;
        EXPECT_NE(refused.find("--recover"), std::string::npos) << refused;
        EXPECT_NE(refused.find("restore"), std::string::npos) << refused;
    }
    options.recover = true;
    const auto store = open();
    EXPECT_EQ(compositions(*store), 70u);
    EXPECT_NE(recovery(*store).find("entries 71 to 71"), std::string::npos);
    fill(*store, 100, 110);
}

TEST_F(Recovery, ALogThatIsGoneIsRefused) {
    make();
    for (const std::string& one : StatePaths(options.path).logs()) std::filesystem::remove(one);
    EXPECT_NE(refusal().find("is missing"), std::string::npos) << refusal();
    options.recover = true;
    EXPECT_EQ(compositions(*open()), 100u);
    options.recover = false;
    EXPECT_EQ(compositions(*open()), 100u);
}

TEST_F(Recovery, WithoutASnapshotDamageIsRefused) {
    make();
    std::filesystem::remove(options.path + ".snapshot");
    flip_in(options.path, "\"id\":\"c-42\"");
    EXPECT_NE(refusal().find("no usable snapshot"), std::string::npos) << refusal();
    EXPECT_EQ(refusal().find("--recover"), std::string::npos) << refusal();
}

TEST_F(Recovery, RecoverThatIsRefusedDoesNotAdviseItselfAndLeavesNothingBehind) {
    make();
    flip_in(options.path, "\"id\":\"c-42\"");
    flip_in(options.path + ".snapshot", "\"id\":\"c-2\"");
    for (const bool recover : {false, true}) {
        options.recover = recover;
        EXPECT_NE(refusal().find("snapshot is damaged too"), std::string::npos) << refusal();
        EXPECT_EQ(refusal().find("--recover"), std::string::npos) << refusal();
    }
    for (const auto& one : std::filesystem::directory_iterator(folder))
        EXPECT_EQ(one.path().string().find(".draft"), std::string::npos) << one.path();
}

// What the store says about snapshot and log until it says that they are good again.
class Recoverability : public Recovery {
  protected:
    Recoverability() { options.check_snapshot_after = std::chrono::milliseconds(0); }
    static std::string told(Store& store) {
        std::mutex mutex;
        std::condition_variable wake;
        std::vector<std::string> said;
        store.watch_damage([&](const std::string& damage) {
            const std::lock_guard lock(mutex);
            said.push_back(damage);
            wake.notify_one();
        });
        (void)store.load();
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return !said.empty() && said.back().empty(); });
        lock.unlock();
        store.watch_damage([](const std::string&) {});
        EXPECT_EQ(said.size(), 2u);
        return said.front();
    }
    // That the database can be lost now.
    void expect_recoverable() {
        write_bytes(options.path, "");
        const auto store = open();
        EXPECT_EQ(compositions(*store), 100u);
        EXPECT_NE(recovery(*store).find("nothing that was acknowledged is lost"), std::string::npos);
    }
};

TEST_F(Recoverability, ADamagedSnapshotIsToldAndReplacedWhileTheDatabaseIsGood) {
    make();
    flip_in(options.path + ".snapshot", "\"id\":\"c-41\"");
    const std::string said = told(*open());
    EXPECT_NE(said.find("row c-41"), std::string::npos) << said;
    EXPECT_NE(said.find(".snapshot"), std::string::npos) << said;
    expect_recoverable();
}

TEST_F(Recoverability, ASnapshotThatCannotBeReadAtAllIsToldToo) {
    make();
    write_bytes(options.path + ".snapshot", std::string(20'000, '#'));
    const std::string said = told(*open());
    EXPECT_NE(said.find(".snapshot"), std::string::npos) << said;
    expect_recoverable();
}

TEST_F(Recoverability, ADamagedEntryOfTheLogIsToldAndMadeUpFor) {
    make();
    flip_in(log(), "\"id\":\"c-70\"");
    const std::string said = told(*open());
    EXPECT_NE(said.find("entry 71 is missing"), std::string::npos) << said;
    EXPECT_NE(said.find("are no entry"), std::string::npos) << said;
    expect_recoverable();
}

// Damaged it looks like an entry that was being written when the manager was killed; but the database has it.
TEST_F(Recoverability, TheLastEntryOfTheLogIsMissedWhenTheDatabaseHasIt) {
    make();
    flip_in(log(), "\"id\":\"c-99\"");
    const std::string said = told(*open());
    EXPECT_NE(said.find("entry 100 is missing"), std::string::npos) << said;
    expect_recoverable();
}

TEST_F(Recoverability, ALostSegmentOfTheLogIsTold) {
    make();
    {
        const auto store = open();  // a segment of its own
    }
    const std::vector<std::string> segments = StatePaths(options.path).logs();
    ASSERT_GE(segments.size(), 2u);
    for (std::size_t i = 0; i + 1 < segments.size(); ++i) std::filesystem::remove(segments[i]);
    const std::string said = told(*open());
    EXPECT_NE(said.find("entry 51 is missing"), std::string::npos) << said;
    expect_recoverable();
}

TEST_F(Recoverability, WhatIsGoodIsNotToldAndWhatWasMendedNotAgain) {
    make();
    flip_in(log(), "\"id\":\"c-70\"");
    (void)told(*open());
    std::vector<std::string> said;
    {
        const auto store = open();
        store->watch_damage([&](const std::string& damage) { said.push_back(damage); });
    }
    EXPECT_TRUE(said.empty()) << said.front();
}

TEST_F(Recovery, ADamagedSnapshotIsSeenToo) {
    make();
    flip_in(options.path, "\"id\":\"c-42\"");
    flip_in(options.path + ".snapshot", "\"id\":\"c-41\"");
    EXPECT_NE(refusal().find("snapshot is damaged too"), std::string::npos) << refusal();
    EXPECT_NE(refusal().find("row c-41"), std::string::npos) << refusal();
}

TEST_F(Recovery, AnInterruptedRecoveryIsFinished) {
    make();
    flip_in(options.path, "\"id\":\"c-42\"");
    // Everything but the last rename has happened.
    std::filesystem::copy_file(options.path, options.path + ".damaged-x");
    {
        const auto store = open();
    }
    std::filesystem::rename(options.path, options.path + ".recovering");
    const auto store = open();
    EXPECT_EQ(compositions(*store), 100u);
}

TEST_F(Recovery, SnapshotsKeepTheLogShort) {
    options.snapshot_after = Bytes{20'000};
    const auto store = open();
    for (int i = 0; i < 40; ++i) {
        fill(*store, i * 25, (i + 1) * 25);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    std::uintmax_t size = 0;
    for (const std::string& one : StatePaths(options.path).logs()) size += std::filesystem::file_size(one);
    // 1000 entries of about 800 bytes were written; twice the database, and what came during a snapshot,
    // stay.
    EXPECT_LT(size, 4 * std::filesystem::file_size(options.path) + 400'000);
}

// Whatever single place of the files is damaged: all is there, or opening is refused; nothing is silently
// lost.
TEST_F(Recovery, NoSingleDamageLosesAnythingSilently) {
    make();
    const std::filesystem::path good = folder / "good";
    std::filesystem::create_directory(good);
    for (const auto& one : std::filesystem::directory_iterator(folder))
        if (one.is_regular_file()) std::filesystem::copy_file(one, good / one.path().filename());
    std::mt19937 random(4711);
    int recovered = 0;
    int refused = 0;
    for (int i = 0; i < 120; ++i) {
        for (const auto& one : std::filesystem::directory_iterator(folder))
            if (one.is_regular_file()) std::filesystem::remove(one);
        std::vector<std::string> files;
        for (const auto& one : std::filesystem::directory_iterator(good)) {
            std::filesystem::copy_file(one, folder / one.path().filename());
            if (std::filesystem::file_size(one) != 0)
                files.push_back((folder / one.path().filename()).string());
        }
        std::ranges::sort(files);
        const std::string& victim = files[random() % files.size()];
        std::string bytes = bytes_of(victim);
        const std::size_t at = random() % bytes.size();
        switch (random() % 3) {
            case 0:
                bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
                break;
            case 1:
                bytes.resize(at);
                break;
            default:
                for (std::size_t j = at; j < std::min(at + 512, bytes.size()); ++j)
                    bytes[j] = static_cast<char>(random());
        }
        write_bytes(victim, bytes);
        const Result<std::unique_ptr<Store>> store = open_sqlite_store(options);
        if (!store) {
            ++refused;
            EXPECT_NE(store.error().message.find(options.path), std::string::npos);
            continue;
        }
        EXPECT_EQ(compositions(**store), 100u) << victim << " at " << at;
        if (!recovery(**store).empty()) ++recovered;
    }
    // One damaged file of the three is always survived, but for what no one can tell from a torn write.
    EXPECT_GE(recovered, 10);
    EXPECT_LT(refused, 5);
}

}  // namespace
}  // namespace memtide::fm
