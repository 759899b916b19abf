#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace memtide::emul {

// What scripts/setup unpacks for the guests: a stock kernel that is not installed on this machine.
struct GuestMaterial {
    std::string folder;   // with lib/modules/<version> inside
    std::string kernel;   // bzImage
    std::string version;  // "6.12.117+deb12-amd64"
    [[nodiscard]] std::string modules() const { return folder + "/lib/modules/" + version; }
};

// `kernel` as of HostConfig: "7.3"; empty: the usual one. Looks in $MEMTIDE_CACHE, then /var/cache/memtide,
// then $XDG_CACHE_HOME or ~/.cache/memtide. kNotFound names the places and scripts/setup.
Result<GuestMaterial> find_guest_material(std::string_view kernel = {});

// Modules that have to be loaded, each after those it depends on, as paths below the modules folder.
// `modules_dep` is the text of modules.dep (depmod(8)); built-in ones (`modules_builtin`, the text of
// modules.builtin) are left out. kNotFound names a module that the kernel does not have.
Result<std::vector<std::string>> module_load_order(std::string_view modules_dep,
                                                   std::string_view modules_builtin,
                                                   std::span<const std::string_view> wanted);

// An archive in cpio's "newc" format (kernel: Documentation/driver-api/early-userspace/buffer-format.rst).
class CpioArchive {
  public:
    void folder(const std::string& path);
    void file(const std::string& path, std::string_view content, unsigned mode);
    [[nodiscard]] std::string finish();

  private:
    void entry(const std::string& path, std::string_view content, unsigned mode);
    std::string bytes_;
    unsigned next_inode_ = 1;
};

struct GuestImageOptions {
    std::string helper;        // this program, as the guest sees it: through the host's root file system
    std::string program_path;  // folders put in front of the guest's PATH
    std::string manager_url;   // MEMTIDE_URL of everything in the guest; empty: there is no manager
};

// The initramfs of every host of a rack: busybox, the modules for CXL and for the root file system, and the
// script that mounts the host's root read-only under a tmpfs overlay, switches to it, and runs the helper.
// Some 5 MB. kNotFound names what is missing (busybox-static, xz).
Result<std::string> build_guest_image(const GuestMaterial& material, const GuestImageOptions& options);

// The scripts inside, for tests.
std::string init_script();
std::string second_stage_script(const GuestMaterial& material, const GuestImageOptions& options);

}  // namespace memtide::emul
