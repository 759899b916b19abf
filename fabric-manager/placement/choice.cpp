#include "fabric-manager/placement/choice.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "fabric-manager/placement/ld_fit.h"

namespace memtide::fm {

namespace {

using Pointers = std::vector<const Candidate*>;

// Parts as they are chosen, with what they use up: vPPBs and the allowance of each switch.
class Draft {
  public:
    explicit Draft(const Candidates& candidates) : candidates_(candidates) {}

    // How much of `size` the candidate could give besides what was chosen already.
    [[nodiscard]] Bytes offer(const Candidate& candidate) const {
        const SwitchId& id = candidate.switch_id();
        if (used_vppbs(id) >= candidates_.vppbs.at(id).size()) return {};
        const auto limit = candidates_.most_per_switch.find(id);
        if (limit == candidates_.most_per_switch.end()) return candidate.most;
        const auto given = given_.find(id);
        const Bytes had = given == given_.end() ? Bytes{} : given->second;
        const Bytes left = limit->second > had ? limit->second - had : Bytes{};
        if (candidate.most <= left) return candidate.most;
        if (candidate.device->kind == DeviceKind::kSld) return {};
        const Bytes unit = candidate.device->granularity;
        return unit * (left / unit);
    }

    bool add(const Candidate& candidate, Bytes size) {
        if (size.value == 0 || offer(candidate) < size) return false;
        std::optional<PartPlacement> found =
            fit_ld(*candidate.device, *candidate.offers, size, candidate.through);
        if (!found) return false;
        const SwitchId& id = candidate.switch_id();
        found->where = candidates_.vppbs.at(id)[used_[id]++];
        given_[id] += size;
        parts.push_back(*std::move(found));
        return true;
    }

    std::vector<PartPlacement> parts;

