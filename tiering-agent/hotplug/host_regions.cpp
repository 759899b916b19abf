// Actions on CXL regions and dax devices: the recipe of the kernel's sysfs files
// (Documentation/ABI/testing/sysfs-bus-cxl and sysfs-bus-dax).
#include <fmt/format.h>

#include "common/log/log.h"
#include "tiering-agent/hotplug/host.h"

namespace memtide::agent {
namespace {

const std::string kCxlDevices = "sys/bus/cxl/devices/";
const std::string kCxlDrivers = "sys/bus/cxl/drivers/";
const std::string kDaxDevice{kDaxDevices};
const std::string kDaxDriver{kDaxDrivers};

ActionResult to_result(Result<> result, ActionKind kind) {
    if (result) return {};
    return {.error = Finding{fmt::format("{}-failed", to_string(kind)), std::move(result.error().message)}};
}

// Writes a number unless the file already holds it: the kernel refuses to set geometry twice.
Result<> set_number(Files& files, const std::string& path, std::uint64_t number) {
    if (const auto now = files.read_number(path); now && *now == number) return {};
    return files.write(path, fmt::format("{:#x}", number));
}

}  // namespace

ActionResult SysfsHost::perform(const Action& action) {
    switch (action.kind) {
        case ActionKind::kCreateRegion:
            return to_result(create_region(action), action.kind);
        case ActionKind::kConfigureRegion:
            return to_result(configure_region(action), action.kind);
        case ActionKind::kEnableRegion:
            return to_result(enable_region(action), action.kind);
        case ActionKind::kAwaitDax:
            return await_dax(action);
        case ActionKind::kReadBack:
            return read_back_region(action);
        case ActionKind::kBindKmem:
            return bind_kmem(action);
        case ActionKind::kOnlineBlocks:
            return to_result(online_blocks(action), action.kind);
        case ActionKind::kRezoneBlocks:
            return rezone_blocks(action);
        case ActionKind::kOfflineBlocks:
            return offline_blocks(action);
        case ActionKind::kUnbindKmem:
            return to_result(unbind_kmem(action), action.kind);
        case ActionKind::kDestroyRegion:
            return destroy_region(action);
        case ActionKind::kForgetRegion:
            return to_result(parts_.records.forget(action.region), action.kind);
    }
    return {.error = Finding{"internal", "unknown action"}};
}

Result<> SysfsHost::create_region(const Action& action) {
    const auto name = parts_.bus.next_region(action.window);
    if (!name) return std::unexpected(name.error());
    // First the record: an agent killed right after the kernel made the region recognises it by that.
    if (auto kept = parts_.records.put({.region = *name, .serials = action.serials}); !kept) return kept;
    if (auto made = parts_.bus.create_ram_region(action.window, *name); !made) {
        if (auto forgotten = parts_.records.forget(*name); !forgotten)
            log::warning("stale region record stays", {{"region", *name}, {"reason", forgotten.error()}});
        return made;
    }
    return configure_region([&] {
        Action configure = action;
        configure.region = *name;
        return configure;
    }());
}

// The endpoint decoder's share of the device's capacity: all of what the region takes of it.
Result<> SysfsHost::reserve_capacity(const std::string& name, Bytes size) {
    Files& files = parts_.files;
    const std::string decoder = kCxlDevices + name;
    const std::string mode = files.read(decoder + "/mode").value_or("");
    const std::uint64_t reserved = files.read_number(decoder + "/dpa_size").value_or(0);
    if (mode == "ram" && reserved == size.value) return {};
    if (reserved != 0)
        if (auto freed = files.write(decoder + "/dpa_size", "0"); !freed) return freed;
    if (mode != "ram")
        if (auto set = files.write(decoder + "/mode", "ram"); !set) return set;
    return files.write(decoder + "/dpa_size", fmt::format("{:#x}", size.value));
}

// Capacity of every memdev, then the geometry, then the targets in their order. What is there already from an
// attempt that was cut short stays.
Result<> SysfsHost::set_targets(const Action& action) {
    Files& files = parts_.files;
    const std::string region = kCxlDevices + action.region;
    const std::size_t ways = action.decoders.size();
    for (std::size_t i = 0; i < ways; ++i) {
        const std::string target = fmt::format("{}/target{}", region, i);
        if (files.read(target).value_or("") == action.decoders[i]) continue;
        if (auto reserved = reserve_capacity(action.decoders[i], {action.size.value / ways}); !reserved)
            return reserved;
        if (i == 0) {
            const std::string granularity = region + "/interleave_granularity";
            if (auto set = set_number(files, granularity, action.granularity); !set) return set;
            if (auto set = set_number(files, region + "/interleave_ways", ways); !set) return set;
            if (auto set = set_number(files, region + "/size", action.size.value); !set) return set;
        }
        if (auto set = files.write(target, action.decoders[i]); !set)
            return std::unexpected(
                std::move(set.error())
                    .with_context("the kernel does not attach the memdev to the region (a CXL "
                                  "bridge on its way may have no HDM decoder left; see dmesg)"));
    }
    return {};
}

Result<> SysfsHost::configure_region(const Action& action) {
    Files& files = parts_.files;
    const std::string region = kCxlDevices + action.region;
    if (auto set = set_targets(action); !set) return set;
    // The record learns the addresses before there is memory at them: see Seen::records.
    const auto start = files.read_number(region + "/resource");
    if (!start) return std::unexpected(start.error());
    if (auto kept = parts_.records.put(
            {.region = action.region, .serials = action.serials, .range = {*start, action.size.value}});
        !kept)
        return kept;
    if (auto committed = files.write(region + "/commit", "1"); !committed)
        return std::unexpected(
            std::move(committed.error())
                .with_context("the kernel does not commit the region (see dmesg; inside a virtual "
                              "machine, hide the hypervisor bit of the CPU)"));
    return enable_region(action);
}

Result<> SysfsHost::enable_region(const Action& action) {
    return perform_quietly(
        action, [&] { return parts_.files.write(kCxlDrivers + "cxl_region/bind", action.region); });
}

ActionResult SysfsHost::await_dax(const Action& action) {
    Files& files = parts_.files;
    const std::string dax_region = "dax_" + action.region;
    const std::string path = kCxlDevices + action.region + "/" + dax_region;
    const auto loaded = parts_.modules.load("dax_cxl");
    if (files.exists(path) && !files.link_target(path + "/driver"))
        if (auto bound = perform_quietly(
                action, [&] { return files.write(kCxlDrivers + "cxl_dax_region/bind", dax_region); });
            !bound)
            return {.error = Finding{"dax-missing", loaded ? bound.error().message : loaded.error().message}};
    for (const std::string& name : files.list(path))
        if (name.starts_with("dax") && name.find('.') != std::string::npos) return {};
    return {.error = Finding{"dax-missing",
                             fmt::format("{} has no dax device: the kernel module dax_cxl is needed{}",
                                         action.region, loaded ? "" : ": " + loaded.error().message)}};
}

// A dax device in devdax mode may be mapped by a program, which would get SIGBUS.
ActionResult SysfsHost::leave_device_dax(const std::string& dax, Bytes size, bool force) {
    auto holders = find_dax_users(parts_.files, dax, size);
    if (!holders.empty() && !force)
        return {
            .error = Finding{"still-held",
                             fmt::format("{} is in devdax mode and mapped by {} process(es), first {} ({})",
                                         dax, holders.size(), holders.front().pid.value_or(0),
                                         holders.front().command)},
            .holders = std::move(holders)};
    if (auto left = parts_.files.write(kDaxDriver + "device_dax/unbind", dax); !left)
        return to_result(std::move(left), ActionKind::kBindKmem);
    return to_result(forget_dax_name(parts_.files, "device_dax", dax), ActionKind::kBindKmem);
}

ActionResult SysfsHost::bind_kmem(const Action& action) {
    Files& files = parts_.files;
    const std::string driver_link = kDaxDevice + action.dax + "/driver";
    if (files.link_target(driver_link) == "device_dax")
        if (auto left = leave_device_dax(action.dax, action.size, action.force); left.error) return left;
    if (!files.exists(kDaxDriver + "kmem")) {
        if (const auto loaded = parts_.modules.load("kmem"); !loaded)
            return {.error = Finding{"kmem-missing",
                                     fmt::format("{} cannot become memory without the kernel module "
                                                 "kmem: {}",
                                                 action.dax, loaded.error().message)}};
        if (files.link_target(driver_link) == "kmem") return {};  // the module took it by itself
    }
    // From here on this host may write to it.
    if (action.verify)
        if (auto noted = parts_.records.note_used(action.id); !noted)
            return to_result(std::move(noted), action.kind);
    auto bound = files.write(kDaxDriver + "kmem/bind", action.dax);
    if (!bound && bound.error().code == ErrorCode::kNotFound) {
        // Not of the type that kmem takes by default: name the device to it, which also binds.
        bound = files.write(kDaxDriver + "kmem/new_id", action.dax);
        if (bound && files.link_target(driver_link) != "kmem")
            bound = files.write(kDaxDriver + "kmem/bind", action.dax);
    }
    return to_result(std::move(bound), action.kind);
}

Result<> SysfsHost::unbind_kmem(const Action& action) {
    // With a block online, unbinding would leave the memory stuck until a restart. The plan saw them offline,
    // but a udev rule may have been faster since.
    const auto block_size = read_block_size(parts_.files);
    if (!block_size) return std::unexpected(block_size.error());
    for (const MemoryBlock& block : blocks_in(action.range, *block_size))
        if (block.state != BlockState::kOffline)
            return fail(ErrorCode::kConflict,
                        fmt::format("memory{} went online again meanwhile", block.index));
    return parts_.files.write(kDaxDriver + "kmem/unbind", action.dax);
}

ActionResult SysfsHost::destroy_region(const Action& action) {
    Files& files = parts_.files;
    const std::string region = kCxlDevices + action.region;
    const std::string dax_region = fmt::format("{}/dax_{}", region, action.region);
    for (const std::string& name : files.list(dax_region))
        if (files.link_target(fmt::format("{}/{}/driver", dax_region, name)) == "device_dax")
            if (auto left = leave_device_dax(name, action.size, action.force); left.error) return left;
    const auto destroy = [&]() -> Result<> {
        if (files.read_number(region + "/commit").value_or(0) != 0)
            if (auto reset = files.write(region + "/commit", "0"); !reset) return reset;
        if (auto gone = files.write(kCxlDevices + action.window + "/delete_region", action.region); !gone)
            return gone;
        // Capacity that stays reserved would be in the way of the next region; its decoder may be gone by
        // now.
        for (const std::string& decoder : action.decoders) {
            if (files.read_number(kCxlDevices + decoder + "/dpa_size").value_or(0) == 0) continue;
            if (auto freed = files.write(kCxlDevices + decoder + "/dpa_size", "0"); !freed)
                log::warning("capacity stays reserved", {{"decoder", decoder}, {"reason", freed.error()}});
        }
        if (action.release)
            if (auto forgotten = parts_.records.forget_used(action.id); !forgotten) return forgotten;
        return parts_.records.forget(action.region);
    };
    return to_result(destroy(), action.kind);
}

}  // namespace memtide::agent
