#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include "common/base/error.h"

namespace memtide::http {

// Header names compare without regard to case.
struct CaseInsensitiveLess {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const;
};
using Headers = std::map<std::string, std::string, CaseInsensitiveLess>;

struct Request {
    std::string method;                                  // "GET", "POST", ...
    std::string path;                                    // percent-decoded, without the query
    std::map<std::string, std::string> query;            // percent-decoded
    std::map<std::string, std::string> path_parameters;  // filled by Router: {id} -> "..."
    Headers headers;
    std::string body;
    std::string peer;  // "127.0.0.1:40312" or "unix", for logs

    [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
    [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;
};

// Where a streaming response (server-sent events) writes; fails with kUnavailable once the client is gone.
class StreamWriter {
  public:
    virtual ~StreamWriter() = default;
    virtual boost::asio::awaitable<Result<>> write(std::string chunk) = 0;
};

struct Response {
    unsigned status = 200;
    Headers headers;  // Content-Type and others; Content-Length, Date and Connection are the server's
    std::string body;
    // When set, the body is what this coroutine writes (chunked) until it returns; `body` is ignored.
    std::function<boost::asio::awaitable<void>(StreamWriter&)> stream;
};

// RFC 9457. `code` is stable and for programs, `detail` is for people, `more` are further members.
Response problem(unsigned status, std::string_view code, std::string_view detail,
                 const boost::json::object& more = {});
Response json_response(unsigned status, std::string body);

}  // namespace memtide::http
