#include "cxl-emul/qemu/guest_image.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/process/child.h"

namespace memtide::emul {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class GuestImage : public testing::Test {
  protected:
    GuestImage() {
        std::string name = testing::TempDir() + "guest-image-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~GuestImage() override {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }
    std::string write(const std::string& name, const std::string& content) {
        const auto path = fs::path(folder_) / name;
        fs::create_directories(path.parent_path());
        std::ofstream(path) << content;
        return path;
    }
    std::string folder_;
};

TEST(ModuleOrder, DependenciesComeFirstAndOnce) {
    constexpr std::string_view kDep =
        "kernel/net/9p/9pnet.ko.xz:\n"
        "kernel/fs/netfs/netfs.ko.xz:\n"
        "kernel/fs/9p/9p.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n"
        "kernel/net/9p/9pnet_virtio.ko.xz: kernel/net/9p/9pnet.ko.xz kernel/fs/netfs/netfs.ko.xz\n";
    constexpr std::array<std::string_view, 2> kWanted = {"9p", "9pnet_virtio"};
    EXPECT_THAT(*module_load_order(kDep, "", kWanted),
                ElementsAre("kernel/fs/netfs/netfs.ko.xz", "kernel/net/9p/9pnet.ko.xz",
                            "kernel/fs/9p/9p.ko.xz", "kernel/net/9p/9pnet_virtio.ko.xz"));
}

TEST(ModuleOrder, BuiltInModulesAreLeftOut) {
    constexpr std::array<std::string_view, 1> kWanted = {"virtio_console"};
    EXPECT_TRUE(module_load_order("", "kernel/drivers/char/virtio_console.ko\n", kWanted)->empty());
}

TEST(ModuleOrder, DashesAndUnderscoresAreTheSame) {
    constexpr std::array<std::string_view, 1> kWanted = {"pvpanic_pci"};
    EXPECT_THAT(*module_load_order("k/pvpanic-pci.ko.xz: k/pvpanic.ko.xz\nk/pvpanic.ko.xz:\n", "", kWanted),
                ElementsAre("k/pvpanic.ko.xz", "k/pvpanic-pci.ko.xz"));
}

TEST(ModuleOrder, ModuleThatTheKernelLacksIsNamed) {
    constexpr std::array<std::string_view, 1> kWanted = {"cxl_pci"};
    EXPECT_EQ(module_load_order("a/b.ko:\n", "", kWanted).error().message,
              "the guest kernel has no module cxl_pci; run scripts/setup");
}

TEST_F(GuestImage, CpioReadsBackWhatWasPutIn) {
    CpioArchive archive;
    archive.folder("bin");
    archive.file("bin/tool", "#!/bin/sh\n", 0755);
    archive.file("empty", "", 0644);
    const auto path = write("image.cpio", archive.finish());
    process::Command list;
    list.argv = {"cpio", "-it", "-F", path};
    auto listed = process::run(list, std::chrono::seconds(20));
    ASSERT_TRUE(listed) << listed.error().message;
    EXPECT_EQ(listed->standard_output, "bin\nbin/tool\nempty\n");
    process::Command extract;
    extract.argv = {"cpio", "-id", "-F", path};
    extract.working_directory = folder_;
    ASSERT_TRUE(process::run(extract, std::chrono::seconds(20)));
    EXPECT_EQ(fs::status(folder_ + "/bin/tool").permissions() & fs::perms::owner_exec, fs::perms::owner_exec);
    EXPECT_EQ(fs::file_size(folder_ + "/bin/tool"), 10U);
}

TEST_F(GuestImage, ScriptsAreValidShell) {
    const GuestMaterial material{.folder = "/cache dir/guest", .kernel = "", .version = "6.12"};
    for (const auto& script : {init_script(), second_stage_script(material, {"/it's here/helper", "/p",
                                                                             "http://10.0.2.101:8080"})}) {
        process::Command check;
        check.argv = {"sh", "-n", write("script", script)};
        auto checked = process::run(check, std::chrono::seconds(20));
        ASSERT_TRUE(checked) << checked.error().message;
        EXPECT_TRUE(checked->exit.succeeded()) << checked->standard_error;
    }
}

TEST_F(GuestImage, PathsWithBlanksAndQuotesReachTheGuestWhole) {
    const GuestMaterial material{.folder = "/cache dir/guest", .kernel = "", .version = "6.12"};
    const auto script = second_stage_script(material, {"/it's here/helper", "", ""});
    EXPECT_THAT(script, HasSubstr("'/it'\\''s here/helper' guest "));
    EXPECT_THAT(script, HasSubstr("'/cache dir/guest/lib/modules/6.12' /lib/modules/6.12"));
}

TEST_F(GuestImage, MemtideInTheGuestFindsTheManagerThereIs) {
    const GuestMaterial material{.folder = "/cache/guest", .kernel = "", .version = "6.12"};
    EXPECT_THAT(second_stage_script(material, {"/helper", "", "http://10.0.2.101:8080"}),
                HasSubstr(" MEMTIDE_URL='http://10.0.2.101:8080'\n"));
    EXPECT_THAT(second_stage_script(material, {"/helper", "", ""}), Not(HasSubstr("MEMTIDE_URL")));
}

TEST_F(GuestImage, MaterialIsLookedForWhereTheEnvironmentSays) {
    write("guest/vmlinuz", "k");
    write("guest/version", "6.12.1\n");
    write("guest/lib/modules/6.12.1/modules.dep", "");
    ::setenv("MEMTIDE_CACHE", folder_.c_str(), 1);
    const auto material = find_guest_material();
    ::unsetenv("MEMTIDE_CACHE");
    ASSERT_TRUE(material) << material.error().message;
    EXPECT_EQ(material->version, "6.12.1");
    EXPECT_EQ(material->modules(), folder_ + "/guest/lib/modules/6.12.1");
}

TEST_F(GuestImage, EachKernelHasAFolderOfItsOwn) {
    write("guest-7.3/vmlinuz", "k");
    write("guest-7.3/version", "7.3.4\n");
    write("guest-7.3/lib/modules/7.3.4/modules.dep", "");
    ::setenv("MEMTIDE_CACHE", folder_.c_str(), 1);
    const auto material = find_guest_material("7.3");
    const auto usual = find_guest_material();
    const auto other = find_guest_material("7.4");
    ::unsetenv("MEMTIDE_CACHE");
    ASSERT_TRUE(material) << material.error().message;
    EXPECT_EQ(material->kernel, folder_ + "/guest-7.3/vmlinuz");
    EXPECT_EQ(material->version, "7.3.4");
    EXPECT_FALSE(usual);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().message, "no guest kernel 7.4 in " + folder_ + "; run scripts/setup");
}

TEST_F(GuestImage, MissingMaterialNamesThePlaceAndTheSetup) {
    ::setenv("MEMTIDE_CACHE", folder_.c_str(), 1);
    const auto material = find_guest_material();
    ::unsetenv("MEMTIDE_CACHE");
    ASSERT_FALSE(material);
    EXPECT_EQ(material.error().message, "no guest kernel in " + folder_ + "; run scripts/setup");
}

}  // namespace
}  // namespace memtide::emul
