#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "common/base/error.h"
#include "common/http/message.h"

namespace memtide::cli {

// The fabric manager at one URL, for a program that does one thing at a time: every call blocks. Errors read
// well behind "memtide: ": a manager that cannot be reached is named with what to do about it, a refusal is
// the problem document's detail with its code.
class ManagerClient {
  public:
    explicit ManagerClient(std::string url) : url_(std::move(url)) {}

    Result<boost::json::value> get(const std::string& target) const;
    // Every item of a paged list, page after page.
    Result<boost::json::array> list(const std::string& target) const;
    // Repeats the request when the connection breaks: the idempotency key makes that safe.
    Result<boost::json::value> post(const std::string& target, const boost::json::value& body,
                                    const std::string& idempotency_key) const;
    Result<boost::json::value> remove(const std::string& target) const;

    // Calls `on_event` with the data of every event after `last_id` until it returns false or the stream
    // ends: after the newest event, or with `follow` when the manager stops or the connection breaks, which
    // then is no error.
    Result<> events(std::uint64_t last_id, bool follow,
                    const std::function<bool(const boost::json::value&)>& on_event) const;

  private:
    Result<boost::json::value> exchange(std::string_view method, const std::string& target,
                                        http::Headers headers, std::string body) const;
    Error explain(Error error) const;

    std::string url_;
};

// A key that no other request will have.
std::string new_idempotency_key();

}  // namespace memtide::cli
