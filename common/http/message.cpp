#include "common/http/message.h"

#include <algorithm>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "common/http/reason.h"

namespace memtide::http {
namespace {

unsigned char lower(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 'A' && byte <= 'Z' ? static_cast<unsigned char>(byte + ('a' - 'A')) : byte;
}

// Length of the UTF-8 sequence that `text` begins with (RFC 3629); 0 when it begins with none.
std::size_t sequence_length(std::string_view text) {
    const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const unsigned char second = byte(1);
    const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
    return overlong || no_character ? 0 : length;
}

// Details quote what clients sent: that may be long, and need not be text.
std::string presentable(std::string_view text) {
    constexpr std::size_t kLongest = 2000;
    std::string result;
    while (!text.empty()) {
        const std::size_t length = sequence_length(text);
        if (result.size() + length > kLongest) return result + "...";
        result.append(length == 0 ? "?" : text.substr(0, length));
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return result;
}

}  // namespace

bool CaseInsensitiveLess::operator()(std::string_view a, std::string_view b) const {
    return std::ranges::lexicographical_compare(a, b, {}, lower, lower);
}

std::optional<std::string_view> Request::header(std::string_view name) const {
    const auto found = headers.find(name);
    if (found == headers.end()) return std::nullopt;
    return found->second;
}

std::optional<std::string_view> Request::query_value(std::string_view name) const {
    const auto found = query.find(std::string(name));
    if (found == query.end()) return std::nullopt;
    return found->second;
}

Response problem(unsigned status, std::string_view code, std::string_view detail,
                 const boost::json::object& more) {
    boost::json::object body;
    body["type"] = "about:blank";
    body["title"] = reason_phrase(status);
    body["status"] = status;
    body["code"] = code;
    body["detail"] = presentable(detail);
    for (const auto& [key, value] : more) body[key] = value;
    Response response;
    response.status = status;
    response.headers["Content-Type"] = "application/problem+json";
    response.body = boost::json::serialize(body);
    return response;
}

Response json_response(unsigned status, std::string body) {
    Response response;
    response.status = status;
    response.headers["Content-Type"] = "application/json";
    response.body = std::move(body);
    return response;
}

}  // namespace memtide::http
