#include "fabric-manager/placement/candidates.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric-manager/placement/ld_fit.h"

namespace memtide::fm {

namespace {

// Free vPPBs by switch, of the virtual switches that the host is attached to.
Outcome<> find_vppbs(const Inventory& inventory, const Host& host, Candidates& out) {
    std::vector<std::string> why;
    if (!host.held.empty())
        return refuse(problem::kHostNotReachable,
                      fmt::format("host {} gets no memory now: {}", host.id.value, host.held),
                      ErrorCode::kUnavailable);
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
        std::vector<VppbAddress>& free = out.vppbs[at.switch_id];
        for (const Vppb& vppb : vcs->vppbs)
            if (vppb.status == BindingStatus::kUnbound && !vppb.owner)
                free.push_back({at.switch_id, at.vcs, vppb.id});
    }
    if (!out.vppbs.empty()) return {};
    if (host.attach.empty()) why.emplace_back("the configuration attaches it to no switch");
    return refuse(problem::kHostNotReachable,
                  fmt::format("host {} cannot get memory now: {}", host.id.value, fmt::join(why, "; ")),
                  ErrorCode::kUnavailable);
}

// What the host has already, where.
struct HostUse {
    Bytes total;
    std::map<DeviceId, Bytes> by_device;
    std::map<SwitchId, Bytes> by_switch;
};
HostUse use_of(const Inventory& inventory, const HostId& host) {
    HostUse use;
    for (const Inventory::Claim* claim : inventory.claims_of(host)) {
        use.total += claim->size;
        use.by_device[claim->memory.device] += claim->size;
        use.by_switch[claim->where.switch_id] += claim->size;
    }
    return use;
}

// How much more fits under a limit of `percent` of `total`, when `has` is there already.
Bytes room_under(std::uint8_t percent, Bytes total, Bytes has) {
    if (percent >= 100) return total;
    const Bytes allowed{total.value / 100 * percent + total.value % 100 * percent / 100};
    return allowed > has ? allowed - has : Bytes{};
}

Bytes value_or_zero(const auto& map, const auto& key) {
    const auto found = map.find(key);
    return found == map.end() ? Bytes{} : found->second;
}

// Another tenant that has memory of the device.
std::optional<std::string> stranger_on(const Inventory& inventory, const Device& device,
                                       const std::optional<std::string>& tenant) {
    for (const LogicalDevice& ld : device.lds) {
        if (!ld.owner) continue;
        const Inventory::Claim* claim = inventory.claim_of(*ld.owner);
        if (claim != nullptr && claim->tenant != tenant)
            return claim->tenant.value_or("nobody in particular");
    }
    return std::nullopt;
}

// "" when the request itself said so.
std::string origin_text(const std::string& origin) {
    return origin.empty() ? "" : fmt::format(" ({})", origin);
}

class Finder {
  public:
    Finder(const Inventory& inventory, const PlacementRequest& request, Candidates& out)
        : inventory_(inventory), request_(request), out_(out), use_(use_of(inventory, request.host)) {}

    void add_switch(const SwitchId& id) {
        const PlacementPolicy& policy = request_.policy;
        if (policy.max_percent_per_switch < 100) {
            const Bytes room = out_.most_per_switch[id] = room_under(
                policy.max_percent_per_switch, use_.total + request_.size, value_or_zero(use_.by_switch, id));
            if (room < kCxlGranule) return exclude_switch(id);
        }
        switch_held_ = &inventory_.find_switch(id)->held;
        for (const Device* device : inventory_.devices_behind(id)) {
            if (device->is_multi_headed())
                add_heads(*device, id);
            else
                add(*device);
        }
    }

  private:
    // `detail` makes the text: most are never read.
    template <typename Detail>
    void exclude(const Device& device, const char* constraint, Detail detail) {
        if (request_.explain) out_.excluded.push_back({device.id.value, constraint, detail()});
    }

    void exclude_switch(const SwitchId& id) {
        out_.limited = true;
        for (const Device* device : inventory_.devices_behind(id)) {
            if (counted_.insert(device).second) count(*device, inventory_.sums(*device));
            exclude(*device, "max-percent-per-switch", [&] {
                return fmt::format(
                    "the host has {} behind {}, and at most {} % of its memory may be behind one "
                    "switch{}",
                    format_bytes(value_or_zero(use_.by_switch, id)), id.value,
                    request_.policy.max_percent_per_switch,
                    origin_text(request_.origins.max_percent_per_switch));
            });
        }
    }

    void add(const Device& device) {
        const PoolDevice& sums = inventory_.sums(device);
        count(device, sums);
        if (auto found = candidate(device, sums, sums.largest_free, nullptr)) out_.devices.push_back(*found);
    }

    void count(const Device& device, const PoolDevice& sums) {
        out_.free += sums.free;
        out_.capacity += sums.capacity;
        out_.largest_device = std::max(out_.largest_device, device.size);
    }

