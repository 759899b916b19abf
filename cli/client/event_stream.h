#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace memtide::cli {

// Cuts a text/event-stream into events and hands on the data of each (HTML Living Standard, 9.2.6).
class EventStream {
  public:
    using OnEvent = std::function<bool(const boost::json::value&)>;

    // `on_event` answers false when it wants no more. `last_id` follows the ids of the stream, those without
    // an event included. Both must outlive this.
    EventStream(const OnEvent& on_event, std::uint64_t& last_id) : on_event_(on_event), last_id_(last_id) {}

    // False when the stream shall end: nobody wants more of it, or it makes no sense.
    bool take(std::string_view chunk);
    // What makes no sense of what was taken; empty when all does.
    [[nodiscard]] const std::string& nonsense() const { return nonsense_; }

  private:
    bool take_line(std::string_view line);
    bool take_data(const std::string& data);

    const OnEvent& on_event_;
    std::uint64_t& last_id_;
    std::optional<std::uint64_t> id_;  // of the event that is being taken
    std::string buffer_;
    std::string data_;
    std::string nonsense_;
};

}  // namespace memtide::cli
