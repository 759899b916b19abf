#include "fabric-manager/placement/placement.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memtide::fm {

namespace {

// One way from the host to devices: a free vPPB on a switch that answers.
struct Path {
    SwitchId switch_id;
    std::optional<VppbAddress> vppb;  // nullopt: all vPPBs are taken
};

Outcome<std::vector<Path>> find_paths(const Inventory& inventory, const Host& host) {
    std::vector<Path> paths;
    std::vector<std::string> why;
    for (const HostAttachment& at : host.attach) {
        const Switch* owner = inventory.find_switch(at.switch_id);
        if (owner == nullptr || !owner->inventoried || !owner->up) {
            why.push_back(fmt::format("switch {} does not answer", at.switch_id.value));
            continue;
        }
        const auto vcs = std::ranges::find(owner->vcss, at.vcs, &Vcs::id);
        if (vcs == owner->vcss.end() || !vcs->enabled) {
            why.push_back(fmt::format("switch {} has no enabled VCS {}", at.switch_id.value, at.vcs));
            continue;
        }
        Path path{at.switch_id, std::nullopt};
        for (const Vppb& vppb : vcs->vppbs) {
            if (vppb.status != BindingStatus::kUnbound || vppb.composition) continue;
            path.vppb = VppbAddress{at.switch_id, at.vcs, vppb.id};
            break;
        }
        paths.push_back(std::move(path));
    }
    if (!paths.empty()) return paths;
    if (host.attach.empty()) why.emplace_back("the configuration attaches it to no switch");
    return refuse(problem::kHostNotReachable,
                  fmt::format("host {} cannot get memory now: {}", host.id.value, fmt::join(why, "; ")),
                  ErrorCode::kUnavailable);
}

bool is_usable(const LogicalDevice& ld) { return ld.use == LdUse::kFree || ld.use == LdUse::kUnallocated; }

std::optional<Placement> exact(const Device& device, Bytes size) {
    const LogicalDevice* best = nullptr;
    for (const LogicalDevice& ld : device.lds) {
        if (ld.use != LdUse::kFree || ld.size != size) continue;
        if (best == nullptr || (ld.clean && !best->clean)) best = &ld;
    }
    if (best == nullptr) return std::nullopt;
    return Placement{{device.id, best->id}, best->serial, device.port, {}, std::nullopt};
}

std::optional<Placement> in_slot(const Device& device, Bytes size) {
    if (device.kind != DeviceKind::kMld || !size.is_multiple_of(device.granularity)) return std::nullopt;
    if (unallocated(device) < size) return std::nullopt;
    const auto slot = std::ranges::find(device.lds, LdUse::kUnallocated, &LogicalDevice::use);
    if (slot == device.lds.end()) return std::nullopt;
    Carve carve{{{slot->id, Bytes{}}}, {{slot->id, size}}, false};
    return Placement{{device.id, slot->id}, slot->serial, device.port, {}, std::move(carve)};
}

// The LD that is grown or shrunk to the size: the smallest free one above it, else the first usable one.
const LogicalDevice* recarve_target(const Device& device, Bytes size) {
    const LogicalDevice* larger = nullptr;
    const LogicalDevice* first = nullptr;
    for (const LogicalDevice& ld : device.lds) {
        if (!is_usable(ld)) continue;
        if (first == nullptr) first = &ld;
        if (ld.size > size && (larger == nullptr || ld.size < larger->size)) larger = &ld;
    }
    return larger != nullptr ? larger : first;
}

std::optional<Placement> recarved(const Device& device, Bytes size) {
    if (device.kind != DeviceKind::kMld || !size.is_multiple_of(device.granularity)) return std::nullopt;
    if (largest_free(device) < size) return std::nullopt;
    const LogicalDevice* target = recarve_target(device, size);
    if (target == nullptr) return std::nullopt;
    Carve carve{{{target->id, target->size}}, {{target->id, size}}, false};
    const Bytes at_hand = unallocated(device) + target->size;
    Bytes missing = size > at_hand ? size - at_hand : Bytes{};
    for (const LogicalDevice& ld : device.lds) {
        if (missing.value == 0) break;
        if (ld.use != LdUse::kFree || ld.id == target->id) continue;
        const Bytes taken = std::min(ld.size, missing);
        carve.before.push_back({ld.id, ld.size});
        carve.after.push_back({ld.id, ld.size - taken});
        missing -= taken;
    }
    if (missing.value != 0) return std::nullopt;
    return Placement{{device.id, target->id}, target->serial, device.port, {}, std::move(carve)};
}

// "mld-...: up to 512MiB in multiples of 256MiB", for people who were refused.
std::string offer(const Device& device) {
    std::vector<std::string> sizes;
    for (const LogicalDevice& ld : device.lds)
        if (ld.use == LdUse::kFree) sizes.push_back(format_bytes(ld.size));
    if (device.kind == DeviceKind::kSld)
        return fmt::format("{}: {}", device.id.value, sizes.empty() ? "in use" : sizes.front() + " whole");
    if (largest_free(device).value == 0) return fmt::format("{}: no free LD", device.id.value);
    return fmt::format("{}: up to {} in multiples of {}", device.id.value, format_bytes(largest_free(device)),
                       format_bytes(device.granularity));
}

Outcome<> check_size(Bytes size) {
    if (size.value == 0) return refuse(problem::kSizeZero, "a composition needs a size above 0");
    if (!size.is_multiple_of(kCxlGranule))
        return refuse(problem::kSizeNotMultiple,
                      fmt::format("{} is not a multiple of {}, the unit in which CXL memory is given out",
                                  format_bytes(size), format_bytes(kCxlGranule)));
    return {};
}

std::unexpected<Problem> refuse_for_room(const std::vector<const Device*>& devices, const HostId& host,
                                         Bytes size) {
    Bytes largest;
    Bytes free;
    std::vector<std::string> offers;
    for (const Device* device : devices) {
        largest = std::max(largest, device->size);
        for (const LogicalDevice& ld : device->lds)
            if (ld.use == LdUse::kFree) free += ld.size;
        if (device->kind == DeviceKind::kMld) free += unallocated(*device);
        offers.push_back(offer(*device));
    }
    if (size > largest)
        return refuse(
            problem::kExceedsLargestDevice,
            fmt::format("{} is more than any device that host {} reaches has ({}); compositions are "
                        "not spread over devices",
                        format_bytes(size), host.value, format_bytes(largest)),
            ErrorCode::kExhausted);
    if (size > free)
        return refuse(problem::kExceedsFree,
                      fmt::format("{} is more than the {} that are free for host {}", format_bytes(size),
                                  format_bytes(free), host.value),
                      ErrorCode::kExhausted);
    return refuse(problem::kNoFittingDevice,
                  fmt::format("no single device offers {} to host {}: {}", format_bytes(size), host.value,
                              fmt::join(offers, "; ")),
                  ErrorCode::kExhausted);
}

}  // namespace

