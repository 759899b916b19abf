#include "fabric-manager/rest/text.h"

#include <ctime>

#include <fmt/format.h>

namespace memtide::fm {

namespace {

// "2026-01-31T12:00:00." of a second. The times of one answer lie close together: most are of the second that
// was asked for last.
const std::string& text_of_second(std::time_t second) {
    thread_local std::time_t known = -1;
    thread_local std::string text;
    if (second == known && !text.empty()) return text;
    std::tm utc{};
    gmtime_r(&second, &utc);
    text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.", utc.tm_year + 1900, utc.tm_mon + 1,
                       utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
    known = second;
    return text;
}

}  // namespace

std::string format_time(Time time) {
    const auto since_epoch = std::chrono::floor<Milliseconds>(time).time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
    const auto ms = static_cast<unsigned>((since_epoch - seconds).count());
    std::string text = text_of_second(seconds.count());
    for (const unsigned digit : {ms / 100, ms / 10 % 10, ms % 10}) text += static_cast<char>('0' + digit);
    return text += 'Z';
}

}  // namespace memtide::fm
