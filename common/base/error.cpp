#include "common/base/error.h"

#include <cerrno>
#include <system_error>

namespace memtide {

std::string_view to_string(ErrorCode code) {
    switch (code) {
        case ErrorCode::kInvalidArgument:
            return "invalid-argument";
        case ErrorCode::kNotFound:
            return "not-found";
        case ErrorCode::kAlreadyExists:
            return "already-exists";
        case ErrorCode::kConflict:
            return "conflict";
        case ErrorCode::kExhausted:
            return "exhausted";
        case ErrorCode::kPermission:
            return "permission";
        case ErrorCode::kUnavailable:
            return "unavailable";
        case ErrorCode::kTimeout:
            return "timeout";
        case ErrorCode::kProtocol:
            return "protocol";
        case ErrorCode::kIo:
            return "io";
        case ErrorCode::kCancelled:
            return "cancelled";
        case ErrorCode::kInternal:
            return "internal";
    }
    return "internal";
}

Error Error::with_context(std::string_view context) && {
    message.insert(0, std::string(context) + ": ");
    return std::move(*this);
}

namespace {
ErrorCode code_of_errno(int error_number) {
    switch (error_number) {
        case ENOENT:
            return ErrorCode::kNotFound;
        case EEXIST:
            return ErrorCode::kAlreadyExists;
        case EACCES:
        case EPERM:
            return ErrorCode::kPermission;
        case ENOSPC:
        case ENOMEM:
        case EDQUOT:
            return ErrorCode::kExhausted;
        case ETIMEDOUT:
            return ErrorCode::kTimeout;
        case ECONNREFUSED:
        case ECONNRESET:
            return ErrorCode::kUnavailable;
        default:
            return ErrorCode::kIo;
    }
}
}  // namespace

std::unexpected<Error> fail_errno(std::string_view action, std::string_view object, int error_number) {
    std::string message(action);
    message.append(" ").append(object).append(": ").append(std::generic_category().message(error_number));
    return fail(code_of_errno(error_number), std::move(message));
}

}  // namespace memtide
