#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "fabric-manager/store/store.h"

namespace memtide::fm {

// A change of one row: what a Mutation comes down to. Made once for each mutation; then the database carries
// it out and the log keeps it, so that a replay does the very same.
struct RowChange {
    // Numbers are part of the log's format.
    enum class Kind : std::uint8_t {
        kInsertComposition = 1,
        kUpdateComposition = 2,
        kForgetComposition = 3,
        kAddEvent = 4,
        kForgetEvents = 5,
        kQuarantine = 6,
        kLiftQuarantine = 7,
        kHost = 8,
        kAddKey = 9,
        kForgetKey = 10,
    };
    Kind kind{};
    std::string key;           // composition id, host, idempotency key
    std::uint64_t number = 0;  // sequence, event id, serial number, revision of a host
    std::uint64_t second = 0;  // revision of a composition, size of a quarantined LD
    std::string body;          // composition, event, detail, answer
    std::string hash;          // of the request that used an idempotency key
    friend bool operator==(const RowChange&, const RowChange&) = default;
};

std::vector<RowChange> row_changes(const Mutation& mutation);

// As the log keeps them. Decoding fails with kProtocol on anything else.
std::string encode_changes(const std::vector<RowChange>& changes);
Result<std::vector<RowChange>> decode_changes(std::string_view bytes);

// XXH64 of a row: of the number that its table has here, and of all its columns. Kept beside them.
enum class RowTable : std::uint8_t {
    kCompositions = 1,
    kEvents = 2,
    kQuarantine = 3,
    kHosts = 4,
    kIdempotency = 5,
    kMeta = 6,
};
std::int64_t row_sum(RowTable table, std::string_view key, std::uint64_t number, std::uint64_t second,
                     std::string_view body, std::string_view hash = {});

}  // namespace memtide::fm
