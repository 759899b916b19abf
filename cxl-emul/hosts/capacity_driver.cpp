#include "cxl-emul/hosts/capacity_driver.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "common/fmapi/codec.h"
#include "common/fmapi/commands/events.h"

namespace memtide::emul {

using fmapi::DynamicCapacityEvent;
using fmapi::EventLog;

namespace {

ByteRange range_of_extent(const fmapi::DcExtent& extent) { return {extent.dpa, extent.dpa + extent.length}; }

}  // namespace

template <typename Command>
Result<fmapi::Message> CapacityDriver::call(const typename Command::Request& request) {
    return mailbox_->send(fmapi::make_request(Command::kOpcode, 0, fmapi::encode(request)));
}

template <typename Command>
Result<typename Command::Response> CapacityDriver::get(const typename Command::Request& request) {
    const auto answer = call<Command>(request);
    if (!answer) return std::unexpected(answer.error());
    if (answer->return_code != fmapi::ReturnCode::kSuccess)
        return fail(ErrorCode::kProtocol,
                    fmt::format("{}: {}", Command::kName, fmapi::to_string(answer->return_code)));
    return fmapi::decode<typename Command::Response>(answer->payload);
}

// One that was withdrawn meanwhile is answered like the others, and what the device says to that is no error:
// the extent list tells what has come of it.
Result<> CapacityDriver::answer(Extents offer, bool refuses) {
    if (refuses) offer.clear();
    const auto answered = call<fmapi::AddDynamicCapacityResponse>({std::move(offer), 0});
    if (!answered) return std::unexpected(answered.error());
    return {};
}

Result<> CapacityDriver::take(const fmapi::DynamicCapacityRecord& record, bool refuses, News& news) {
    const ByteRange range = range_of_extent(record.extent);
    switch (record.event) {
        case DynamicCapacityEvent::kAddCapacity:
            offer_.push_back({record.extent.dpa, record.extent.length});
            if ((record.flags & fmapi::kMoreDynamicCapacity) != 0) return {};
            return answer(std::exchange(offer_, {}), refuses);
        case DynamicCapacityEvent::kReleaseCapacity:
            news.asked.add(range);
            return {};
        case DynamicCapacityEvent::kForcedRelease:
            news.asked.remove(range);
            news.forced.add(range);
            return {};
        default:  // nothing that a host has to do with
            return {};
    }
}

Result<CapacityDriver::News> CapacityDriver::read_log(bool refuses) {
    News news;
    for (;;) {
        const auto read = get<fmapi::GetEventRecords>({EventLog::kDynamicCapacity});
        if (!read) return std::unexpected(read.error());
        if (read->records.empty()) return news;
        fmapi::ClearEventRecordsRequest clear{EventLog::kDynamicCapacity, 0, {}};
        for (const fmapi::EventRecord& record : read->records) clear.handles.push_back(record.handle);
        if (const auto cleared = get<fmapi::ClearEventRecords>(clear); !cleared)
            return std::unexpected(cleared.error());
        for (const fmapi::EventRecord& record : read->records) {
            if (record.format != fmapi::kDynamicCapacityRecord) continue;
            const auto decoded =
                fmapi::decode<fmapi::DynamicCapacityRecord>(std::as_bytes(std::span(record.data)));
            if (!decoded) return std::unexpected(decoded.error());
            if (auto taken = take(*decoded, refuses, news); !taken) return std::unexpected(taken.error());
        }
    }
}

Result<std::vector<fmapi::DcExtent>> CapacityDriver::extents() {
    std::vector<fmapi::DcExtent> all;
    for (std::optional<std::uint32_t> generation;;) {
        const auto page =
            get<fmapi::GetDynamicCapacityExtentList>({.extents = std::numeric_limits<std::uint32_t>::max(),
                                                      .first = static_cast<std::uint32_t>(all.size())});
        if (!page) return std::unexpected(page.error());
        if (generation && *generation != page->generation) {
            all.clear();
            generation.reset();
            continue;
        }
        generation = page->generation;
        all.insert(all.end(), page->extents.begin(), page->extents.end());
        if (all.size() >= page->total) return all;
        if (page->extents.empty()) return fail(ErrorCode::kProtocol, "an extent list without its end");
    }
}

Result<> CapacityDriver::give_back(const std::vector<ByteRange>& memory) {
    Extents extents;
    for (const ByteRange& range : memory) extents.push_back({range.begin, range.size()});
    const auto answered = call<fmapi::ReleaseDynamicCapacity>({std::move(extents), 0});
    if (!answered) return std::unexpected(answered.error());
    if (answered->return_code == fmapi::ReturnCode::kSuccess) return {};
    return fail(ErrorCode::kConflict, fmt::format("{}: {}", fmapi::ReleaseDynamicCapacity::kName,
                                                  fmapi::to_string(answered->return_code)));
}

}  // namespace memtide::emul
