#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <boost/json.hpp>

#include "common/http/server.h"
#include "tests/integration/background.h"

namespace memtide::agent {

// The manager's side of the agent channel, in this process: what the test wishes for is desired, and the last
// report is kept. On a free port of 127.0.0.1.
class WishingManager {
  public:
    explicit WishingManager(std::string host);
    ~WishingManager();
    WishingManager(const WishingManager&) = delete;
    WishingManager& operator=(const WishingManager&) = delete;

    [[nodiscard]] std::string address() const;  // "127.0.0.1:PORT"
    // Region 0 of a composition, of 256 MiB of each memdev; several are interleaved.
    void wish_online(const std::string& id, const std::vector<std::string>& serials);
    void wish_offline(const std::string& id, const std::vector<std::string>& serials,
                      std::chrono::seconds until_deadline);
    void forget(const std::string& id);

    // Waits for a report of the newest wishes in which `matches` holds for that composition; false after two
    // minutes.
    bool reports(const std::string& id, const std::function<bool(const boost::json::object&)>& matches);
    bool reports(const std::string& id, std::string_view state);
    // Codes of the last report's warnings, each followed by a space.
    std::string warnings();
    std::string last_report();

  private:
    void wish(const std::string& id, boost::json::object composition);
    boost::asio::awaitable<http::Response> desired(http::Request request);
    boost::asio::awaitable<http::Response> observed(http::Request request);

    std::string host_;
    http::Router router_;
    std::mutex mutex_;
    std::uint64_t revision_ = 1;
    std::map<std::string, boost::json::object> wishes_;
    boost::json::object report_;
    test::Background background_;
    std::unique_ptr<http::Server> server_;
};

}  // namespace memtide::agent
