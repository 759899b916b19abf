#include <algorithm>
#include <utility>

#include "cxl-emul/switch/dynamic_capacity.h"
#include "cxl-emul/switch/extent_lists.h"

// How memory leaves a host: asked back by the fabric manager, given back by the host, or taken away.
namespace memtide::emul {

using fmapi::DcRemoval;
using fmapi::DynamicCapacityEvent;
using fmapi::ReturnCode;

namespace {

constexpr std::uint8_t kReleaseFlags =
    fmapi::kDcRemovalMask | fmapi::kDcForcedRemoval | fmapi::kDcSanitizeOnRelease;

template <typename Extent>
std::optional<ByteRange> checked_range_of(const Extent& extent) {
    if (extent.length == 0 || extent.length > UINT64_MAX - extent.dpa) return std::nullopt;
    return range_of(extent);
}

}  // namespace

template <typename Extent>
std::optional<RangeSet> DynamicCapacity::well_formed(std::span<const Extent> extents) const {
    RangeSet all;
    for (const Extent& extent : extents) {
        const auto range = checked_range_of(extent);
        const auto region = range ? region_of(*range) : std::nullopt;
        if (!region || all.overlaps(*range) || range->size() % regions_[*region].block != 0 ||
            (range->begin - regions_[*region].range.begin) % regions_[*region].block != 0)
            return std::nullopt;
        all.add(*range);
    }
    return all;
}
template std::optional<RangeSet> DynamicCapacity::well_formed(std::span<const fmapi::DcExtent>) const;
template std::optional<RangeSet> DynamicCapacity::well_formed(std::span<const fmapi::UpdatedDcExtent>) const;

// --- The fabric manager ---

// What it names: of a tag, all that the host has, and when forced also all that it was offered.
DynamicCapacity::Extents DynamicCapacity::targets_of(
    const fmapi::InitiateDynamicCapacityReleaseRequest& request) const {
    if (request.removal() == DcRemoval::kPrescriptive) return request.extents;
    Extents targets;
    const auto take = [&](const Extents& extents) {
        for (const fmapi::DcExtent& extent : extents)
            if (extent.tag == request.tag) targets.push_back(extent);
    };
    take(hosts_[request.host].accepted);
    if ((request.flags & fmapi::kDcForcedRemoval) != 0) take(offered(request.host));
    return targets;
}

ReturnCode DynamicCapacity::release(const fmapi::InitiateDynamicCapacityReleaseRequest& request,
                                    std::size_t event_room) {
    const bool by_tag = request.removal() == DcRemoval::kByTag;
    if (request.host >= hosts_.size() || request.removal() > DcRemoval::kPrescriptive ||
        (request.flags & ~kReleaseFlags) != 0 || by_tag != request.extents.empty() ||
        (by_tag && !is_tagged(request.tag)))
        return ReturnCode::kInvalidInput;
    Host& host = hosts_[request.host];
    const bool forced = (request.flags & fmapi::kDcForcedRemoval) != 0;
    const Extents targets = targets_of(request);
    if (by_tag && targets.empty())
        return has_tag(offered(request.host), request.tag) ? ReturnCode::kInvalidPhysicalAddress
                                                           : ReturnCode::kInvalidInput;
    if (by_tag && request.length != 0 && request.length != length_of(targets))
        return ReturnCode::kInvalidInput;
    const auto gone = well_formed(std::span(targets));
    if (!gone) return ReturnCode::kInvalidExtentList;
    if (forced) return force(request, *gone);

    if (!covers(memory_of(host.accepted), *gone)) return ReturnCode::kInvalidPhysicalAddress;
    if (splits_a_shared_tag(host.accepted, *gone)) return ReturnCode::kInvalidExtentList;
    if (targets.size() > event_room) return ReturnCode::kRetryRequired;
    if ((request.flags & fmapi::kDcSanitizeOnRelease) != 0)
        for (const ByteRange& range : gone->ranges()) host.sanitize_on_return.add(range);
    record(request.host, DynamicCapacityEvent::kReleaseCapacity, request.host, targets);
    return ReturnCode::kSuccess;
}

// At once, whatever the host does with it, and offers that it has not answered as well.
ReturnCode DynamicCapacity::force(const fmapi::InitiateDynamicCapacityReleaseRequest& request,
                                  const RangeSet& gone) {
    Host& host = hosts_[request.host];
    const RangeSet had = memory_of(host.accepted);
    const Extents pending = offered(request.host);
    const RangeSet was_offered = memory_of(pending);
    if (!covers(union_of({&had, &was_offered}), gone)) return ReturnCode::kInvalidPhysicalAddress;
    if (splits_a_shared_tag(host.accepted, gone) || splits_a_shared_tag(pending, gone))
        return ReturnCode::kInvalidExtentList;
    // An extent that the host may still accept is withdrawn whole.
    for (const fmapi::DcExtent& extent : pending)
        if (gone.overlaps(range_of(extent)) && !gone.contains(range_of(extent)))
            return ReturnCode::kInvalidExtentList;
    if (extents_in_use() - host.accepted.size() + extents_left(host, gone) > limits_.extents)
        return ReturnCode::kResourcesExhausted;

    const bool sanitize = (request.flags & fmapi::kDcSanitizeOnRelease) != 0;
    std::vector<fmapi::DcTag> touched;
    Extents lost = take_away(host, gone, sanitize);
    for (const fmapi::DcExtent& extent : lost) touched.push_back(extent.tag);
    for (const fmapi::DcExtent& extent : pending)
        if (gone.contains(range_of(extent))) lost.push_back(extent);
    withdraw(host, gone, touched);
    for (const fmapi::DcTag& tag : touched) settle(tag);
    record(request.host, DynamicCapacityEvent::kForcedRelease, request.host, lost);
    return ReturnCode::kSuccess;
}

void DynamicCapacity::withdraw(Host& host, const RangeSet& gone, std::vector<fmapi::DcTag>& touched) {
    for (Extents& offer : host.offers)
        std::erase_if(offer, [&](const fmapi::DcExtent& extent) {
            if (!gone.contains(range_of(extent))) return false;
            // The host never reached it: it is as clean as it was.
            if (extent.shared_sequence == 0) free_.add(range_of(extent));
            touched.push_back(extent.tag);
            return true;
        });
    if (!touched.empty()) ++tags_generation_;
    // A host that never answers must not fill the memory of its device.
    while (host.offers.size() > limits_.extents && host.offers.front().empty()) host.offers.pop_front();
}

void DynamicCapacity::detach(std::size_t index) {
    Host& host = hosts_[index];
    std::vector<fmapi::DcTag> touched;
    const RangeSet had = memory_of(host.accepted);
    const RangeSet was_offered = memory_of(offered(index));
    const Extents lost = take_away(host, had, false);
    for (const fmapi::DcExtent& extent : lost) touched.push_back(extent.tag);
    withdraw(host, was_offered, touched);
    for (const fmapi::DcTag& tag : touched) settle(tag);
    host.offers.clear();
    host.response.clear();
    host.returned.clear();
    record(std::nullopt, DynamicCapacityEvent::kCapacityReleased, index, lost);
}

// --- The host ---

ReturnCode DynamicCapacity::give_back(std::size_t index, const fmapi::UpdatedDcExtents& request) {
    Host& host = hosts_[index];
    const auto all = gather(host.returned, request);
    if (!all) return all.error();
    if ((request.flags & fmapi::kDcMoreExtents) != 0) return ReturnCode::kSuccess;
    if (all->empty()) return ReturnCode::kInvalidInput;
    const auto gone = well_formed(std::span(*all));
    if (!gone) return ReturnCode::kInvalidExtentList;
    if (!covers(memory_of(host.accepted), *gone)) return ReturnCode::kInvalidPhysicalAddress;
    if (splits_a_shared_tag(host.accepted, *gone)) return ReturnCode::kInvalidExtentList;
    if (extents_in_use() - host.accepted.size() + extents_left(host, *gone) > limits_.extents)
        return ReturnCode::kResourcesExhausted;
    const Extents released = take_away(host, *gone, false);
    for (const fmapi::DcExtent& extent : released) settle(extent.tag);
    record(std::nullopt, DynamicCapacityEvent::kCapacityReleased, index, released);
    return ReturnCode::kSuccess;
}

// --- Both ---

// Whether a tag whose extents belong together would lose some of them only.
bool DynamicCapacity::splits_a_shared_tag(const Extents& extents, const RangeSet& gone) const {
    return std::ranges::any_of(extents, [&](const fmapi::DcExtent& extent) {
        if (extent.shared_sequence == 0 || !gone.overlaps(range_of(extent))) return false;
        const Extents& whole = tags_.at(extent.tag).shared;
        return !std::ranges::all_of(whole,
                                    [&](const fmapi::DcExtent& one) { return gone.contains(range_of(one)); });
    });
}

std::size_t DynamicCapacity::extents_left(const Host& host, const RangeSet& gone) const {
    std::size_t left = 0;
    for (const fmapi::DcExtent& extent : host.accepted) {
        RangeSet own;
        own.add(range_of(extent));
        for (const ByteRange& range : gone.ranges()) own.remove(range);
        left += own.ranges().size();
    }
    return left;
}

DynamicCapacity::Extents DynamicCapacity::take_away(Host& host, const RangeSet& gone, bool sanitize) {
    Extents kept;
    Extents taken;
    for (const fmapi::DcExtent& extent : host.accepted) {
        const RangeSet lost = gone.within(range_of(extent));
        RangeSet left;
        left.add(range_of(extent));
        for (const ByteRange& range : lost.ranges()) left.remove(range);
        for (const ByteRange& range : left.ranges())
            kept.push_back({range.begin, range.size(), extent.tag, extent.shared_sequence});
        for (const ByteRange& range : lost.ranges()) {
            const bool must_erase = sanitize || host.sanitize_on_return.overlaps(range);
            if (extent.shared_sequence == 0)
                become_free(range, must_erase);
            else
                tags_.at(extent.tag).sanitize |= must_erase;
            taken.push_back({range.begin, range.size(), extent.tag, extent.shared_sequence});
        }
    }
    if (taken.empty()) return taken;
    host.accepted = std::move(kept);
    for (const ByteRange& range : gone.ranges()) host.sanitize_on_return.remove(range);
    ++host.generation;
    if (std::ranges::any_of(taken, is_tagged, &fmapi::DcExtent::tag)) ++tags_generation_;
    return taken;
}

}  // namespace memtide::emul
