#include "cli/client/failure.h"

#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include "common/json/member.h"

namespace memtide::cli {
namespace {

namespace json = boost::json;

ErrorCode kind_of_status(unsigned status) {
    if (status == 404) return ErrorCode::kNotFound;
    if (status == 401 || status == 403) return ErrorCode::kPermission;
    if (status == 409 || status == 412) return ErrorCode::kConflict;
    if (status == 503) return ErrorCode::kUnavailable;  // stopping, or too busy: worth another try
    return status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kInternal;
}

Failure failure(ErrorCode kind, std::string_view code, json::value status, std::string message) {
    json::object problem{{"status", std::move(status)}, {"code", code}, {"detail", message}};
    return {kind, std::move(message), std::move(problem)};
}

}  // namespace

Failure refusal(std::string_view url, const http::ClientResponse& response) {
    Failure result = failure(kind_of_status(response.status), "refused", response.status,
                             fmt::format("{} answered {}", url, response.status));
    boost::system::error_code failed;
    json::value body = json::parse(response.body, failed);
    auto* const problem = failed ? nullptr : body.if_object();
    if (problem == nullptr) return result;
    const auto* const detail = memtide::json::find_text(body, "detail");
    const auto* const code = memtide::json::find_text(body, "code");
    if (detail) result.message = std::string_view(*detail);
    if (response.status == 401) result.message += " (--token-file or $MEMTIDE_TOKEN_FILE gives one)";
    if (code) result.message += fmt::format(" ({})", std::string_view(*code));
    for (auto& member : *problem) result.problem[member.key()] = std::move(member.value());
    return result;
}

Failure unreachable(std::string_view url, const Error& error) {
    if (error.code == ErrorCode::kPermission)
        return failure(error.code, "not-trusted", nullptr, error.message);
    if (error.code == ErrorCode::kProtocol) return unexpected_answer(url, error.message);
    if (error.code != ErrorCode::kUnavailable && error.code != ErrorCode::kTimeout)
        return failure(error.code, error.code == ErrorCode::kInvalidArgument ? "invalid-url" : "unreachable",
                       nullptr, error.message);
    return failure(error.code, "unreachable", nullptr,
                   fmt::format("no answer from a fabric manager at {}: {}; is memtide-fabric-manager running "
                               "there? (--url or $MEMTIDE_URL says where)",
                               url, error.message));
}

Failure unusable(const Error& error) {
    return failure(error.code, "bad-credentials", nullptr, error.message);
}

Failure no_answer(const Error& error) {
    return failure(error.code, to_string(error.code), nullptr, error.message);
}

Failure unexpected_answer(std::string_view url, std::string_view what) {
    return failure(ErrorCode::kProtocol, "unexpected-answer", nullptr,
                   fmt::format("unexpected answer from {}: {}; is it a fabric manager?", url, what));
}

Failure unexpected_answer(std::string_view url, const http::ClientResponse& response) {
    constexpr std::size_t kExcerpt = 60;  // enough to recognise a page by
    std::string what = fmt::format("status {}", response.status);
    if (const auto location = response.headers.find("Location"); location != response.headers.end())
        what += ", go to " + location->second;
    if (const auto type = response.headers.find("Content-Type"); type != response.headers.end())
        what += ", " + type->second;
    what += response.body.empty() ? ", no content" : ", " + response.body.substr(0, kExcerpt);
    if (response.body.size() > kExcerpt) what += "...";
    return unexpected_answer(url, what);
}

}  // namespace memtide::cli
