#include "common/http/message.h"

#include <algorithm>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "common/base/utf8.h"
#include "common/http/reason.h"

namespace memtide::http {
namespace {

unsigned char lower(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 'A' && byte <= 'Z' ? static_cast<unsigned char>(byte + ('a' - 'A')) : byte;
}

// Details quote what clients sent: that may be long, and need not be text.
std::string presentable(std::string_view text) {
    constexpr std::size_t kLongest = 2000;
    std::string result;
    while (!text.empty()) {
        const std::size_t length = first_code_point(text).size;
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
