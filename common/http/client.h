#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/http/credentials.h"
#include "common/http/message.h"

namespace memtide::http {

struct ClientRequest {
    std::string method = "GET";
    std::string target;  // path and query, already percent-encoded
    Headers headers;
    std::string body;
    std::chrono::milliseconds timeout{30'000};  // for the whole exchange
};

struct ClientResponse {
    unsigned status = 0;
    Headers headers;
    std::string body;
};

// HTTP/1.1 client for one base URL: "https://host:port", "http://host:port" or "unix:/path". Keeps one
// connection alive and opens it again when it was closed meanwhile. One exchange at a time; not thread safe.
// Errors: kUnavailable (cannot connect, closed), kTimeout, kProtocol (not HTTP, body over 64 MiB),
// kInvalidArgument (bad base URL or a target with spaces or control characters), kCancelled. A request that
// may be repeated (not POST or PATCH without an Idempotency-Key) is sent once more when a kept connection
// turns out to be closed. kPermission: TLS failed (whom it does not trust, or who does not trust it), or a
// token would have to cross a network in the clear.
class Client {
  public:
    Client(boost::asio::any_io_executor executor, std::string base_url,
           std::shared_ptr<Credentials> credentials = Credentials::none());
    ~Client();
    Client(Client&&) noexcept;
    Client& operator=(Client&&) noexcept;

    boost::asio::awaitable<Result<ClientResponse>> send(ClientRequest request);

    // For event streams: calls `on_chunk` with each piece of the body as it comes, until the stream ends or
    // on_chunk returns false. The body of an answer other than 2xx is kept instead. `timeout` bounds only the
    // wait for the response header.
    boost::asio::awaitable<Result<ClientResponse>> stream(ClientRequest request,
                                                          std::function<bool(std::string_view)> on_chunk);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Percent-encodes one path segment or query value (RFC 3986 unreserved characters stay).
std::string percent_encode(std::string_view text);

}  // namespace memtide::http
