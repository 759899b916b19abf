#include "cxl-emul/switch/dynamic_capacity.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "cxl-emul/switch/extent_lists.h"

// What both sides need, and the fabric manager's side apart from releases.
namespace memtide::emul {

using fmapi::DcSelection;
using fmapi::ReturnCode;

DynamicCapacity::DynamicCapacity(std::vector<Region> regions, std::size_t hosts, Limits limits)
    : regions_(std::move(regions)), limits_(limits), hosts_(hosts) {
    power_on();
}

// Who reads a list in pages finds another generation. What is being erased goes on to be.
void DynamicCapacity::power_on() {
    for (Host& host : hosts_) {
        const std::uint32_t generation = host.generation;
        host = Host();
        host.generation = generation + 1;
    }
    tags_.clear();
    ++tags_generation_;
    events_.clear();
    free_.clear();
    dirty_.clear();
    unusable_.clear();
    for (const Region& region : regions_) (region.sanitizes ? dirty_ : free_).add(region.range);
    for (const ByteRange& range : erasing_.ranges()) {
        dirty_.remove(range);
        free_.remove(range);
    }
}

// --- Adding ---

ReturnCode DynamicCapacity::add(const fmapi::InitiateDynamicCapacityAddRequest& request,
                                std::size_t event_room) {
    if (request.host >= hosts_.size() || request.region >= regions_.size() ||
        request.selection > DcSelection::kShared ||
        (request.selection == DcSelection::kPrescriptive) == request.extents.empty())
        return ReturnCode::kInvalidInput;
    if (request.selection == DcSelection::kShared) return share(request, event_room);
    const bool tagged = is_tagged(request.tag);
    if (tagged && tags_.contains(request.tag)) return ReturnCode::kInvalidInput;

    const Region& region = regions_[request.region];
    const Picked pieces = pick(region, request);
    if (!pieces) return pieces.error();
    if (pieces->size() > available_extents() || (tagged && available_tags() == 0))
        return ReturnCode::kResourcesExhausted;
    if (pieces->size() > event_room) return ReturnCode::kRetryRequired;

    Extents extents;
    for (const ByteRange& piece : *pieces) {
        free_.remove(piece);
        const bool shared = tagged && region.shareable;
        extents.push_back({piece.begin, piece.size(), request.tag,
                           shared ? static_cast<std::uint16_t>(extents.size() + 1) : std::uint16_t{0}});
    }
    if (tagged)
        tags_[request.tag] = {.region = request.region, .shared = region.shareable ? extents : Extents()};
    offer(request.host, std::move(extents));
    return ReturnCode::kSuccess;
}

DynamicCapacity::Picked DynamicCapacity::pick(const Region& region,
                                              const fmapi::InitiateDynamicCapacityAddRequest& request) const {
    if (request.selection == DcSelection::kPrescriptive) return check_prescribed(region, request);
    if (request.length == 0 || request.length % region.block != 0)
        return std::unexpected(ReturnCode::kInvalidInput);
    const auto out_of = [&](const RangeSet& memory) -> std::optional<std::vector<ByteRange>> {
        if (request.selection == DcSelection::kFree) return memory.fewest(request.length);
        const auto piece = memory.tightest(request.length);
        if (!piece) return std::nullopt;
        return std::vector{*piece};
    };
    if (auto pieces = out_of(free_.within(region.range))) return *std::move(pieces);
    // Some of it is only being erased.
    const RangeSet soon = union_of({&free_, &dirty_, &erasing_}).within(region.range);
    return std::unexpected(out_of(soon) ? ReturnCode::kRetryRequired : ReturnCode::kResourcesExhausted);
}

DynamicCapacity::Picked DynamicCapacity::check_prescribed(
    const Region& region, const fmapi::InitiateDynamicCapacityAddRequest& request) const {
    if (!well_formed(std::span(request.extents))) return std::unexpected(ReturnCode::kInvalidExtentList);
    const RangeSet soon = union_of({&free_, &dirty_, &erasing_});
    std::vector<ByteRange> pieces;
    auto code = ReturnCode::kSuccess;
    for (const fmapi::DcExtent& extent : request.extents) {
        const ByteRange piece = range_of(extent);
        if (piece.begin < region.range.begin || piece.end > region.range.end ||
            (is_tagged(extent.tag) && extent.tag != request.tag))
            return std::unexpected(ReturnCode::kInvalidExtentList);
        if (!soon.contains(piece))
            code = ReturnCode::kResourcesExhausted;
        else if (!free_.contains(piece) && code == ReturnCode::kSuccess)
            code = ReturnCode::kRetryRequired;
        pieces.push_back(piece);
    }
    if (code != ReturnCode::kSuccess) return std::unexpected(code);
    return pieces;
}

ReturnCode DynamicCapacity::share(const fmapi::InitiateDynamicCapacityAddRequest& request,
                                  std::size_t event_room) {
    const auto tag = tags_.find(request.tag);
    if (tag == tags_.end() || tag->second.shared.empty() || tag->second.region != request.region)
        return ReturnCode::kInvalidInput;
    const Extents& extents = tag->second.shared;
    if (request.length != 0 && request.length != length_of(extents)) return ReturnCode::kInvalidInput;
    const Host& host = hosts_[request.host];
    if (has_tag(host.accepted, request.tag) || has_tag(offered(request.host), request.tag))
        return ReturnCode::kInvalidInput;
    if (extents.size() > available_extents()) return ReturnCode::kResourcesExhausted;
    if (extents.size() > event_room) return ReturnCode::kRetryRequired;
    offer(request.host, extents);
    return ReturnCode::kSuccess;
}

void DynamicCapacity::offer(std::size_t host, Extents extents) {
    hosts_[host].offers.push_back(std::move(extents));
    const Extents& offered = hosts_[host].offers.back();
    if (is_tagged(offered.front().tag)) ++tags_generation_;
    record(host, fmapi::DynamicCapacityEvent::kAddCapacity, host, offered);
}

// --- Regions and tags ---

ReturnCode DynamicCapacity::configure(const fmapi::SetDcRegionConfigurationRequest& request) {
    if (request.region >= regions_.size()) return ReturnCode::kUnsupported;
    Region& region = regions_[request.region];
    if (request.block_size < kSmallestDcBlock || !std::has_single_bit(request.block_size) ||
        region.range.size() % request.block_size != 0 || request.sanitize_on_release > 1)
        return ReturnCode::kInvalidInput;
    if (unusable_.overlaps(region.range)) return ReturnCode::kPermanentMediaFailure;
    if (dirty_.overlaps(region.range) || erasing_.overlaps(region.range)) return ReturnCode::kRetryRequired;
    if (!free_.contains(region.range)) return ReturnCode::kUnsupported;
    const bool sanitizes = request.sanitize_on_release == 1;
    if (region.block == request.block_size && region.sanitizes == sanitizes) return ReturnCode::kSuccess;
    // What was released before was not erased.
    if (sanitizes && !region.sanitizes) {
        free_.remove(region.range);
        dirty_.add(region.range);
    }
    region.block = request.block_size;
    region.sanitizes = sanitizes;
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
        record(host, fmapi::DynamicCapacityEvent::kRegionConfigurationUpdated, host, Extents(1));
        events_.back().record.region = request.region;
    }
    return ReturnCode::kSuccess;
}

