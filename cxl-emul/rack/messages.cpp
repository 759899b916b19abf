#include "cxl-emul/rack/messages.h"

#include <array>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace memtide::emul {
namespace json = boost::json;

namespace {
ErrorCode error_code_named(std::string_view name) {
    constexpr std::array kAll = {
        ErrorCode::kInvalidArgument, ErrorCode::kNotFound,   ErrorCode::kAlreadyExists, ErrorCode::kConflict,
        ErrorCode::kExhausted,       ErrorCode::kPermission, ErrorCode::kUnavailable,   ErrorCode::kTimeout,
        ErrorCode::kProtocol,        ErrorCode::kIo,         ErrorCode::kCancelled,     ErrorCode::kInternal};
    for (const auto code : kAll) {
        if (to_string(code) == name) return code;
    }
    return ErrorCode::kInternal;
}
}  // namespace

Result<json::object> parse_message(const Frame& frame) {
    boost::system::error_code error;
    auto value = json::parse(frame.payload, error);
    if (error || !value.is_object()) return fail(ErrorCode::kProtocol, "a message that is not a JSON object");
    return std::move(value.get_object());
}

std::string serialize_message(const json::object& message) { return json::serialize(message); }

Frame request(std::uint32_t stream, const json::object& message) {
    return {FrameType::kRequest, stream, serialize_message(message)};
}
Frame reply(std::uint32_t stream, const json::object& message) {
    return {FrameType::kReply, stream, serialize_message(message)};
}
Frame progress(std::uint32_t stream, const json::object& message) {
    return {FrameType::kProgress, stream, serialize_message(message)};
}

Frame error_reply(std::uint32_t stream, const Error& error) {
    json::object detail;
    detail["code"] = to_string(error.code);
    detail["message"] = error.message;
    json::object message;
    message["error"] = std::move(detail);
    return reply(stream, message);
}

Result<json::object> read_reply(const Frame& frame) {
    auto message = parse_message(frame);
    if (!message) return message;
    const auto* error = message->if_contains("error");
    if (!error) return message;
    if (!error->is_object()) return fail(ErrorCode::kProtocol, "an error without a message");
    return fail(error_code_named(text_of(error->get_object(), "code")),
                text_of(error->get_object(), "message"));
}

std::string text_of(const json::object& message, std::string_view key) {
    const auto* value = message.if_contains(key);
    return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::uint64_t number_of(const json::object& message, std::string_view key) {
    const auto* value = message.if_contains(key);
    if (!value || !value->is_number()) return 0;
    boost::system::error_code error;
    const auto number = value->to_number<std::uint64_t>(error);
    return error ? 0 : number;
}

std::vector<std::string> texts_of(const json::object& message, std::string_view key) {
    std::vector<std::string> out;
    const auto* value = message.if_contains(key);
    if (!value || !value->is_array()) return out;
    for (const auto& entry : value->get_array()) {
        if (entry.is_string()) out.emplace_back(entry.get_string());
    }
    return out;
}

}  // namespace memtide::emul
