#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "cli/client/failure.h"
#include "cli/client/resources.h"
#include "common/http/credentials.h"
#include "common/http/message.h"

namespace memtide::cli {

// Which events to hear of; what is not given does not matter.
struct EventFilter {
    std::optional<std::string> type;  // "composition.state", or "composition" for all that begin so
    std::optional<std::string> composition;
    std::optional<std::string> host;
};

// The fabric manager at one URL, for a program that does one thing at a time: every call blocks. An answer is
// what the caller said it must be, or a Failure of kind kProtocol.
class ManagerClient {
  public:
    explicit ManagerClient(std::string url,
                           std::shared_ptr<http::Credentials> credentials = http::Credentials::none())
        : url_(std::move(url)), credentials_(std::move(credentials)) {}

    Answer<boost::json::value> get(const std::string& target, IsResource is_resource) const;
    // Every item of a paged list, page after page; `target` may have a query.
    Answer<boost::json::array> list(const std::string& target, IsResource is_item) const;
    // Repeats the request when the connection breaks: the idempotency key makes that safe.
    Answer<boost::json::value> post(const std::string& target, const boost::json::value& body,
                                    const std::string& idempotency_key, IsResource is_resource) const;
    Answer<boost::json::value> patch(const std::string& target, const boost::json::value& body,
                                     IsResource is_resource) const;
    Answer<boost::json::value> remove(const std::string& target, IsResource is_resource) const;

    // Calls `on_event` with every event after `last_id` that fits, until it returns false or the stream ends:
    // after the newest event, or with `follow` when the manager stops or the connection breaks, which then is
    // no error. Moves `last_id` on to what has been seen, also when it did not fit.
    Answer<void> events(std::uint64_t& last_id, bool follow, const EventFilter& filter,
                        const std::function<bool(const boost::json::value&)>& on_event) const;

  private:
    Answer<boost::json::value> exchange(http::ClientRequest request, IsResource is_resource) const;

    std::string url_;
    std::shared_ptr<http::Credentials> credentials_;
};

// A key that no other request will have.
std::string new_idempotency_key();

}  // namespace memtide::cli
