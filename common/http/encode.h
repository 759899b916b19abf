#pragma once

#include <string>
#include <string_view>

#include "common/http/message.h"

namespace memtide::http {

enum class Framing {
    kLength,   // the body is there as a whole
    kChunked,  // a stream to an HTTP/1.1 client
    kToEnd,    // a stream to an HTTP/1.0 client: the end of the connection ends it
};

// Status line and header of a response, with Content-Length or Transfer-Encoding, Date and Connection.
// Control characters in header fields become spaces: nothing a handler puts there can end the header early.
std::string encode_head(const Response& response, Framing framing, bool keep_alive);

// The head and, unless it answers HEAD, the body.
std::string encode(const Response& response, bool head_only, bool keep_alive);

// One chunk of a chunked body (RFC 9112, 7.1); `data` must not be empty.
std::string encode_chunk(std::string_view data);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// A request with Content-Length when there is a body or the method usually has one.
std::string encode_request(std::string_view method, std::string_view target, std::string_view host,
                           const Headers& headers, std::string_view body);

}  // namespace memtide::http
