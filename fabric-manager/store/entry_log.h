#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "fabric-manager/store/files.h"

// The log beside the database: every mutation that was acknowledged since the last snapshot, as numbered
// entries in append-only files ("segments"). A mutation counts as durable when its entry is; the database
// itself may lag behind after a power failure and is brought up from here.
//
// A segment is a 40 byte header and entries, all numbers little-endian:
//   header  "MEMTLOG1", generation u64, number of the first entry u64, zero u64, XXH64 of what is before u64
//   entry   "ENTR", payload length u32, number u64, XXH64 u64 (seed: generation) of length, number and
//           payload, payload
// The generation is a random number that database, snapshot and segments of one history share.
namespace memtide::fm {

struct LogPosition {
    std::uint64_t generation = 0;
    std::uint64_t last = 0;  // number of the last entry
};

class EntryLog {
  public:
    using Fault = std::function<int(std::string_view point)>;  // as SqliteOptions::fault
    // Starts a new segment after position.last; durable when it returns. What an existing file of that name
    // holds is written over: its entries are known to be none.
    static Result<EntryLog> begin(StatePaths paths, LogPosition position, Fault fault);

    // Writes one entry for each payload and makes them durable together. After an error nothing of them is in
    // the log, or the log is broken(): whether they are durable is not known then, and never will be.
    Result<> append(const std::vector<std::string>& payloads);
    // The following entries go into a new segment.
    Result<> rotate();
    // Removes segments that only have entries up to this one.
    void remove_up_to(std::uint64_t entry);

    [[nodiscard]] bool broken() const { return broken_; }
    [[nodiscard]] const LogPosition& position() const { return position_; }
    [[nodiscard]] std::uint64_t segment_bytes() const { return size_; }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    EntryLog(StatePaths paths, LogPosition position, Fault fault)
        : paths_(std::move(paths)), position_(position), fault_(std::move(fault)) {}
    Result<> pass(std::string_view point, std::string_view action) const;
    Result<> begin_segment();
    Result<> write_bytes(std::string_view bytes) const;
    Result<> sync_bytes() const;
    Result<> cut(std::uint64_t size);

    StatePaths paths_;
    LogPosition position_;
    Fault fault_;
    std::string path_;
    File file_;
    std::uint64_t size_ = 0;
    bool broken_ = false;
};

// What is in the segments of one generation.
struct LogScan {
    struct Entry {
        std::uint64_t number = 0;
        std::string payload;
    };
    std::vector<Entry> entries;          // above `after`, in order, each once
    std::vector<std::uint64_t> numbers;  // of all entries that were found, in order
    std::optional<std::size_t> torn_at;  // from there the last segment has something that is no entry
    std::vector<std::string> damage;     // anything else that is wrong: "FILE: bytes 100 to 200 are no entry"
    std::vector<std::string> foreign;  // segments of another generation, or without a header that can be read
    // Number of the last entry that follows `after` without a gap.
    [[nodiscard]] std::uint64_t last_without_gap(std::uint64_t after) const;
    // The first one above `after`, up to `last`, that was not found.
    [[nodiscard]] std::optional<std::uint64_t> first_missing(std::uint64_t after, std::uint64_t last) const;
};

// Reads all segments. kIo when one cannot be read at all.
Result<LogScan> scan_log(const StatePaths& paths, std::uint64_t generation, std::uint64_t after);

namespace log_format {
inline constexpr std::string_view kSegmentMagic = "MEMTLOG1";
inline constexpr std::string_view kEntryMagic = "ENTR";
inline constexpr std::size_t kSegmentHeader = 40;
inline constexpr std::size_t kEntryHeader = 24;
inline constexpr std::size_t kMaxPayload = 256U << 20;

std::string segment_header(std::uint64_t generation, std::uint64_t first);
void add_entry(std::string& out, std::uint64_t generation, std::uint64_t number, std::string_view payload);
std::uint64_t entry_sum(std::uint64_t generation, std::uint64_t number, std::string_view payload);
std::uint64_t number_at(std::string_view bytes, std::size_t offset, std::size_t size);
}  // namespace log_format

}  // namespace memtide::fm
