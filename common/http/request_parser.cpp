#include "common/http/request_parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

#include "common/http/beast_text.h"
#include "common/http/last_chunk.h"
#include "common/http/target.h"

namespace memtide::http {

namespace beast = boost::beast;

namespace {

using Fields = beast::http::fields;
using Message = beast::http::request<beast::http::string_body>;

Headers copy_headers(const Fields& fields) {
    Headers headers;
    for (const auto& field : fields) {
        const auto [place, fresh] =
            headers.try_emplace(std::string(view(field.name_string())), std::string(view(field.value())));
        // A field that comes twice is a list (RFC 9110, 5.2).
        if (!fresh) place->second.append(", ").append(view(field.value()));
    }
    return headers;
}

// RFC 9110, 5.6.2, as far as the first letter of a method goes.
bool is_token_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

}  // namespace

struct RequestParser::Impl {
    Impl(std::size_t header_bytes, std::size_t body_bytes)
        : header_limit(header_bytes), body_limit(body_bytes) {
        // Beast counts in 32 bits, and wants to see the whole header before it says that it is too large.
        parser.header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(header_bytes, 1U << 30)));
        parser.body_limit(body_bytes);
        parser.eager(true);
    }

    State refuse(unsigned status, std::string_view code, std::string_view detail) {
        refusal = problem(status, code, detail);
        return State::kFailed;
    }
    State refuse_large_header() {
        return refuse(431, "headers-too-large",
                      fmt::format("the request's header is larger than {} bytes", header_limit));
    }
    State refuse_error(const beast::error_code& error) {
        using Mistake = beast::http::error;
        if (error == Mistake::header_limit) return refuse_large_header();
        if (error == Mistake::body_limit)
            return refuse(413, "body-too-large", fmt::format("the body is larger than {} bytes", body_limit));
        if (error == Mistake::bad_version)
            return refuse(505, "invalid-request", "this server speaks HTTP/1.1 and HTTP/1.0");
        return refuse(400, "invalid-request", "not an HTTP request: " + error.message());
    }
    // What Beast leaves to us, once the header is there.
    std::optional<State> check_header() {
        const Message& message = parser.get();
        if (message.version() != 11 && message.version() != 10)
            return refuse(505, "invalid-request", "this server speaks HTTP/1.1 and HTTP/1.0");
        // RFC 9112, 3.2: none in HTTP/1.1, or more than one, must be refused.
        const auto hosts = message.count(beast::http::field::host);
        if (hosts > 1 || (hosts == 0 && message.version() == 11))
            return refuse(400, "invalid-request", "the request must have one Host header");
        // RFC 9112, 6.1: its body's end cannot be told from that of an HTTP/1.0 request.
        if (message.version() == 10 && message.count(beast::http::field::transfer_encoding) > 0)
            return refuse(400, "invalid-request", "Transfer-Encoding does not go with HTTP/1.0");
        // RFC 9112, 6.1: another last coding leaves the end of the body unknown.
        if (message.count(beast::http::field::transfer_encoding) > 0 && !parser.chunked())
            return refuse(501, "invalid-request", "the only Transfer-Encoding is chunked");
        request.method = std::string(view(message.method_string()));
        if (!parse_target(view(message.target()), request))
            return refuse(400, "invalid-request",
                          "the request's target is not a path with an optional query");
        const auto expect = message.find(beast::http::field::expect);
        if (expect == message.end()) return std::nullopt;
        if (!beast::iequals(expect->value(), "100-continue"))
            return refuse(417, "invalid-request", "the only expectation this server meets is 100-continue");
        expects_continue = message.version() == 11;
        return std::nullopt;
    }
    // Beast looks for the end of the header before it looks at its lines, so that somebody who ends them with
    // a bare line feed would wait in vain; and what others take for the end of a line must not be part of one
    // (RFC 9112, 2.2). False when `fresh`, which nobody has looked at, has one before the end of the header.
    bool ends_lines_well(std::string_view fresh);
    State feed(std::string_view& bytes);

    std::size_t header_limit;
    std::size_t body_limit;
    beast::http::request_parser<beast::http::string_body> parser;
    Request request;
    Response refusal;
    std::size_t left_over = 0;
    std::size_t line_bytes = 0;  // of the header line that has not ended
    char last_byte = 0;
    bool lines_over = false;
    bool begun = false;
    bool header_checked = false;
    bool expects_continue = false;
};

bool RequestParser::Impl::ends_lines_well(std::string_view fresh) {
    for (const char c : fresh) {
        if (lines_over) break;
        if (c == '\n' && last_byte != '\r') return false;
        lines_over = c == '\n' && line_bytes == 1;
        line_bytes = c == '\n' ? 0 : line_bytes + 1;
        last_byte = c;
    }
    return true;
}

RequestParser::State RequestParser::Impl::feed(std::string_view& bytes) {
    if (!begun && !parser.is_header_done()) {
        // RFC 9112, 2.2: empty lines before a request are skipped.
        while (bytes.starts_with("\r\n")) bytes.remove_prefix(2);
        if (bytes.empty() || bytes == "\r") return State::kNeedMore;
        // Beast waits for the end of the header; someone who speaks TLS to us never sends one.
        if (!is_token_character(bytes.front()))
            return refuse(400, "invalid-request", "not an HTTP request: it must begin with a method");
        begun = true;
    }
    if (!ends_lines_well(bytes.substr(std::min(left_over, bytes.size()))))
        return refuse(400, "invalid-request", "a line of the header ends with a bare line feed, without CR");
    const bool chunked = parser.is_header_done() && parser.chunked();
    if (must_wait_for_chunk(chunked, left_over, bytes.size())) return State::kNeedMore;
    while (!parser.is_done() && !bytes.empty()) {
        beast::error_code error;
        const std::size_t used = parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
        bytes.remove_prefix(used);
        if (error && error != beast::http::error::need_more) return refuse_error(error);
        if (parser.is_header_done() && !header_checked) {
            header_checked = true;
            if (const auto failed = check_header()) return *failed;
        }
        if (used == 0 || error == beast::http::error::need_more) break;
    }
    left_over = bytes.size();
    if (parser.is_done()) return State::kComplete;
    // A header, a chunk's extensions or a trailer that has no end.
    if (bytes.size() > header_limit) return refuse_large_header();
    return std::exchange(expects_continue, false) && bytes.empty() ? State::kNeedsContinue : State::kNeedMore;
}

RequestParser::RequestParser(std::size_t header_limit, std::size_t body_limit)
    : impl_(std::make_unique<Impl>(header_limit, body_limit)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

RequestParser::State RequestParser::feed(std::string_view& bytes) { return impl_->feed(bytes); }
bool RequestParser::begun() const { return impl_->begun; }
const Response& RequestParser::refusal() const { return impl_->refusal; }
bool RequestParser::keep_alive() const { return impl_->parser.keep_alive(); }
bool RequestParser::may_chunk() const { return impl_->parser.get().version() == 11; }

Request RequestParser::take() {
    Message message = impl_->parser.release();
    Request request = std::move(impl_->request);
    request.headers = copy_headers(message);
    request.body = std::move(message.body());
    impl_.reset();
    return request;
}

}  // namespace memtide::http
