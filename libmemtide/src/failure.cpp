#include "libmemtide/src/failure.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace memtide::library {
namespace {

thread_local std::array<char, 512> last{};

int errno_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalidArgument:
        case ErrorCode::kNotFound:
        case ErrorCode::kProtocol:
            return EINVAL;
        case ErrorCode::kExhausted:
            return ENOMEM;
        case ErrorCode::kPermission:
            return EPERM;
        case ErrorCode::kUnavailable:
            return ENODEV;
        case ErrorCode::kConflict:
            return ENOTSUP;
        default:
            return EIO;
    }
}

}  // namespace

void set_failure(int error_number, std::string_view sentence) noexcept {
    const std::size_t size = std::min(sentence.size(), last.size() - 1);
    std::copy_n(sentence.data(), size, last.data());
    last[size] = '\0';
    errno = error_number;
}

void set_failure(const Error& error) noexcept { set_failure(errno_of(error.code), error.message); }

const char* last_failure() noexcept { return last.data(); }

}  // namespace memtide::library
