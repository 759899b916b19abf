#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace memtide::fm {

// Codes that clients decide on; each is a `code` of the REST interface's problem documents.
namespace problem {
inline constexpr std::string_view kInvalidRequest = "invalid-request";
inline constexpr std::string_view kUnknownHost = "unknown-host";
inline constexpr std::string_view kSizeZero = "size-zero";
inline constexpr std::string_view kSizeNotMultiple = "size-not-multiple";
inline constexpr std::string_view kExceedsFree = "exceeds-free";
inline constexpr std::string_view kExceedsCapacity = "exceeds-capacity";
inline constexpr std::string_view kExceedsLargestDevice = "exceeds-largest-device";
inline constexpr std::string_view kNoFittingDevice = "no-fitting-device";
inline constexpr std::string_view kReserved = "reserved";
inline constexpr std::string_view kLimitExceeded = "limit-exceeded";
inline constexpr std::string_view kBadPlacement = "bad-placement";
inline constexpr std::string_view kHostNotReachable = "host-not-reachable";
inline constexpr std::string_view kNoFreeVppb = "no-free-vppb";
inline constexpr std::string_view kUnknownComposition = "unknown-composition";
inline constexpr std::string_view kIdempotencyConflict = "idempotency-conflict";
inline constexpr std::string_view kCompositionEnded = "composition-ended";
inline constexpr std::string_view kPreconditionFailed = "precondition-failed";
inline constexpr std::string_view kNotOnline = "not-online";
inline constexpr std::string_view kCannotShrink = "cannot-shrink";
inline constexpr std::string_view kExchangeUnderWay = "exchange-under-way";
inline constexpr std::string_view kNotQuarantined = "not-quarantined";
inline constexpr std::string_view kStorageFull = "storage-full";
inline constexpr std::string_view kStorageReadOnly = "storage-read-only";
inline constexpr std::string_view kStorageFailed = "storage-failed";
inline constexpr std::string_view kNotYourComposition = "not-your-composition";
inline constexpr std::string_view kInternalError = "internal-error";
}  // namespace problem

// Why a device could not serve a request: `constraint` is one of link-down, switch-down, no-free-vppb,
// no-memory, size, max-percent-per-device, max-percent-per-switch, exclusive-devices, in-use, flapping.
struct Exclusion {
    std::string device;
    std::string constraint;
    std::string detail;
    friend bool operator==(const Exclusion&, const Exclusion&) = default;
};

// A refusal: `code` is one of the constants above, `detail` says what was asked, why not, and what would do.
// `kind` is kInternal for faults of ours, kExhausted, kPermission or kIo when the store could not write.
struct Problem {
    std::string code;
    std::string detail;
    ErrorCode kind = ErrorCode::kInvalidArgument;
    std::vector<Exclusion> excluded{};  // of a placement: what kept which device out
};

template <typename T = void>
using Outcome = std::expected<T, Problem>;

inline std::unexpected<Problem> refuse(std::string_view code, std::string detail,
                                       ErrorCode kind = ErrorCode::kInvalidArgument) {
    return std::unexpected<Problem>(Problem{std::string(code), std::move(detail), kind});
}

}  // namespace memtide::fm
