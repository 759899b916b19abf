#include "cli/client/event_stream.h"

#include <charconv>
#include <utility>

#include <boost/json/parse.hpp>

#include "cli/client/resources.h"

namespace memtide::cli {
namespace {

constexpr std::size_t kLongestEvent = 1U << 20;  // bytes; a manager's have some hundred

}  // namespace

bool EventStream::take(std::string_view chunk) {
    buffer_ += chunk;
    std::size_t end = 0;
    while ((end = buffer_.find('\n')) != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        if (line.ends_with('\r')) line.pop_back();
        if (!take_line(line)) return false;
    }
    if (buffer_.size() + data_.size() <= kLongestEvent) return true;
    nonsense_ = "an event without end";
    return false;
}

bool EventStream::take_line(std::string_view line) {
    if (line.empty()) {
        const std::string data = std::exchange(data_, {});
        const auto id = std::exchange(id_, std::nullopt);
        const bool goes_on = data.empty() || take_data(data);
        if (id && nonsense_.empty()) last_id_ = *id;
        return goes_on;
    }
    if (line.starts_with("id:")) {
        line.remove_prefix(line.starts_with("id: ") ? 4 : 3);
        std::uint64_t id = 0;
        const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), id);
        if (error == std::errc{} && end == line.data() + line.size()) id_ = id;
    }
    if (line.starts_with("data:")) {
        line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
        data_ += data_.empty() ? std::string(line) : "\n" + std::string(line);
    }
    return true;
}

bool EventStream::take_data(const std::string& data) {
    boost::system::error_code failed;
    const boost::json::value event = boost::json::parse(data, failed);
    if (!failed && is_event(event)) return on_event_(event);
    nonsense_ = "an event that is none: " + data.substr(0, 60);
    return false;
}

}  // namespace memtide::cli
