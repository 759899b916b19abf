// Reading the log back, whatever has happened to it.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <xxhash.h>

#include "fabric-manager/store/entry_log.h"

namespace memtide::fm {

namespace {

using namespace log_format;

bool has_good_header(std::string_view bytes, std::uint64_t generation) {
    if (bytes.size() < kSegmentHeader || !bytes.starts_with(kSegmentMagic)) return false;
    const std::uint64_t sum = XXH64(bytes.data(), kSegmentHeader - 8, 0);
    return number_at(bytes, kSegmentHeader - 8, 8) == sum && number_at(bytes, 8, 8) == generation;
}

// The entry that begins at `offset`; nothing when none does.
std::optional<LogScan::Entry> entry_at(std::string_view bytes, std::size_t offset, std::uint64_t generation) {
    if (bytes.size() - offset < kEntryHeader || !bytes.substr(offset).starts_with(kEntryMagic))
        return std::nullopt;
    const std::uint64_t length = number_at(bytes, offset + 4, 4);
    if (length > kMaxPayload || length > bytes.size() - offset - kEntryHeader) return std::nullopt;
    const std::string_view payload = bytes.substr(offset + kEntryHeader, length);
    const std::uint64_t number = number_at(bytes, offset + 8, 8);
    if (number_at(bytes, offset + 16, 8) != entry_sum(generation, number, payload)) return std::nullopt;
    return LogScan::Entry{number, std::string(payload)};
}

class SegmentReader {
  public:
    SegmentReader(std::string path, std::string_view bytes, std::uint64_t generation, bool last_segment)
        : path_(std::move(path)), bytes_(bytes), generation_(generation), last_segment_(last_segment) {}

    // The sums of entries have the generation in them.
    bool has_entries() const { return next_entry(0) != bytes_.size(); }
    void read(LogScan& scan, std::uint64_t after) const {
        std::size_t at = std::min(kSegmentHeader, bytes_.size());
        while (at < bytes_.size()) {
            std::optional<LogScan::Entry> entry = entry_at(bytes_, at, generation_);
            if (!entry) {
                const std::size_t next = next_entry(at + 1);
                note(scan, at, next);
                at = next;
                continue;
            }
            at += kEntryHeader + entry->payload.size();
            scan.numbers.push_back(entry->number);
            if (entry->number > after) scan.entries.push_back(*std::move(entry));
        }
    }

  private:
    // Where the next whole entry begins, or the end.
    std::size_t next_entry(std::size_t from) const {
        for (std::size_t at = bytes_.find(kEntryMagic, from); at != std::string_view::npos;
             at = bytes_.find(kEntryMagic, at + 1))
            if (entry_at(bytes_, at, generation_)) return at;
        return bytes_.size();
    }
    void note(LogScan& scan, std::size_t from, std::size_t to) const {
        if (last_segment_ && to == bytes_.size())
            scan.torn_at = from;
        else
            scan.damage.push_back(fmt::format("{}: bytes {} to {} are no entry", path_, from, to - 1));
    }

    std::string path_;
    std::string_view bytes_;
    std::uint64_t generation_;
    bool last_segment_;
};

}  // namespace

std::uint64_t LogScan::last_without_gap(std::uint64_t after) const {
    std::uint64_t last = after;
    for (const Entry& one : entries) {
        if (one.number <= last) continue;
        if (one.number != last + 1) break;
        last = one.number;
    }
    return last;
}

std::optional<std::uint64_t> LogScan::first_missing(std::uint64_t after, std::uint64_t last) const {
    std::uint64_t next = after + 1;
    for (auto it = std::ranges::upper_bound(numbers, after); it != numbers.end() && *it <= next; ++it)
        next = *it + 1;
    if (next > last) return std::nullopt;
    return next;
}

Result<LogScan> scan_log(const StatePaths& paths, std::uint64_t generation, std::uint64_t after) {
    LogScan scan;
    const std::vector<std::string> segments = paths.logs();
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const Result<std::string> bytes = read_file(segments[i]);
        if (!bytes) return std::unexpected(bytes.error());
        const SegmentReader segment(segments[i], *bytes, generation, i + 1 == segments.size());
        if (has_good_header(*bytes, generation)) {
            segment.read(scan, after);
        } else if (segment.has_entries()) {
            scan.damage.push_back(fmt::format("{}: its header is damaged", segments[i]));
            segment.read(scan, after);
        } else if (bytes->size() >= kSegmentHeader) {
            scan.foreign.push_back(segments[i]);
        }  // else: its making was interrupted; nothing was in it
    }
    std::ranges::sort(scan.numbers);
    std::ranges::stable_sort(scan.entries, {}, &LogScan::Entry::number);
    const auto [first, last] = std::ranges::unique(scan.entries, {}, &LogScan::Entry::number);
    scan.entries.erase(first, last);
    return scan;
}

}  // namespace memtide::fm