ReturnCode DynamicCapacity::add_reference(const fmapi::DcTag& tag) {
    const auto found = tags_.find(tag);
    if (found == tags_.end() || found->second.shared.empty()) return ReturnCode::kInvalidInput;
    if (!std::exchange(found->second.referenced, true)) ++tags_generation_;
    return ReturnCode::kSuccess;
}

ReturnCode DynamicCapacity::remove_reference(const fmapi::DcTag& tag) {
    const auto found = tags_.find(tag);
    if (found == tags_.end() || !found->second.referenced) return ReturnCode::kInvalidInput;
    found->second.referenced = false;
    ++tags_generation_;
    settle(tag);
    return ReturnCode::kSuccess;
}

std::vector<fmapi::DcTagInformation> DynamicCapacity::tags() const {
    std::vector<fmapi::DcTagInformation> all;
    for (const auto& [tag, state] : tags_) {
        fmapi::DcTagInformation& one = all.emplace_back();
        one.tag = tag;
        one.flags = state.referenced ? 1 : 0;
        for (std::size_t host = 0; host < hosts_.size(); ++host) {
            const auto bit = static_cast<std::uint8_t>(1u << host % 8);
            if (has_tag(hosts_[host].accepted, tag)) one.references[host / 8] |= bit;
            if (has_tag(offered(host), tag)) one.pending[host / 8] |= bit;
        }
    }
    return all;
}

