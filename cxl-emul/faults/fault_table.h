#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "cxl-emul/faults/fault.h"

namespace memtide::emul {

// What a fault strikes, and so how it is carried out.
enum class FaultLayer : std::uint8_t {
    kEquipment,  // links, devices, power: begins, and ends
    kOperation,  // background operations as they begin
    kAnswer,     // answers of a switch, on their way
};

struct FaultRow {
    FaultKind kind;
    std::string_view name;
    FaultLayer layer;
    std::string_view targets;     // keys, one of which is needed; with "switch?" it may be left out
    std::string_view parameters;  // keys that it has beside the common ones; those with "!" are needed
    std::string_view summary;
};

// In the order of the enumeration.
extern const std::array<FaultRow, kFaultKinds> kFaultTable;

const FaultRow& row_of(FaultKind kind);
std::string_view to_string(FaultKind kind);
// kNotFound with the kind that was probably meant.
Result<FaultKind> parse_fault_kind(std::string_view text);

// Whether faults of this kind take the key, and whether they need it.
enum class KeyUse { kNone, kOptional, kRequired };
KeyUse use_of(const FaultRow& row, std::string_view key);
// Every key but `at` and `fault` that any kind has.
const std::vector<std::string_view>& fault_keys();

}  // namespace memtide::emul
