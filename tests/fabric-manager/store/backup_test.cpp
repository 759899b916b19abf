#include "fabric-manager/store/backup.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/fabric-manager/store/store_fixture.h"

namespace memtide::fm {
namespace {

class Backup : public StoreFixture {
  protected:
    std::string copy() const { return (folder / "copy.db").string(); }
    Result<std::string> back_up() const { return backup_state(options.path, copy()); }
    Result<std::string> restore() const { return restore_state(options.path, copy()); }
};

TEST_F(Backup, OfARunningStoreHasAllThatWasAcknowledged) {
    const auto store = open();
    fill(*store, 0, 30);
    const Result<std::string> told = back_up();
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_NE(told->find("30 compositions, 30 events"), std::string::npos) << *told;
    fill(*store, 30, 40);
    options.path = copy();
    EXPECT_EQ(compositions(*open()), 30u);
}

TEST_F(Backup, OfAStoppedStoreHasWhatIsInTheLogOnly) {
    std::string old;
    {
        const auto store = open();
        fill(*store, 0, 10);
    }
    old = bytes_of(options.path);
    {
        const auto store = open();
        fill(*store, 10, 20);
    }
    write_bytes(options.path, old);
    ASSERT_TRUE(back_up());
    options.path = copy();
    EXPECT_EQ(compositions(*open()), 20u);
}

TEST_F(Backup, DoesNotWriteOverAnything) {
    (void)open();
    write_bytes(copy(), "precious");
    EXPECT_EQ(back_up().error().code, ErrorCode::kAlreadyExists);
    EXPECT_EQ(bytes_of(copy()), "precious");
    EXPECT_EQ(backup_state(options.path + ".none", copy()).error().code, ErrorCode::kNotFound);
}

TEST_F(Backup, RestoreBringsBackTheOldStateAndKeepsTheNewOneAside) {
    {
        const auto store = open();
        fill(*store, 0, 30);
        Mutation hosts;
        hosts.hosts.push_back({HostId("host0"), 12});
        ASSERT_TRUE(apply(*store, hosts));
        ASSERT_TRUE(back_up());
        fill(*store, 30, 40);
        const Result<std::string> refused = restore();
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
    }
    const Result<std::string> told = restore();
    ASSERT_TRUE(told) << told.error().message;
    const auto store = open();
    EXPECT_EQ(compositions(*store), 30u);
    EXPECT_EQ(recovery(*store), "");
    // No agent may take what it did for an older revision for an answer to this one.
    EXPECT_GT(store->load()->hosts.at(0).revision, std::uint64_t{1} << 32);
    const std::size_t at = told->find("what was there is ");
    ASSERT_NE(at, std::string::npos) << *told;
    const std::string aside = told->substr(at + 18, told->find(" now") - at - 18);
    EXPECT_TRUE(file_exists(aside)) << aside;
    fill(*store, 30, 31);
}

TEST_F(Backup, ADamagedBackupIsRefusedAndNothingHasChanged) {
    {
        const auto store = open();
        fill(*store, 0, 30);
        ASSERT_TRUE(back_up());
        fill(*store, 30, 40);
    }
    flip_in(copy(), "\"id\":\"c-7\"");
    const Result<std::string> refused = restore();
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("row c-7"), std::string::npos) << refused.error().message;
    write_bytes(copy(), "no database");
    EXPECT_NE(restore().error().message.find("no backup of a state file"), std::string::npos);
    EXPECT_EQ(restore().error().message.find("SELECT"), std::string::npos) << restore().error().message;
    write_bytes(copy(), "");
    EXPECT_EQ(restore().error().code, ErrorCode::kInvalidArgument);
    std::filesystem::remove(copy());
    EXPECT_EQ(restore().error().code, ErrorCode::kNotFound);
    EXPECT_EQ(compositions(*open()), 40u);
}

TEST_F(Backup, RestoreWhereThereWasNoState) {
    {
        const auto store = open();
        fill(*store, 0, 5);
        ASSERT_TRUE(back_up());
    }
    options.path = (folder / "other.db").string();
    ASSERT_TRUE(restore());
    EXPECT_EQ(compositions(*open()), 5u);
}

TEST_F(Backup, AnInterruptedRestoreIsFinished) {
    {
        const auto store = open();
        fill(*store, 0, 5);
        ASSERT_TRUE(back_up());
    }
    ASSERT_TRUE(restore());
    std::filesystem::rename(options.path, options.path + ".restoring");
    EXPECT_EQ(compositions(*open()), 5u);
}

}  // namespace
}  // namespace memtide::fm
