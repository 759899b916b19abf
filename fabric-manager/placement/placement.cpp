#include "fabric-manager/placement/placement.h"

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fabric-manager/placement/candidates.h"
#include "fabric-manager/placement/choice.h"
#include "fabric-manager/placement/ld_fit.h"

namespace memtide::fm {

Outcome<> check_size(Bytes size, const PlacementPolicy& policy) {
    if (size.value == 0) return refuse(problem::kSizeZero, "a composition needs a size above 0");
    if (!size.is_multiple_of(kCxlGranule))
        return refuse(problem::kSizeNotMultiple,
                      fmt::format("{} is not a multiple of {}, the unit in which CXL memory is given out",
                                  format_bytes(size), format_bytes(kCxlGranule)));
    const std::uint64_t ways = policy.ways;
    if (!std::has_single_bit(ways) || ways > kMostParts)
        return refuse(problem::kBadPlacement, fmt::format("ways is {}, not 1, 2, 4 or 8", ways));
    if (ways > 1 && policy.kind != PlacementKind::kBandwidth)
        return refuse(problem::kBadPlacement,
                      fmt::format("{} ways need the policy bandwidth; {} does not interleave", ways,
                                  to_string(policy.kind)));
    if (!size.is_multiple_of(kCxlGranule * ways))
        return refuse(problem::kSizeNotMultiple,
                      fmt::format("{} cannot be divided over {} ways in multiples of {}", format_bytes(size),
                                  ways, format_bytes(kCxlGranule)));
    return {};
}

namespace {

// "mld-...: up to 512MiB in multiples of 256MiB", for people who were refused.
std::string offer(const Candidate& candidate) {
    const Device& device = *candidate.device;
    if (device.kind == DeviceKind::kSld)
        return fmt::format("{}: {} whole", device.id.value, format_bytes(candidate.most));
    std::string text = fmt::format("{}: up to {} in multiples of {}", device.id.value,
                                   format_bytes(candidate.most), format_bytes(device.granularity));
    const std::optional<Bytes> refused = refused_carve(device, candidate.through);
    if (refused && device.kind == DeviceKind::kDcd)
        text += fmt::format(" (it refused to add {}: some is offered to others, or being erased)",
                            format_bytes(*refused));
    else if (refused)
        text += fmt::format(" ({} are free, but not in one piece: it refused to carve {})",
                            format_bytes(candidate.free), format_bytes(*refused));
    return text;
}

// The first few of many, so that a detail stays readable.
std::string first_few(const std::vector<std::string>& all) {
    constexpr std::size_t kFew = 8;
    if (all.size() <= kFew) return fmt::format("{}", fmt::join(all, "; "));
    const std::vector<std::string> few(all.begin(), all.begin() + kFew);
    return fmt::format("{}; and {} more", fmt::join(few, "; "), all.size() - kFew);
}

std::string asked(const PlacementRequest& request) {
    const PlacementPolicy& policy = request.policy;
    if (policy.kind == PlacementKind::kBandwidth)
        return fmt::format("{} over {} way{}", format_bytes(request.size), policy.ways,
                           policy.ways == 1 ? "" : "s");
    return format_bytes(request.size);
}

Problem refusal(const Candidates& candidates, const PlacementRequest& request) {
    const std::string host = request.host.value;
    const auto problem = [](std::string_view code, std::string detail) {
        return Problem{std::string(code), std::move(detail), ErrorCode::kExhausted, {}};
    };
    if (candidates.devices.empty() && !candidates.limited &&
        std::ranges::any_of(candidates.excluded,
                            [](const Exclusion& one) { return one.constraint == "no-free-vppb"; }))
        return problem(problem::kNoFreeVppb,
                       fmt::format("there is memory for {}, but all vPPBs of host {} are bound or claimed; "
                                   "release one of its compositions first",
                                   asked(request), host));
    if (request.size > candidates.capacity)
        return problem(problem::kExceedsCapacity,
                       fmt::format("{} is more than all devices that host {} reaches have together ({})",
                                   format_bytes(request.size), host, format_bytes(candidates.capacity)));
    if (request.policy.max_devices == 1 && request.size > candidates.largest_device)
        return problem(
            problem::kExceedsLargestDevice,
            fmt::format("{} is more than any device that host {} reaches has ({}), and "
                        "max_devices is 1",
                        format_bytes(request.size), host, format_bytes(candidates.largest_device)));
    if (request.size > candidates.free)
        return problem(problem::kExceedsFree,
                       fmt::format("{} is more than the {} that are free for host {}",
                                   format_bytes(request.size), format_bytes(candidates.free), host));
    if (candidates.limited || !candidates.most_per_switch.empty())
        return problem(problem::kLimitExceeded,
                       fmt::format("{} are free for host {}, but its limits leave no way to get {}: {}",
                                   format_bytes(candidates.free), host, asked(request),
                                   candidates.devices.empty() ? "every device is excluded" : first_few([&] {
                                       std::vector<std::string> offers;
                                       for (const Candidate& one : candidates.devices)
                                           offers.push_back(offer(one));
                                       return offers;
                                   }())));
    std::vector<std::string> offers;
    for (const Candidate& one : candidates.devices) offers.push_back(offer(one));
    return problem(problem::kNoFittingDevice,
                   fmt::format("{} are free for host {}, but not so that {} could be had from at most {} "
                               "devices: {}",
                               format_bytes(candidates.free), host, asked(request),
                               std::min(request.most_parts, request.policy.max_devices),
                               offers.empty() ? "no device offers anything" : first_few(offers)));
}

// Every candidate that was not chosen had something against it.
void explain(const Candidates& candidates, const PlacementRequest& request,
             std::vector<Exclusion>& excluded) {
    for (const Candidate& one : candidates.devices) {
        if (one.most >= request.size && rank_ld(*one.device, *one.offers, request.size)) continue;
        excluded.push_back({one.device->id.value, "size", offer(one)});
    }
}

Outcome<> check_reserve(const Inventory& inventory, const PlacementRequest& request) {
    if (request.reserve.value == 0 || request.policy.use_reserve) return {};
    const Bytes free = inventory.totals().free;
    if (free >= request.size + request.reserve) return {};
    return refuse(
        problem::kReserved,
        fmt::format("{} are free in the pool, and {} of that are kept in reserve: {} cannot be given",
                    format_bytes(free), format_bytes(request.reserve), format_bytes(request.size)),
        ErrorCode::kExhausted);
}

bool interleaves(const PlacementPolicy& policy) {
    return policy.kind == PlacementKind::kBandwidth && policy.ways > 1;
}

Choice choose(const Inventory& inventory, const Candidates& candidates, const PlacementRequest& request) {
    const PlacementPolicy& policy = request.policy;
    if (interleaves(policy)) {
        std::vector<std::uint8_t> window_ways;
        for (const HostWindow& window : inventory.host(request.host)->windows)
            if (window.largest_free >= request.size) window_ways.push_back(window.ways);
        return choose_interleaved(candidates, request, window_ways);
    }
    if (policy.kind == PlacementKind::kPack) return choose_packed(candidates, request);
    PlacementRequest spread = request;
    if (policy.kind == PlacementKind::kBandwidth) spread.policy.max_devices = 1;
    return choose_spread(candidates, spread);
}

}  // namespace

Outcome<Plan> place(const Inventory& inventory, const PlacementRequest& request) {
    if (Outcome<> ok = check_size(request.size, request.policy); !ok) return std::unexpected(ok.error());
    Outcome<Candidates> candidates = find_candidates(inventory, request);
    if (!candidates) return std::unexpected(candidates.error());
    Choice choice = choose(inventory, *candidates, request);
    if (!choice) {
        PlacementRequest explained = request;
        explained.explain = true;
        candidates = find_candidates(inventory, explained);
        Problem problem = refusal(*candidates, request);
        problem.excluded = std::move(candidates->excluded);
        explain(*candidates, request, problem.excluded);
        return std::unexpected(std::move(problem));
    }
    if (Outcome<> ok = check_reserve(inventory, request); !ok) return std::unexpected(ok.error());
    return Plan{*std::move(choice), interleaves(request.policy), std::move(candidates->excluded)};
}

}  // namespace memtide::fm
