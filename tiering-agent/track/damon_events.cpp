#include "tiering-agent/track/damon_events.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {
namespace {

std::optional<std::size_t> number_behind(std::string_view line, std::string_view word) {
    const std::size_t at = line.find(word);
    if (at == std::string_view::npos) return std::nullopt;
    std::size_t value = 0;
    const char* const begin = line.data() + at + word.size();
    const auto [end, failed] = std::from_chars(begin, line.data() + line.size(), value);
    return failed == std::errc{} && end != begin ? std::optional(value) : std::nullopt;
}

// "field:unsigned long start;	offset:24;	size:8;	signed:0;"
Result<std::size_t> offset_of(std::string_view format, std::string_view name, std::size_t size) {
    const std::string end_of_field = fmt::format(" {};", name);
    const std::size_t at = format.find(end_of_field);
    if (at == std::string_view::npos)
        return fail(ErrorCode::kProtocol, fmt::format("damon:damon_aggregated has no field {}", name));
    const std::string_view line = format.substr(at, format.find('\n', at) - at);
    const auto offset = number_behind(line, "offset:");
    if (!offset || number_behind(line, "size:") != size)
        return fail(ErrorCode::kProtocol,
                    fmt::format("field {} of damon:damon_aggregated is not of {} bytes", name, size));
    return *offset;
}

template <typename Number>
Number number_at(std::span<const std::byte> raw, std::size_t offset) {
    Number value = 0;
    std::memcpy(&value, raw.data() + offset, sizeof value);
    return value;
}

}  // namespace

Result<DamonEventLayout> DamonEventLayout::parse(std::string_view format) {
    DamonEventLayout layout;
    const auto set = [&](std::size_t& field, std::string_view name, std::size_t size) -> Result<> {
        const auto offset = offset_of(format, name, size);
        if (!offset) return std::unexpected(offset.error());
        field = *offset;
        return {};
    };
    if (auto ok = set(layout.start_, "start", 8); !ok) return std::unexpected(ok.error());
    if (auto ok = set(layout.end_, "end", 8); !ok) return std::unexpected(ok.error());
    if (auto ok = set(layout.accesses_, "nr_accesses", 4); !ok) return std::unexpected(ok.error());
    if (auto ok = set(layout.regions_, "nr_regions", 4); !ok) return std::unexpected(ok.error());
    return layout;
}

Result<DamonEvent> DamonEventLayout::decode(std::span<const std::byte> raw) const {
    if (raw.size() < std::max({start_ + 8, end_ + 8, accesses_ + 4, regions_ + 4}))
        return fail(ErrorCode::kProtocol,
                    fmt::format("an event of damon:damon_aggregated has {} bytes only", raw.size()));
    return DamonEvent{.region = {.begin = number_at<std::uint64_t>(raw, start_) >> kPageShift,
                                 .end = number_at<std::uint64_t>(raw, end_) >> kPageShift,
                                 .accesses = number_at<std::uint32_t>(raw, accesses_)},
                      .regions_in_all = number_at<std::uint32_t>(raw, regions_)};
}

void DamonAggregation::add(const DamonEvent& event) {
    if (is_complete()) return;
    const bool goes_on = !regions_.empty() && event.region.begin >= regions_.back().end &&
                         event.regions_in_all == expected_ && regions_.size() < expected_;
    if (!goes_on) regions_.clear();
    expected_ = event.regions_in_all;
    regions_.push_back(event.region);
}

const DamonRegion* RegionCursor::find(std::uint64_t page) {
    while (at_ < regions_.size() && regions_[at_].end <= page) ++at_;
    return at_ < regions_.size() && regions_[at_].begin <= page ? &regions_[at_] : nullptr;
}

}  // namespace memtide::agent