void DynamicCapacity::settle(const fmapi::DcTag& tag) {
    const auto found = tags_.find(tag);
    if (found == tags_.end() || found->second.referenced) return;
    for (std::size_t host = 0; host < hosts_.size(); ++host)
        if (has_tag(hosts_[host].accepted, tag) || has_tag(offered(host), tag)) return;
    for (const fmapi::DcExtent& extent : found->second.shared)
        become_free(range_of(extent), found->second.sanitize);
    tags_.erase(found);
    ++tags_generation_;
}

// --- What there is ---

DynamicCapacity::Extents DynamicCapacity::offered(std::size_t host) const {
    Extents all;
    for (const Extents& offer : hosts_[host].offers) all.insert(all.end(), offer.begin(), offer.end());
    return all;
}

std::size_t DynamicCapacity::extents_in_use() const {
    std::size_t used = 0;
    for (std::size_t host = 0; host < hosts_.size(); ++host)
        used += hosts_[host].accepted.size() + offered(host).size();
    return used;
}

std::uint32_t DynamicCapacity::available_extents() const {
    return limits_.extents - static_cast<std::uint32_t>(extents_in_use());
}

std::uint32_t DynamicCapacity::available_tags() const {
    return limits_.tags - static_cast<std::uint32_t>(tags_.size());
}

std::optional<std::size_t> DynamicCapacity::region_of(ByteRange range) const {
    for (std::size_t i = 0; i < regions_.size(); ++i)
        if (regions_[i].range.begin <= range.begin && range.end <= regions_[i].range.end) return i;
    return std::nullopt;
}

// --- Erasing ---

void DynamicCapacity::become_free(ByteRange range, bool sanitize) {
    (sanitize || regions_[region_of(range).value()].sanitizes ? dirty_ : free_).add(range);
}

std::optional<ByteRange> DynamicCapacity::take_dirty() {
    if (dirty_.empty()) return std::nullopt;
    const ByteRange range = dirty_.ranges().front();
    dirty_.remove(range);
    erasing_.add(range);
    return range;
}

void DynamicCapacity::erased(ByteRange range, bool successfully) {
    erasing_.remove(range);
    (successfully ? free_ : unusable_).add(range);
}

// --- Events ---

void DynamicCapacity::record(std::optional<std::size_t> log_of, fmapi::DynamicCapacityEvent event,
                             std::size_t host, const Extents& extents) {
    for (const fmapi::DcExtent& extent : extents) {
        const bool more = &extent != &extents.back();
        events_.push_back({log_of,
                           {.event = event,
                            .validity = 3,
                            .host = static_cast<std::uint16_t>(host),
                            .flags = more ? fmapi::kMoreDynamicCapacity : std::uint8_t{0},
                            .extent = extent,
                            .available_extents = available_extents(),
                            .available_tags = available_tags()}});
    }
}

std::vector<DynamicCapacity::Event> DynamicCapacity::take_events() {
    return std::exchange(events_, std::vector<Event>());
}

}  // namespace memtide::emul
