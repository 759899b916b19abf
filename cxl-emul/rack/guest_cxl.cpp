#include "cxl-emul/rack/guest_cxl.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "common/base/ids.h"

namespace memtide::emul {
namespace fs = std::filesystem;

namespace {

// Content of a sysfs file without the line end; empty when it cannot be read.
std::string attribute(const fs::path& path) {
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    return line;
}

std::optional<std::uint64_t> number(std::string_view text, int base) {
    if (text.starts_with("0x")) {
        text.remove_prefix(2);
        base = 16;
    }
    std::uint64_t value = 0;
    const auto end = text.data() + text.size();
    if (text.empty() || std::from_chars(text.data(), end, value, base).ptr != end) return std::nullopt;
    return value;
}

std::vector<fs::path> entries(const fs::path& folder) {
    std::vector<fs::path> out;
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
        out.push_back(it->path());
    return out;
}

// A name of one kind, "mem3" but not "memory3", is the prefix and a number.
bool is_numbered(const std::string& name, std::string_view prefix) {
    return name.starts_with(prefix) && number(std::string_view(name).substr(prefix.size()), 10).has_value();
}

// Memory blocks of a physical range that are not offline.
std::vector<std::string> online_blocks(const fs::path& sysfs, std::uint64_t start, std::uint64_t size) {
    std::vector<std::string> online;
    const auto memory = sysfs / "devices/system/memory";
    const auto block_size = number(attribute(memory / "block_size_bytes"), 16);  // hexadecimal without 0x
    if (!block_size || *block_size == 0) return online;
    for (auto block = start / *block_size; block * *block_size < start + size; ++block) {
        const auto name = fmt::format("memory{}", block);
        const auto state = attribute(memory / name / "state");
        if (!state.empty() && state != "offline") online.push_back(name);
    }
    return online;
}

std::string online_text(const std::vector<std::string>& blocks) {
    constexpr std::size_t kNamed = 8;
    const auto named = std::span(blocks).first(std::min(blocks.size(), kNamed));
    const auto others = blocks.size() - named.size();
    return fmt::format(
        "{} online ({}{})",
        blocks.size() == 1 ? "1 memory block is" : fmt::format("{} memory blocks are", blocks.size()),
        fmt::join(named, ", "), others > 0 ? fmt::format(" and {} more", others) : "");
}

// Regions that an endpoint decoder of a memdev takes part in.
std::vector<std::string> regions_of(const fs::path& devices, const std::string& memdev) {
    std::vector<std::string> regions;
    for (const auto& endpoint : entries(devices)) {
        if (!is_numbered(endpoint.filename(), "endpoint")) continue;
        std::error_code error;
        if (fs::canonical(endpoint / "uport", error).filename() != memdev) continue;
        for (const auto& decoder : entries(endpoint)) {
            const auto region = attribute(decoder / "region");
            if (!region.empty()) regions.push_back(region);
        }
    }
    return regions;
}

}  // namespace

std::vector<GuestMemdev> guest_memdevs(const std::string& sysfs) {
    std::vector<GuestMemdev> memdevs;
    for (const auto& path : entries(fs::path(sysfs) / "bus/cxl/devices")) {
        if (!is_numbered(path.filename(), "mem")) continue;
        const auto serial = number(attribute(path / "serial"), 16);
        const auto size = number(attribute(path / "ram/size"), 16);
        memdevs.push_back({path.filename(), format_serial({serial.value_or(0)}), size.value_or(0)});
    }
    return memdevs;
}

bool cxl_bus_is_enumerated(const std::string& sysfs, unsigned slots) {
    const auto devices = fs::path(sysfs) / "bus/cxl/devices";
    std::error_code error;
    if (!fs::exists(devices / "root0", error) || !fs::exists(devices / "decoder0.0", error)) return false;
    return entries(fs::path(sysfs) / "bus/pci/slots").size() >= slots;
}

Result<> check_slot_unused(const std::string& sysfs, unsigned slot) {
    const fs::path root(sysfs);
    const auto slot_folder = root / "bus/pci/slots" / std::to_string(slot);
    std::error_code error;
    if (!fs::exists(slot_folder, error))
        return fail(ErrorCode::kNotFound, fmt::format("the guest has no PCIe slot {}", slot));
    const auto function = attribute(slot_folder / "address") + ".0";
    const auto devices = root / "bus/cxl/devices";
    for (const auto& entry : entries(root / "bus/pci/devices" / function)) {
        const std::string memdev = entry.filename();
        if (!is_numbered(memdev, "mem")) continue;
        for (const auto& region : regions_of(devices, memdev)) {
            const auto start = number(attribute(devices / region / "resource"), 16);
            const auto size = number(attribute(devices / region / "size"), 16);
            if (!start || !size) continue;
            const auto online = online_blocks(root, *start, *size);
            if (online.empty()) continue;
            return fail(ErrorCode::kConflict,
                        fmt::format("{} of {} is in use: {}", region, memdev, online_text(online)));
        }
    }
    return {};
}

}  // namespace memtide::emul
