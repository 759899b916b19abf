#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include <boost/json/value.hpp>

namespace memtide::cli {

// What `memtide agent top` shows, of one answer of the agent after the other: rates are of the time between
// two.
class TopView {
  public:
    using Time = std::chrono::steady_clock::time_point;
    std::string page(const boost::json::value& status, Time now);

  private:
    struct Before {
        Time at{};
        std::map<std::string, std::int64_t> counts{};
        double processor_seconds = 0;
    };
    std::optional<Before> before_;
};

// One page, without rates.
std::string render_top(const boost::json::value& status);

}  // namespace memtide::cli