    // One device, whichever of its heads the host reaches: it counts once, and a composition has one part of
    // it, through the head that offers more.
    void add_heads(const Device& device, const SwitchId& id) {
        const PoolDevice& sums = inventory_.sums(device);
        if (counted_.insert(&device).second) count(device, sums);
        for (const Head& head : device.heads) {
            if (head.switch_id != id) continue;
            const auto found = candidate(device, sums, largest_free(device, &head), &head);
            if (!found) continue;
            const auto other = std::ranges::find(out_.devices, &device, &Candidate::device);
            if (other == out_.devices.end())
                out_.devices.push_back(*found);
            else if (is_better(*found, *other))
                *other = *found;
        }
    }

    [[nodiscard]] bool is_better(const Candidate& one, const Candidate& other) const {
        const bool fits = rank_ld(*one.device, *one.offers, request_.size).has_value();
        const bool other_fits = rank_ld(*other.device, *other.offers, request_.size).has_value();
        return fits != other_fits ? fits : one.most > other.most;
    }

    // What the device offers, cut to the limits; nullopt, with the reason in `excluded`, when it is nothing.
    std::optional<Candidate> candidate(const Device& device, const PoolDevice& sums, Bytes most,
                                       const Head* through) {
        const std::string& held = device.held.empty() ? *switch_held_ : device.held;
        if (!held.empty()) {
            exclude(device, "flapping", [&] { return held; });
            return std::nullopt;
        }
        if (!device.unfit.empty()) {
            exclude(device, "unhealthy", [&] { return device.unfit; });
            return std::nullopt;
        }
        if (std::ranges::find(request_.without, device.id) != request_.without.end()) {
            exclude(device, "in-use", [] { return "another part of the interleaved region is on it"; });
            return std::nullopt;
        }
        if (most.value == 0) {
            exclude_full(device, sums, through);
            return std::nullopt;
        }
        if (request_.policy.exclusive_devices)
            if (const auto stranger = stranger_on(inventory_, device, request_.tenant)) {
                out_.limited = true;
                exclude(device, "exclusive-devices", [&] {
                    return fmt::format("tenant {} has memory of it{}", *stranger,
                                       origin_text(request_.origins.exclusive_devices));
                });
                return std::nullopt;
            }
        Candidate found{&device,
                        &inventory_.offers(device, through),
                        most,
                        sums.free,
                        1 - static_cast<double>(sums.free.value) /
                                static_cast<double>(std::max<std::uint64_t>(sums.capacity.value, 1)),
                        through};
        if (out_.vppbs.at(found.switch_id()).empty()) {
            exclude(device, "no-free-vppb", [&] {
                return fmt::format("{} could be had, but all vPPBs of the host at {} are bound or claimed",
                                   format_bytes(most), found.switch_id().value);
            });
            return std::nullopt;
        }
        return limit(found) ? std::optional(found) : std::nullopt;
    }

    void exclude_full(const Device& device, const PoolDevice& sums, const Head* through) {
        exclude(device, "no-memory", [&] {
            if (sums.free.value == 0) return std::string("all of it is given out");
            if (const std::optional<Bytes> refused = refused_carve(device, through))
                return fmt::format("{} of it are free, but it refused to carve even {}",
                                   format_bytes(sums.free), format_bytes(*refused));
            return fmt::format("{} of it are free, but no LD is", format_bytes(sums.free));
        });
    }

    // Cuts it to the limits; false when nothing is left.
    bool limit(Candidate& candidate) {
        const std::uint8_t percent = request_.policy.max_percent_per_device;
        if (percent >= 100) return true;
        const Device& device = *candidate.device;
        const Bytes has = value_or_zero(use_.by_device, device.id);
        Bytes room = room_under(percent, use_.total + request_.size, has);
        room = device.granularity * (room / device.granularity);
        if (room >= candidate.most) return true;
        out_.limited = true;
        candidate.most = room;
        if (room.value != 0 && is_divided(device.kind)) return true;
        exclude(device, "max-percent-per-device", [&] {
            return fmt::format(
                "the host has {} of it, and at most {} % of its memory may be behind one device{}",
                format_bytes(has), percent, origin_text(request_.origins.max_percent_per_device));
        });
        return false;
    }

    const Inventory& inventory_;
    const PlacementRequest& request_;
    Candidates& out_;
    HostUse use_;
    std::set<const Device*> counted_;           // of the multi-headed ones
    const std::string* switch_held_ = nullptr;  // of the switch whose devices are added
};

}  // namespace

Outcome<Candidates> find_candidates(const Inventory& inventory, const PlacementRequest& request) {
    const Host* host = inventory.host(request.host);
    if (host == nullptr)
        return refuse(problem::kUnknownHost, fmt::format("no host named {}", request.host.value),
                      ErrorCode::kNotFound);
    Candidates out;
    if (Outcome<> ok = find_vppbs(inventory, *host, out); !ok) return std::unexpected(ok.error());
    Finder finder(inventory, request, out);
    for (const auto& [id, vppbs] : out.vppbs)
        if (!request.only_at || *request.only_at == id) finder.add_switch(id);
    return out;
}

}  // namespace memtide::fm
