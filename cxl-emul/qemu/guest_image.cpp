#include "cxl-emul/qemu/guest_image.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/process/child.h"

namespace memtide::emul {
namespace fs = std::filesystem;

namespace {

// Loaded in the initramfs, so that the devices are there before the first program runs.
constexpr std::array<std::string_view, 12> kGuestModules = {
    "9p",       "9pnet_virtio", "overlay", "virtio_console", "virtio_net", "pvpanic_pci",
    "cxl_acpi", "cxl_pci",      "cxl_mem", "dax_cxl",        "device_dax", "kmem"};

Result<std::string> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) return fail_errno("open", path, errno);
    std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (in.bad()) return fail_errno("read", path, errno);
    return content;
}

// Output of "xz -dc FILE" or "zstd -dc FILE".
Result<std::string> decompress(const std::string& program, const std::string& path) {
    process::Command command;
    command.argv = {program, "-dc", "--", path};
    auto output = process::run(std::move(command), std::chrono::seconds(30));
    if (!output) return std::unexpected(std::move(output.error()).with_context("unpacking " + path));
    if (!output->exit.succeeded())
        return fail(ErrorCode::kIo, fmt::format("{} {}: {}", program, path, output->standard_error));
    return std::move(output->standard_output);
}

Result<std::string> module_content(const std::string& path) {
    if (path.ends_with(".xz")) return decompress("xz", path);
    if (path.ends_with(".zst")) return decompress("zstd", path);
    return read_file(path);
}

// "kernel/fs/9p/9p.ko.xz" -> "9p"; the kernel takes - and _ for the same.
std::string module_name(std::string_view path) {
    auto name = std::string(path.substr(path.rfind('/') + 1));
    name = name.substr(0, name.find(".ko"));
    std::ranges::replace(name, '-', '_');
    return name;
}

std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; (at = text.find_first_not_of(" \t", at)) != std::string_view::npos;) {
        const auto end = std::min(text.find_first_of(" \t", at), text.size());
        out.emplace_back(text.substr(at, end - at));
        at = end;
    }
    return out;
}

template <typename Visit>
void each_line(std::string_view text, Visit visit) {
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        visit(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

Result<std::string> find_busybox() {
    for (const char* path : {"/bin/busybox", "/usr/bin/busybox"}) {
        if (::access(path, X_OK) == 0) return read_file(path);
    }
    return fail(ErrorCode::kNotFound,
                "no busybox on this machine; run scripts/setup (it installs busybox-static)");
}

}  // namespace

Result<GuestMaterial> find_guest_material(std::string_view kernel) {
    std::vector<std::string> places;
    if (const char* chosen = std::getenv("MEMTIDE_CACHE"); chosen && *chosen) {
        places.emplace_back(chosen);
    } else {
        places.emplace_back("/var/cache/memtide");
        const char* cache = std::getenv("XDG_CACHE_HOME");
        const char* home = std::getenv("HOME");
        if (cache && *cache) {
            places.push_back(std::string(cache) + "/memtide");
        } else if (home && *home) {
            places.push_back(std::string(home) + "/.cache/memtide");
        }
    }
    const std::string name = kernel.empty() ? "guest" : fmt::format("guest-{}", kernel);
    for (const auto& place : places) {
        const std::string folder = place + "/" + name;
        GuestMaterial material{.folder = folder, .kernel = folder + "/vmlinuz", .version = {}};
        auto version = read_file(material.folder + "/version");
        if (!version) continue;
        material.version = version->substr(0, version->find_first_of(" \n"));
        std::error_code ignored;
        if (fs::exists(material.kernel, ignored) && fs::exists(material.modules() + "/modules.dep", ignored))
            return material;
    }
    return fail(ErrorCode::kNotFound,
                fmt::format("no guest kernel{}{} in {}; run scripts/setup", kernel.empty() ? "" : " ", kernel,
                            fmt::join(places, " or ")));
}

Result<std::vector<std::string>> module_load_order(std::string_view modules_dep,
                                                   std::string_view modules_builtin,
                                                   std::span<const std::string_view> wanted) {
    std::map<std::string, std::string> path_of;
    std::map<std::string, std::vector<std::string>> needs;  // path -> paths, nearest first
    each_line(modules_dep, [&](std::string_view line) {
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) return;
        const auto path = std::string(line.substr(0, colon));
        path_of[module_name(path)] = path;
        needs[path] = words(line.substr(colon + 1));
    });
    std::set<std::string> built_in;
    each_line(modules_builtin, [&](std::string_view line) { built_in.insert(module_name(line)); });

    std::vector<std::string> order;
    const auto add = [&](const std::string& path) {
        if (std::ranges::find(order, path) == order.end()) order.push_back(path);
    };
    for (const auto& module : wanted) {
        const auto name = std::string(module);
        if (built_in.contains(name)) continue;
        const auto path = path_of.find(name);
        if (path == path_of.end())
            return fail(ErrorCode::kNotFound,
                        "the guest kernel has no module " + name + "; run scripts/setup");
        auto& before = needs[path->second];
        std::for_each(before.rbegin(), before.rend(), add);
        add(path->second);
    }
    return order;
}

void CpioArchive::entry(const std::string& path, std::string_view content, unsigned mode) {
    const auto pad = [this] { bytes_.resize((bytes_.size() + 3) / 4 * 4, '\0'); };
    // magic, inode, mode, uid, gid, links, mtime, size, device (2), special device (2), name size, checksum
    bytes_ +=
        fmt::format("070701{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}{:08X}",
                    next_inode_++, mode, 0, 0, 1, 0, content.size(), 0, 0, 0, 0, path.size() + 1, 0);
    bytes_ += path;
    bytes_ += '\0';
    pad();
    bytes_ += content;
    pad();
}

void CpioArchive::folder(const std::string& path) { entry(path, {}, S_IFDIR | 0755); }
void CpioArchive::file(const std::string& path, std::string_view content, unsigned mode) {
    entry(path, content, S_IFREG | mode);
}
std::string CpioArchive::finish() {
    entry("TRAILER!!!", {}, 0);
    return std::move(bytes_);
}

Result<std::string> build_guest_image(const GuestMaterial& material, const GuestImageOptions& options) {
    auto busybox = find_busybox();
    if (!busybox) return busybox;
    auto dependencies = read_file(material.modules() + "/modules.dep");
    if (!dependencies) return dependencies;
    auto built_in = read_file(material.modules() + "/modules.builtin");
    if (!built_in) return built_in;
    auto order = module_load_order(*dependencies, *built_in, kGuestModules);
    if (!order) return std::unexpected(order.error());

    CpioArchive image;
    for (const char* name : {"bin", "dev", "proc", "sys", "lower", "overlay", "root", "modules", "memtide"})
        image.folder(name);
    image.file("bin/busybox", *busybox, 0755);
    image.file("init", init_script(), 0755);
    image.file("memtide/second-stage", second_stage_script(material, options), 0644);
    std::string list;
    for (const auto& path : *order) {
        auto content = module_content(material.modules() + "/" + path);
        if (!content) return content;
        const auto name = module_name(path) + ".ko";
        image.file("modules/" + name, *content, 0644);
        list += name + "\n";
    }
    image.file("modules/order", list, 0644);
    return image.finish();
}

}  // namespace memtide::emul
