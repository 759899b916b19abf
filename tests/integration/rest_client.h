#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "common/http/credentials.h"
#include "common/http/message.h"

namespace memtide::test {

struct RestAnswer {
    unsigned status = 0;  // 0: there was none; `body` says why
    http::Headers headers;
    std::string body;
    boost::json::value json;  // null when the body is not JSON

    // The problem's code; empty when it is none.
    [[nodiscard]] std::string code() const;
};

// Blocking REST client for tests; one connection, not thread safe. Never throws, never fails: a call that
// brings no answer has status 0.
class RestClient {
  public:
    // As http::Client's.
    explicit RestClient(std::string base_url,
                        std::shared_ptr<http::Credentials> credentials = http::Credentials::none());
    ~RestClient();

    RestAnswer call(const std::string& method, const std::string& target, std::string body = {},
                    http::Headers headers = {}, std::chrono::milliseconds timeout = std::chrono::seconds(60));
    RestAnswer get(const std::string& target) { return call("GET", target); }
    // With Content-Type application/json.
    RestAnswer send_json(const std::string& method, const std::string& target, std::string body,
                         http::Headers headers = {});

    // POST /v1/compositions; the answer's "id" is the composition's.
    RestAnswer compose(std::string_view host, std::string_view size, http::Headers headers = {});
    // Long polls until the composition is in the state or has ended; the composition as it is then, null when
    // `limit` passed first.
    boost::json::value wait(std::string_view id, std::string_view state,
                            std::chrono::milliseconds limit = std::chrono::seconds(60));
    // Reads an event stream until `on_chunk` returns false or the stream ends.
    RestAnswer stream(const std::string& target, http::Headers headers,
                      std::function<bool(std::string_view)> on_chunk);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Text of the member, "" when it is not there or no text.
std::string text(const boost::json::value& object, std::string_view member);
// The part of a composition that has one only; throws when it has others.
const boost::json::value& only_part(const boost::json::value& composition);

}  // namespace memtide::test
