#include <algorithm>
#include <utility>

#include "cxl-emul/switch/dynamic_capacity.h"
#include "cxl-emul/switch/extent_lists.h"

// What a host does with what it was offered.
namespace memtide::emul {

using fmapi::DynamicCapacityEvent;
using fmapi::ReturnCode;

// Collects a list that comes in several requests; one that is longer than all extents there can be is
// dropped.
std::expected<std::vector<fmapi::UpdatedDcExtent>, ReturnCode> DynamicCapacity::gather(
    std::vector<fmapi::UpdatedDcExtent>& so_far, const fmapi::UpdatedDcExtents& request) const {
    so_far.insert(so_far.end(), request.extents.begin(), request.extents.end());
    if (so_far.size() > limits_.extents) {
        so_far.clear();
        return std::unexpected(ReturnCode::kResourcesExhausted);
    }
    if ((request.flags & fmapi::kDcMoreExtents) != 0) return std::vector<fmapi::UpdatedDcExtent>();
    return std::exchange(so_far, {});
}

ReturnCode DynamicCapacity::respond(std::size_t index, const fmapi::UpdatedDcExtents& response) {
    Host& host = hosts_[index];
    const auto all = gather(host.response, response);
    if (!all) return all.error();
    if ((response.flags & fmapi::kDcMoreExtents) != 0) return ReturnCode::kSuccess;
    if (all->empty()) return refuse_oldest(index);
    const auto wanted = well_formed(std::span(*all));
    if (!wanted) return ReturnCode::kInvalidExtentList;

    const auto offer = std::ranges::find_if(host.offers, [&](const Extents& one) {
        return std::ranges::all_of(*all, [&](const fmapi::UpdatedDcExtent& extent) {
            return extent_with(one, range_of(extent)) != nullptr;
        });
    });
    if (offer == host.offers.end()) {
        // The answer to an offer that was withdrawn meanwhile.
        if (!host.offers.empty() && host.offers.front().empty()) host.offers.pop_front();
        return ReturnCode::kInvalidPhysicalAddress;
    }
    const bool shared = offer->front().shared_sequence != 0;
    if (shared && !covers(*wanted, memory_of(*offer))) return ReturnCode::kInvalidExtentList;
    Extents accepted;
    if (shared) {
        accepted = *offer;
    } else {
        for (const fmapi::UpdatedDcExtent& extent : *all)
            accepted.push_back({extent.dpa, extent.length, offer->front().tag, 0});
    }
    if (extents_in_use() - offer->size() + accepted.size() > limits_.extents)
        return ReturnCode::kResourcesExhausted;
    accept(index, offer, std::move(accepted));
    return ReturnCode::kSuccess;
}

void DynamicCapacity::accept(std::size_t index, std::deque<Extents>::iterator offer, Extents accepted) {
    Host& host = hosts_[index];
    RangeSet refused = memory_of(*offer);
    for (const fmapi::DcExtent& extent : accepted) refused.remove(range_of(extent));
    for (const ByteRange& range : refused.ranges()) free_.add(range);
    host.accepted.insert(host.accepted.end(), accepted.begin(), accepted.end());
    ++host.generation;
    if (is_tagged(accepted.front().tag)) ++tags_generation_;
    // A host answers in order: what was withdrawn before it will not answer any more.
    const auto position = offer - host.offers.begin();
    host.offers.erase(offer);
    for (auto left = position; left > 0; --left) {
        if (!host.offers.front().empty()) break;
        host.offers.pop_front();
    }
    record(std::nullopt, DynamicCapacityEvent::kAddCapacityResponse, index, accepted);
}

ReturnCode DynamicCapacity::refuse_oldest(std::size_t index) {
    Host& host = hosts_[index];
    if (host.offers.empty()) return ReturnCode::kInvalidInput;
    const Extents refused = std::move(host.offers.front());
    host.offers.pop_front();
    if (refused.empty()) return ReturnCode::kSuccess;
    for (const fmapi::DcExtent& extent : refused)
        if (extent.shared_sequence == 0) free_.add(range_of(extent));
    const fmapi::DcTag tag = refused.front().tag;
    if (is_tagged(tag)) {
        ++tags_generation_;
        settle(tag);
    }
    // It says whose offer was refused by an extent without memory.
    record(std::nullopt, DynamicCapacityEvent::kAddCapacityResponse, index,
           {{refused.front().dpa, 0, tag, 0}});
    return ReturnCode::kSuccess;
}

}  // namespace memtide::emul
