#include "common/fmapi/return_code.h"

#include <array>

#include <fmt/format.h>

namespace memtide::fmapi {
namespace {

struct Row {
    std::string_view name;
    ErrorCode error;
};

using enum ErrorCode;
// Indexed by the return code.
constexpr std::array<Row, 0x1f> kRows{{
    {"Success", kInternal},
    {"Background Command Started", kInternal},
    {"Invalid Input", kInvalidArgument},
    {"Unsupported", kInvalidArgument},
    {"Internal Error", kIo},
    {"Retry Required", kConflict},
    {"Busy", kConflict},
    {"Media Disabled", kIo},
    {"FW Transfer in Progress", kConflict},
    {"FW Transfer Out of Order", kConflict},
    {"FW Authentication Failed", kPermission},
    {"Invalid Slot", kInvalidArgument},
    {"Activation Failed, FW Rolled Back", kIo},
    {"Activation Failed, Cold Reset Required", kIo},
    {"Invalid Handle", kInvalidArgument},
    {"Invalid Physical Address", kInvalidArgument},
    {"Inject Poison Limit Reached", kExhausted},
    {"Permanent Media Failure", kIo},
    {"Aborted", kCancelled},
    {"Invalid Security State", kPermission},
    {"Incorrect Passphrase", kPermission},
    {"Unsupported Mailbox or CCI", kInvalidArgument},
    {"Invalid Payload Length", kInvalidArgument},
    {"Invalid Log", kInvalidArgument},
    {"Interrupted", kCancelled},
    {"Unsupported Feature Version", kInvalidArgument},
    {"Unsupported Feature Selection Value", kInvalidArgument},
    {"Feature Transfer in Progress", kConflict},
    {"Feature Transfer Out of Order", kConflict},
    {"Resources Exhausted", kExhausted},
    {"Invalid Extent List", kInvalidArgument},
}};

}  // namespace

std::string_view name_of(ReturnCode code) {
    const auto index = static_cast<std::size_t>(code);
    return index < kRows.size() ? kRows[index].name : "unknown return code";
}

std::string to_string(ReturnCode code) {
    return fmt::format("{} ({:04x}h)", name_of(code), static_cast<unsigned>(code));
}

ErrorCode error_code_of(ReturnCode code) {
    const auto index = static_cast<std::size_t>(code);
    return index < kRows.size() ? kRows[index].error : kProtocol;
}

}  // namespace memtide::fmapi