  private:
    [[nodiscard]] std::size_t used_vppbs(const SwitchId& id) const {
        const auto found = used_.find(id);
        return found == used_.end() ? 0 : found->second;
    }
    const Candidates& candidates_;
    std::map<SwitchId, std::size_t> used_;
    std::map<SwitchId, Bytes> given_;
};

Pointers pointers(const Candidates& candidates) {
    Pointers result;
    for (const Candidate& candidate : candidates.devices) result.push_back(&candidate);
    return result;
}

std::size_t most_parts(const PlacementRequest& request) {
    return std::min<std::size_t>(request.most_parts, request.policy.max_devices);
}

Choice on_one_device(const Candidates& candidates, Bytes size) {
    const Draft draft(candidates);
    const Candidate* best = nullptr;
    LdFit best_fit{};
    for (const Candidate& candidate : candidates.devices) {
        const bool has_less = best == nullptr || candidate.free < best->free;
        if (!has_less && best_fit == LdFit::kClean) continue;
        if (draft.offer(candidate) < size) continue;
        const std::optional<LdFit> fit = rank_ld(*candidate.device, *candidate.offers, size);
        if (!fit) continue;
        if (best != nullptr && (*fit > best_fit || (*fit == best_fit && !has_less))) continue;
        best = &candidate;
        best_fit = *fit;
    }
    if (best == nullptr) return std::nullopt;
    Draft chosen(candidates);
    if (!chosen.add(*best, size)) return std::nullopt;
    return std::move(chosen.parts);
}

// A candidate that can give all of `size`: the one that is left with the least.
const Candidate* smallest_enough(const Draft& draft, const Pointers& left, Bytes size) {
    const Candidate* best = nullptr;
    for (const Candidate* one : left)
        if (draft.offer(*one) >= size && rank_ld(*one->device, *one->offers, size) &&
            (best == nullptr || draft.offer(*one) < draft.offer(*best)))
            best = one;
    return best;
}

const Candidate* largest_offer(const Draft& draft, const Pointers& left, Bytes at_most) {
    const Candidate* best = nullptr;
    for (const Candidate* one : left) {
        const Bytes offer = draft.offer(*one);
        const bool whole = one->device->kind == DeviceKind::kSld;
        if (offer.value == 0 || (whole && offer > at_most)) continue;
        if (best == nullptr || offer > draft.offer(*best)) best = one;
    }
    return best;
}

// Devices in the order of their load, the switches taking turns.
Pointers in_turn(const Candidates& candidates) {
    std::map<SwitchId, Pointers> by_switch;
    for (const Candidate& candidate : candidates.devices)
        by_switch[candidate.switch_id()].push_back(&candidate);
    std::size_t longest = 0;
    for (auto& [id, list] : by_switch) {
        std::ranges::stable_sort(list, {}, &Candidate::load);
        longest = std::max(longest, list.size());
    }
    Pointers result;
    for (std::size_t i = 0; i < longest; ++i) {
        Pointers row;
        for (const auto& [id, list] : by_switch)
            if (i < list.size()) row.push_back(list[i]);
        std::ranges::stable_sort(row, {}, &Candidate::load);
        result.insert(result.end(), row.begin(), row.end());
    }
    return result;
}

// `count` parts as equal as they can be: those that offer least give what they have, the rest share.
Choice spread_over(const Candidates& candidates, const Pointers& order, std::size_t count, Bytes size) {
    Draft draft(candidates);
    Pointers chosen(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
    std::ranges::stable_sort(chosen, {}, &Candidate::most);
    Bytes missing = size;
    for (std::size_t i = 0; i < count; ++i) {
        const Candidate& one = *chosen[i];
        const std::uint64_t unit = one.device->granularity.value;
        const std::uint64_t share = missing.value / (count - i);
        const bool last = i + 1 == count;
        Bytes part = last ? missing : Bytes{(share + unit - 1) / unit * unit};
        part = std::min({part, draft.offer(one), missing});
        if (!draft.add(one, part)) return std::nullopt;
        missing -= part;
    }
    if (missing.value != 0) return std::nullopt;
    return std::move(draft.parts);
}

// `per_switch` parts of the size at each of the switches.
Choice interleave_over(const Candidates& candidates, const std::vector<SwitchId>& switches,
                       std::size_t per_switch, Bytes part) {
    Draft draft(candidates);
    const Pointers order = in_turn(candidates);
    for (const SwitchId& id : switches) {
        std::size_t found = 0;
        for (const Candidate* one : order) {
            if (found == per_switch) break;
            if (one->switch_id() == id && draft.add(*one, part)) ++found;
        }
        if (found != per_switch) return std::nullopt;
    }
    return std::move(draft.parts);
}

}  // namespace

Choice choose_packed(const Candidates& candidates, const PlacementRequest& request) {
    if (most_parts(request) == 0) return std::nullopt;
    if (Choice one = on_one_device(candidates, request.size)) return one;
    Draft draft(candidates);
    Pointers left = pointers(candidates);
    Bytes missing = request.size;
    while (missing.value != 0 && draft.parts.size() < most_parts(request)) {
        const Candidate* next = smallest_enough(draft, left, missing);
        if (next == nullptr) next = largest_offer(draft, left, missing);
        if (next == nullptr) return std::nullopt;
        const Bytes part = largest_fit(*next->device, std::min(draft.offer(*next), missing), next->through);
        std::erase(left, next);
        if (draft.add(*next, part)) missing -= part;
    }
    if (missing.value != 0) return std::nullopt;
    return std::move(draft.parts);
}

Choice choose_spread(const Candidates& candidates, const PlacementRequest& request) {
    const Pointers order = in_turn(candidates);
    const std::size_t units = request.size / kCxlGranule;
    for (std::size_t count = std::min({order.size(), most_parts(request), units}); count > 0; --count)
        if (Choice found = spread_over(candidates, order, count, request.size)) return found;
    // The least loaded ones are too small for any even share: then as with few, so that it is served at all.
    return choose_packed(candidates, request);
}

Choice choose_interleaved(const Candidates& candidates, const PlacementRequest& request,
                          const std::vector<std::uint8_t>& window_ways) {
    const std::size_t ways = request.policy.ways;
    if (ways > most_parts(request)) return std::nullopt;
    const Bytes part{request.size.value / ways};
    std::vector<SwitchId> switches;
    for (const auto& [id, vppbs] : candidates.vppbs) switches.push_back(id);
    // The more host bridges, the more links: those windows come first.
    std::set<std::uint8_t, std::greater<>> bridges(window_ways.begin(), window_ways.end());
    for (const std::uint8_t count : bridges) {
        if (count < 2 || count > switches.size() || ways % count != 0 || count != switches.size()) continue;
        if (Choice found = interleave_over(candidates, switches, ways / count, part)) return found;
    }
    for (const SwitchId& id : switches) {
        std::vector<SwitchId> one(1, id);
        if (Choice found = interleave_over(candidates, one, ways, part)) return found;
    }
    return std::nullopt;
}

}  // namespace memtide::fm
