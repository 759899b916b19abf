#include "tests/tiering-agent/hotplug/fake_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>

#include <fmt/format.h>

namespace memtide::agent {
namespace fs = std::filesystem;
namespace {

std::unexpected<Error> refuse(ErrorCode code, const std::string& path, const std::string& text) {
    return fail(code, fmt::format("fake kernel refuses \"{}\" in {}", text, path));
}
std::string dax_of(const std::string& region) { return "dax" + region.substr(6) + ".0"; }

}  // namespace

ScratchFolder::ScratchFolder() {
    // In memory where possible: the fake kernel writes many small files.
    const fs::path parent = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string pattern = (parent / "memtide-agent-test.XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
}
ScratchFolder::~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

FakeKernel::FakeKernel(std::string root, Bytes block_size) : Files(std::move(root)), block_size_(block_size) {
    sync();
}

void FakeKernel::plug(const std::string& memdev, SerialNumber serial, Bytes size) {
    devices[memdev] = {
        .serial = serial, .size = size, .decoder = fmt::format("decoder{}.0", next_endpoint_++)};
    sync();
}

void FakeKernel::pull(const std::string& memdev) {
    const std::string decoder = devices.at(memdev).decoder;
    devices.erase(memdev);
    for (auto& [name, region] : regions) {
        const auto target = std::ranges::find(region.targets, decoder);
        if (target == region.targets.end()) continue;
        release_region(region);
        region.committed = false;
        target->clear();
    }
    sync();
}

std::set<std::string> FakeKernel::names_touched() const {
    static const std::regex kName("(region|decoder|dax|memory|mem)[0-9]+(\\.[0-9]+)?");
    std::set<std::string> names;
    for (const std::string& write : writes)
        for (std::sregex_iterator it(write.begin(), write.end(), kName), end; it != end; ++it)
            names.insert(it->str());
    return names;
}

// --- The tree ---

// Everything that should be in the tree: files with their text, folders ("/"), links ("@target").
std::map<std::string, std::string> FakeKernel::tree() const {
    std::map<std::string, std::string> tree;
    const auto put = [&](const std::string& path, const std::string& text) { tree[path] = text; };
    put("sys/devices/system/memory/block_size_bytes", fmt::format("{:x}", block_size_.value));
    put("sys/devices/system/node/online", "0-1");
    put("sys/devices/system/node/has_memory", "0-1");
    put("sys/devices/system/node/node1/distance", "20 10");
    put("sys/bus/dax/drivers/device_dax/bind", "");
    put("sys/bus/dax/drivers/device_dax/remove_id", "");
    put("sys/bus/dax/drivers_autoprobe", autoprobe ? "1" : "0");
    if (has_kmem) put("sys/bus/dax/drivers/kmem/bind", "");
    for (const auto& [name, device] : devices) {
        put(fmt::format("sys/bus/cxl/devices/{}/mode", device.decoder), device.mode);
        put(fmt::format("sys/bus/cxl/devices/{}/dpa_size", device.decoder),
            fmt::format("{:#018x}", device.reserved));
    }
    for (const auto& [name, region] : regions) {
        const std::string path = "sys/bus/cxl/devices/" + name;
        put(path + "/interleave_granularity", std::to_string(region.granularity));
        put(path + "/interleave_ways", std::to_string(region.ways));
        put(path + "/size", fmt::format("{:#x}", region.size));
        put(path + "/resource", fmt::format("{:#x}", region.size == 0 ? ~0ULL : region.start));
        put(path + "/commit", region.committed ? "1" : "0");
        for (std::size_t i = 0; i < region.targets.size(); ++i)
            put(fmt::format("{}/target{}", path, i), region.targets[i]);
        if (!region.enabled) continue;
        const std::string dax = dax_of(name);
        const std::string device = fmt::format("{}/dax_{}/{}", path, name, dax);
        put(device + "/size", std::to_string(region.size));
        put(device + "/resource", fmt::format("{:#x}", region.start));
        put(fmt::format("{}/dax_{}/driver", path, name), "@../cxl_dax_region");
        if (!region.dax_driver.empty()) put(device + "/driver", "@drivers/" + region.dax_driver);
        put("sys/bus/dax/devices/" + dax, "@" + absolute(device));
    }
    for (const auto& [index, block] : blocks_) {
        const std::string path = fmt::format("sys/devices/system/memory/memory{}", index);
        put(path + "/state", block.online ? "online" : "offline");
        put(path + "/valid_zones", !block.online                  ? "Normal Movable"
                                   : block.zone == Zone::kMovable ? "Movable"
                                                                  : "Normal");
        put(path + "/node1", "/");
    }
    return tree;
}

void FakeKernel::sync() {
    auto wanted = tree();
    for (const auto& [path, text] : shown_)
        if (!wanted.contains(path)) {
            fs::remove(absolute(path));
            // Folders go when they are empty, as devices do.
            std::error_code not_empty;
            for (fs::path folder = fs::path(absolute(path)).parent_path();
                 !not_empty && fs::is_empty(folder, not_empty); folder = folder.parent_path())
                fs::remove(folder, not_empty);
        }
    for (const auto& [path, text] : wanted) {
        const auto shown = shown_.find(path);
        if (shown != shown_.end() && shown->second == text) continue;
        const std::string full = absolute(path);
        fs::create_directories(fs::path(full).parent_path());
        if (text.starts_with('@')) {
            fs::remove(full);
            fs::create_symlink(text.substr(1), full);
        } else if (text == "/") {
            fs::create_directories(full);
        } else {
            std::ofstream(full) << text << '\n';
        }
    }
    shown_ = std::move(wanted);
}

// --- Writes ---

Result<> FakeKernel::write(const std::string& path, std::string_view text) {
    if (writes_until_killed == 0 && !killed_after_the_write) throw Killed{};
    for (auto& [suffix, fault] : faults) {
        if (!path.ends_with(suffix) || fault.second == 0) continue;
        if (fault.second > 0) --fault.second;
        return refuse(fault.first, path, std::string(text));
    }
    writes.push_back(fmt::format("{}={}", path, text));
    auto result = apply(path, std::string(text));
    sync();
    if (writes_until_killed == 0) throw Killed{};
    if (writes_until_killed > 0) --writes_until_killed;
    return result;
}

Result<> FakeKernel::apply(const std::string& path, const std::string& text) {
    static const std::regex kRegion("sys/bus/cxl/devices/(region[0-9]+)/(\\w+)");
    static const std::regex kDecoder("sys/bus/cxl/devices/(decoder[0-9.]+)/(\\w+)");
    static const std::regex kDax("sys/bus/dax/drivers/(kmem|device_dax)/(bind|unbind)");
    static const std::regex kNames("sys/bus/dax/drivers/device_dax/(new_id|remove_id)");
    static const std::regex kBlock("sys/devices/system/memory/memory([0-9]+)/state");
    std::smatch match;
    if (std::regex_match(path, match, kRegion)) return write_region(match[1], match[2], text);
    if (std::regex_match(path, match, kDecoder)) return write_decoder(match[1], match[2], text);
    if (std::regex_match(path, match, kBlock)) return write_block(std::stoull(match[1]), text);
    if (std::regex_match(path, match, kDax))
        return match[2] == "unbind" ? unbind_dax(text, match[1]) : bind_dax(text, match[1]);
    if (std::regex_match(path, match, kNames)) return name_devdax(match[1] == "new_id", text);
    if (path == "sys/bus/dax/drivers_autoprobe") {
        autoprobe = text == "1";
        return {};
    }
    if (path == "sys/bus/cxl/drivers/cxl_region/bind") {
        const auto region = regions.find(text);
        if (region == regions.end() || !region->second.committed)
            return refuse(ErrorCode::kNotFound, path, text);
        if (region->second.enabled) return refuse(ErrorCode::kConflict, path, text);
        region->second.enabled = true;
        return autoprobe && dax_binds_to_kmem && has_kmem ? bind_dax(dax_of(text), "kmem") : Result<>{};
    }
    return refuse(ErrorCode::kNotFound, path, text);
}

Result<> FakeKernel::write_region(const std::string& name, const std::string& attribute,
                                  const std::string& text) {
    const auto it = regions.find(name);
    if (it == regions.end()) return refuse(ErrorCode::kNotFound, name, text);
    FakeRegion& region = it->second;
    const auto number = [&] { return std::stoull(text, nullptr, 0); };
    if (attribute == "commit" && number() == 0) {
        release_region(region);
        region.committed = false;
        return {};
    }
    if (region.committed) return refuse(ErrorCode::kConflict, name + "/" + attribute, text);
    if (attribute == "interleave_granularity") {
        if (region.granularity != 0) return refuse(ErrorCode::kConflict, name, text);
        region.granularity = number();
    } else if (attribute == "interleave_ways") {
        if (region.ways != 0) return refuse(ErrorCode::kConflict, name, text);
        region.ways = number();
        region.targets.resize(region.ways);
    } else if (attribute == "size") {
        if (region.ways == 0 || region.size != 0) return refuse(ErrorCode::kConflict, name, text);
        region.start = free_address();
        region.size = number();
    } else if (attribute.starts_with("target")) {
        const std::size_t position = std::stoul(attribute.substr(6));
        const auto device =
            std::ranges::find_if(devices, [&](const auto& d) { return d.second.decoder == text; });
        if (position >= region.ways || device == devices.end() || device->second.mode != "ram" ||
            device->second.reserved != region.size / region.ways)
            return refuse(ErrorCode::kInvalidArgument, name, text);
        region.targets[position] = text;
    } else if (attribute == "commit") {
        const bool whole =
            !region.targets.empty() && std::ranges::none_of(region.targets, &std::string::empty);
        if (!whole) return refuse(ErrorCode::kNotFound, name, text);
        region.committed = true;
    }
    return {};
}

Result<> FakeKernel::write_decoder(const std::string& name, const std::string& attribute,
                                   const std::string& text) {
    if (attribute == "delete_region") {
        const auto region = regions.find(text);
        if (region == regions.end()) return refuse(ErrorCode::kNotFound, name, text);
        release_region(region->second);
        regions.erase(region);
        return {};
    }
    if (attribute == "create_ram_region") {
        if (text != next_region(name).value_or("")) return refuse(ErrorCode::kConflict, name, text);
        regions[text] = {};
        return {};
    }
    for (auto& [memdev, device] : devices) {
        if (device.decoder != name) continue;
        const bool in_use =
            std::ranges::any_of(regions, [&](const auto& r) { return r.second.has_target(name); });
        if (in_use || (attribute == "mode" && device.reserved != 0))
            return refuse(ErrorCode::kConflict, name, text);
        if (attribute == "mode") device.mode = text;
        if (attribute == "dpa_size") device.reserved = std::stoull(text, nullptr, 0);
        return {};
    }
    return refuse(ErrorCode::kNotFound, name, text);
}

Result<> FakeKernel::write_block(std::uint64_t index, const std::string& text) {
    const auto it = blocks_.find(index);
    if (it == blocks_.end()) return refuse(ErrorCode::kNotFound, "block", text);
    Block& block = it->second;
    if (text == "offline") {
        if (!block.online) return refuse(ErrorCode::kInvalidArgument, "block", text);
        if (block.busy != 0) {
            if (block.busy > 0) --block.busy;
            return refuse(ErrorCode::kConflict, "block", text);
        }
        block = {.online = false, .zone = Zone::kNone, .busy = 0};
        return {};
    }
    if (block.online) return refuse(ErrorCode::kInvalidArgument, "block", text);
    block.online = true;
    block.zone = text == "online_movable" ? Zone::kMovable : Zone::kNormal;
    return {};
}

// --- Regions, dax devices, blocks ---

FakeKernel::FakeRegion* FakeKernel::region_of_dax(const std::string& dax) {
    for (auto& [name, region] : regions)
        if (region.enabled && dax_of(name) == dax) return &region;
    return nullptr;
}

// A name that device_dax knows makes it take the device, if no other driver has it.
Result<> FakeKernel::name_devdax(bool add, const std::string& dax) {
    if (!add) {
        devdax_names.erase(dax);
        return {};
    }
    devdax_names.insert(dax);
    const FakeRegion* const region = region_of_dax(dax);
    return region != nullptr && region->dax_driver.empty() ? bind_dax(dax, "device_dax") : Result<>{};
}

void FakeKernel::show_memory(const std::string& dax, std::uint64_t size) const {
    const std::string path = absolute("dev/" + dax);
    fs::create_directories(fs::path(path).parent_path());
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out | std::ios::trunc);
    fs::resize_file(path, size);
    const auto written = contents.find(dax);
    if (written == contents.end()) return;
    for (const auto& [offset, bytes] : written->second) {
        file.seekp(static_cast<std::streamoff>(offset));
        file << bytes;
    }
}

Result<> FakeKernel::bind_dax(const std::string& dax, const std::string& driver) {
    FakeRegion* const region = region_of_dax(dax);
    if (region == nullptr || (driver == "kmem" && !has_kmem))
        return refuse(ErrorCode::kNotFound, driver, dax);
    if (!region->dax_driver.empty()) return refuse(ErrorCode::kConflict, driver, dax);
    if (driver == "kmem") {
        if (whole_blocks({region->start, region->size}, block_size_).count == 0)
            return refuse(ErrorCode::kInvalidArgument, driver, dax);
        add_blocks(*region);
    } else {
        // Not of the type that this driver takes by itself.
        if (!devdax_names.contains(dax)) return refuse(ErrorCode::kNotFound, driver, dax);
        show_memory(dax, region->size);
    }
    region->dax_driver = driver;
    return {};
}

void FakeKernel::add_blocks(const FakeRegion& region) {
    const BlockSpan span = whole_blocks({region.start, region.size}, block_size_);
    for (std::uint64_t index = span.first; index < span.first + span.count; ++index)
        blocks_[index] = {.online = auto_online != AutoOnline::kOffline,
                          .zone = auto_online == AutoOnline::kOffline      ? Zone::kNone
                                  : auto_online == AutoOnline::kKernelZone ? Zone::kNormal
                                                                           : Zone::kMovable,
                          .busy = 0};
}

Result<> FakeKernel::unbind_dax(const std::string& dax, const std::string& driver) {
    FakeRegion* const region = region_of_dax(dax);
    if (region == nullptr || region->dax_driver != driver) return refuse(ErrorCode::kNotFound, driver, dax);
    if (driver == "device_dax") fs::remove(absolute("dev/" + dax));
    if (driver == "kmem") {
        const BlockSpan span = whole_blocks({region->start, region->size}, block_size_);
        bool stuck = false;
        for (std::uint64_t index = span.first; index < span.first + span.count; ++index) {
            if (blocks_.at(index).online)
                stuck = true;
            else
                blocks_.erase(index);
        }
        if (stuck) stuck_.push_back({region->start, region->size});
        region->kmem_stuck = stuck;
    }
    region->dax_driver.clear();
    return {};
}

void FakeKernel::release_region(FakeRegion& region) {
    if (!region.enabled) return;
    for (const auto& [name, other] : regions)
        if (&other == &region && !region.dax_driver.empty())
            (void)unbind_dax(dax_of(name), std::string(region.dax_driver));
    region.enabled = false;
}

std::uint64_t FakeKernel::free_address() const {
    std::uint64_t address = window_start;
    const auto taken = [&](AddressRange range) {
        return std::ranges::any_of(stuck_, [&](AddressRange r) { return r.overlaps(range); }) ||
               std::ranges::any_of(regions, [&](const auto& r) {
                   return AddressRange{r.second.start, r.second.size}.overlaps(range);
               });
    };
    while (taken({address, mebibytes(256).value})) address += mebibytes(256).value;
    return address;
}

// --- CxlBus ---

Result<CxlView> FakeKernel::enumerate() {
    CxlView view;
    std::map<std::string, std::string> memdev_of;
    for (const auto& [name, device] : devices) {
        memdev_of[device.decoder] = name;
        const bool in_use =
            std::ranges::any_of(regions, [&](const auto& r) { return r.second.has_target(device.decoder); });
        Memdev memdev{.name = name,
                      .serial = device.serial,
                      .ram_size = device.size,
                      .has_endpoint = device.has_endpoint};
        if (device.has_endpoint) {
            if (!in_use) memdev.free_decoder = device.decoder;
            memdev.ram_windows = {{.name = "decoder0.0", .largest_free = gibibytes(4), .ways = 1}};
        }
        view.memdevs.push_back(std::move(memdev));
    }
    for (const auto& [name, region] : regions) {
        Region seen{
            .name = name, .window = "decoder0.0", .committed = region.committed, .enabled = region.enabled};
        if (region.size != 0) seen.range = {region.start, region.size};
        for (const std::string& target : region.targets)
            if (!target.empty()) seen.targets.push_back({.decoder = target, .memdev = memdev_of[target]});
        view.regions.push_back(std::move(seen));
    }
    return view;
}

Result<std::string> FakeKernel::next_region(const std::string&) {
    int free = 0;
    while (regions.contains(fmt::format("region{}", free))) ++free;
    return fmt::format("region{}", free);
}

Result<> FakeKernel::create_ram_region(const std::string& window, const std::string& name) {
    return write("sys/bus/cxl/devices/" + window + "/create_ram_region", name);
}

}  // namespace memtide::agent
