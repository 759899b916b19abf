#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace memtide {

// What kind of thing went wrong; callers decide on it, people read Error::message.
enum class ErrorCode {
    kInvalidArgument,  // the caller's input is wrong; repeating it cannot help
    kNotFound,
    kAlreadyExists,
    kConflict,     // the state of things does not allow it now
    kExhausted,    // no capacity, no room, a limit was reached
    kPermission,   // not allowed, or needs root
    kUnavailable,  // the peer cannot be reached; trying later may help
    kTimeout,      // no answer within the deadline
    kProtocol,     // the peer answered something that makes no sense
    kIo,           // a system call failed
    kCancelled,
    kInternal,
};

std::string_view to_string(ErrorCode code);

// An error that says what was tried, on what, and where possible what to do.
struct Error {
    ErrorCode code = ErrorCode::kInternal;
    std::string message;

    // Puts "what was being done: " before the message, keeping the code.
    [[nodiscard]] Error with_context(std::string_view context) &&;
};

template <typename T = void>
using Result = std::expected<T, Error>;

// fail(ErrorCode::kNotFound, "no host named " + name) in a function that returns Result<T>.
inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
    return std::unexpected<Error>(Error{code, std::move(message)});
}

// fail_errno("open", path): the text of errno `error_number` behind what was tried on what.
std::unexpected<Error> fail_errno(std::string_view action, std::string_view object, int error_number);

}  // namespace memtide
