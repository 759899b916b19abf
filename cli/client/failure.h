#pragma once

#include <expected>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "common/base/error.h"
#include "common/http/client.h"

namespace memtide::cli {

// Why a request did not get what it was for.
struct Failure {
    ErrorCode kind = ErrorCode::kInternal;
    std::string message;          // a sentence for people, which reads well behind "memtide: "
    boost::json::object problem;  // for programs, as in RFC 9457: at least "code", "detail" and "status"
};

template <typename T>
using Answer = std::expected<T, Failure>;

// The manager at `url` refused: its own problem document, or one made of the status.
Failure refusal(std::string_view url, const http::ClientResponse& response);
// No answer came: code "unreachable", or "invalid-url" when nothing could be asked.
Failure unreachable(std::string_view url, const Error& error);
// What was given to prove who asks cannot be used: code "bad-credentials".
Failure unusable(const Error& error);
// What another than a manager was asked for did not come, or a file cannot be used; the code is the error's.
Failure no_answer(const Error& error);
// Something answered that a fabric manager does not say: code "unexpected-answer". `what` describes it.
Failure unexpected_answer(std::string_view url, std::string_view what);
Failure unexpected_answer(std::string_view url, const http::ClientResponse& response);

}  // namespace memtide::cli