Outcome<Placement> place(const Inventory& inventory, const HostId& host_id, Bytes size) {
    if (Outcome<> ok = check_size(size); !ok) return std::unexpected(ok.error());
    const Host* host = inventory.host(host_id);
    if (host == nullptr)
        return refuse(problem::kUnknownHost, fmt::format("no host named {}", host_id.value),
                      ErrorCode::kNotFound);
    const Outcome<std::vector<Path>> paths = find_paths(inventory, *host);
    if (!paths) return std::unexpected(paths.error());

    const auto path_to = [&](const Device& device) -> const Path* {
        const auto path = std::ranges::find_if(*paths, [&](const Path& candidate) {
            return candidate.switch_id == device.switch_id && candidate.vppb.has_value();
        });
        return path == paths->end() ? nullptr : &*path;
    };
    std::vector<const Device*> reached;
    for (const auto& [id, device] : inventory.devices()) {
        const bool attached = std::ranges::find(*paths, device.switch_id, &Path::switch_id) != paths->end();
        if (device.present && attached) reached.push_back(&device);
    }
    bool lacks_vppb = false;
    for (const auto way : {&exact, &in_slot, &recarved}) {
        for (const Device* device : reached) {
            std::optional<Placement> found = way(*device, size);
            if (!found) continue;
            const Path* path = path_to(*device);
            if (path == nullptr) {
                lacks_vppb = true;
                continue;
            }
            found->where = *path->vppb;
            return *std::move(found);
        }
    }
    if (lacks_vppb)
        return refuse(
            problem::kNoFreeVppb,
            fmt::format("there is memory for {}, but all vPPBs of host {} are bound or claimed; release "
                        "one of its compositions first",
                        format_bytes(size), host_id.value),
            ErrorCode::kExhausted);
    return refuse_for_room(reached, host_id, size);
}

}  // namespace memtide::fm
