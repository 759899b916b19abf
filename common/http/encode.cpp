#include "common/http/encode.h"

#include <ctime>

#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

#include "common/http/reason.h"

namespace memtide::http {
namespace {

// The handlers' own values for these would contradict the framing.
bool is_ours(std::string_view name) {
    static const Headers ours{{"Connection", ""},
                              {"Content-Length", ""},
                              {"Date", ""},
                              {"Keep-Alive", ""},
                              {"Transfer-Encoding", ""}};
    return ours.contains(name);
}

void append_field(std::string& text, std::string_view name, std::string_view value) {
    const auto append_clean = [&text](std::string_view piece) {
        for (const char c : piece)
            text.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c);
    };
    append_clean(name);
    text.append(": ");
    append_clean(value);
    text.append("\r\n");
}

// RFC 9110, 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT". Made once a second.
const std::string& date() {
    thread_local std::time_t second = 0;
    thread_local std::string text;
    const std::time_t now = std::time(nullptr);
    if (now == second) return text;
    static constexpr std::string_view kDays = "SunMonTueWedThuFriSat";
    static constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
    std::tm utc{};
    gmtime_r(&now, &utc);
    text = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                       kDays.substr(static_cast<std::size_t>(utc.tm_wday) * 3, 3), utc.tm_mday,
                       kMonths.substr(static_cast<std::size_t>(utc.tm_mon) * 3, 3), utc.tm_year + 1900,
                       utc.tm_hour, utc.tm_min, utc.tm_sec);
    second = now;
    return text;
}

// RFC 9110, 6.4.1: these have no body, nor the length of one.
bool has_no_body(unsigned status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

std::string_view reason_phrase(unsigned status) {
    if (status == 507) return "Insufficient Storage";
    const auto known = boost::beast::http::int_to_status(status);
    if (known == boost::beast::http::status::unknown) return "Status";
    const auto text = boost::beast::http::obsolete_reason(known);
    return {text.data(), text.size()};
}

std::string encode_head(const Response& response, Framing framing, bool keep_alive) {
    std::string text;
    text.reserve(256 + (framing == Framing::kLength ? response.body.size() : 0));
    fmt::format_to(std::back_inserter(text), "HTTP/1.1 {} {}\r\nDate: {}\r\n", response.status,
                   reason_phrase(response.status), date());
    for (const auto& [name, value] : response.headers)
        if (!is_ours(name)) append_field(text, name, value);
    if (framing == Framing::kChunked)
        text.append("Transfer-Encoding: chunked\r\n");
    else if (framing == Framing::kLength && !has_no_body(response.status))
        fmt::format_to(std::back_inserter(text), "Content-Length: {}\r\n", response.body.size());
    text.append(keep_alive && framing != Framing::kToEnd ? "Connection: keep-alive\r\n\r\n"
                                                         : "Connection: close\r\n\r\n");
    return text;
}

std::string encode(const Response& response, bool head_only, bool keep_alive) {
    std::string text = encode_head(response, Framing::kLength, keep_alive);
    if (!head_only && !has_no_body(response.status)) text.append(response.body);
    return text;
}

std::string encode_chunk(std::string_view data) { return fmt::format("{:x}\r\n{}\r\n", data.size(), data); }

std::string encode_request(std::string_view method, std::string_view target, std::string_view host,
                           const Headers& headers, std::string_view body) {
    std::string text;
    text.reserve(256 + body.size());
    append_field(text, "Host", host);
    for (const auto& [name, value] : headers)
        if (!is_ours(name)) append_field(text, name, value);
    if (!body.empty() || method == "POST" || method == "PUT" || method == "PATCH")
        fmt::format_to(std::back_inserter(text), "Content-Length: {}\r\n", body.size());
    return fmt::format("{} {} HTTP/1.1\r\n{}\r\n{}", method, target, text, body);
}

}  // namespace memtide::http
