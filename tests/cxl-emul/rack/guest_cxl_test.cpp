#include "cxl-emul/rack/guest_cxl.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace memtide::emul {
namespace {

namespace fs = std::filesystem;

// A made-up /sys of a guest with one memdev in slot 4, its region at 16 GiB, blocks of 128 MiB.
class GuestSysfs : public testing::Test {
  protected:
    GuestSysfs() {
        std::string name = testing::TempDir() + "guest-sysfs-XXXXXX";
        root_ = ::mkdtemp(name.data());
        write("bus/pci/slots/3/address", "0000:0f:00");
        write("bus/pci/slots/4/address", "0000:10:00");
        write("bus/pci/devices/0000:10:00.0/mem0/serial", "0x4d54000100000002");
        write("bus/cxl/devices/root0/uport", "");
        write("bus/cxl/devices/decoder0.0/mode", "ram");
        fs::create_directory_symlink(root_ / "bus/pci/devices/0000:10:00.0/mem0",
                                     root_ / "bus/cxl/devices/mem0");
        write("bus/pci/devices/0000:10:00.0/mem0/ram/size", "0x10000000");
        fs::create_directories(root_ / "bus/cxl/devices/endpoint3");
        fs::create_directory_symlink(root_ / "bus/pci/devices/0000:10:00.0/mem0",
                                     root_ / "bus/cxl/devices/endpoint3/uport");
        write("bus/cxl/devices/endpoint3/decoder3.0/region", "");
        write("devices/system/memory/block_size_bytes", "8000000");
    }
    ~GuestSysfs() override {
        std::error_code ignored;
        fs::remove_all(root_, ignored);
    }
    void write(const std::string& name, const std::string& content) {
        fs::create_directories((root_ / name).parent_path());
        std::ofstream(root_ / name) << content << "\n";
    }
    void add_region(const char* first_block, const char* second_block) {
        write("bus/cxl/devices/endpoint3/decoder3.0/region", "region0");
        write("bus/cxl/devices/region0/resource", "0x400000000");
        write("bus/cxl/devices/region0/size", "0x10000000");
        write("devices/system/memory/memory128/state", first_block);
        write("devices/system/memory/memory129/state", second_block);
        write("devices/system/memory/memory130/state", "online");  // not the region's
    }
    fs::path root_;
};

TEST_F(GuestSysfs, MemdevsHaveTheirSerialAndSize) {
    const auto memdevs = guest_memdevs(root_);
    ASSERT_EQ(memdevs.size(), 1U);
    EXPECT_EQ(memdevs[0].name, "mem0");
    EXPECT_EQ(memdevs[0].serial, "0x4d54000100000002");
    EXPECT_EQ(memdevs[0].size, 268435456U);
}

TEST_F(GuestSysfs, BusIsEnumeratedWithRootDecoderAndSlots) {
    EXPECT_TRUE(cxl_bus_is_enumerated(root_, 2));
    EXPECT_FALSE(cxl_bus_is_enumerated(root_, 3));
    fs::remove_all(root_ / "bus/cxl/devices/decoder0.0");
    EXPECT_FALSE(cxl_bus_is_enumerated(root_, 2));
}

TEST_F(GuestSysfs, SlotWithOnlineMemoryIsInUse) {
    add_region("offline", "online");
    const auto unused = check_slot_unused(root_, 4);
    ASSERT_FALSE(unused);
    EXPECT_EQ(unused.error().code, ErrorCode::kConflict);
    EXPECT_EQ(unused.error().message, "region0 of mem0 is in use: 1 memory block is online (memory129)");
}

TEST_F(GuestSysfs, EveryOnlineBlockIsNamed) {
    add_region("online", "online");
    EXPECT_EQ(check_slot_unused(root_, 4).error().message,
              "region0 of mem0 is in use: 2 memory blocks are online (memory128, memory129)");
}

TEST_F(GuestSysfs, BlockThatIsGoingOfflineStillCounts) {
    add_region("going-offline", "offline");
    EXPECT_FALSE(check_slot_unused(root_, 4));
}

TEST_F(GuestSysfs, OfflineRegionIsUnused) {
    add_region("offline", "offline");
    EXPECT_TRUE(check_slot_unused(root_, 4));
}

TEST_F(GuestSysfs, DeviceWithoutRegionIsUnused) { EXPECT_TRUE(check_slot_unused(root_, 4)); }
TEST_F(GuestSysfs, EmptySlotIsUnused) { EXPECT_TRUE(check_slot_unused(root_, 3)); }

TEST_F(GuestSysfs, SlotThatDoesNotExistIsNotFound) {
    EXPECT_EQ(check_slot_unused(root_, 9).error().code, ErrorCode::kNotFound);
}

TEST_F(GuestSysfs, NonsenseInSysfsIsNoCrash) {
    add_region("online", "online");
    write("bus/cxl/devices/region0/resource", "what");
    write("devices/system/memory/block_size_bytes", "0");
    EXPECT_TRUE(check_slot_unused(root_, 4));
    EXPECT_TRUE(guest_memdevs("/nonexistent").empty());
    EXPECT_FALSE(cxl_bus_is_enumerated("/nonexistent", 0));
}

}  // namespace
}  // namespace memtide::emul
