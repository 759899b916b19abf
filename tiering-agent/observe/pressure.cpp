#include "tiering-agent/observe/pressure.h"

#include <charconv>

#include "tiering-agent/observe/words.h"

namespace memtide::agent {
namespace {

std::optional<double> read_from(const Files& files, const std::string& path) {
    const auto text = files.read(path);
    return text ? parse_pressure(*text) : std::nullopt;
}

}  // namespace

std::optional<double> parse_pressure(std::string_view text) {
    constexpr std::string_view kKey = "avg10=";
    while (!text.empty()) {
        std::string_view line = take_line(text);
        if (take_word(line) != "some") continue;
        while (!line.empty()) {
            std::string_view word = take_word(line);
            if (!word.starts_with(kKey)) continue;
            word.remove_prefix(kKey.size());
            double percent = 0;
            const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), percent);
            if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
            if (!(percent >= 0 && percent <= 100)) return std::nullopt;
            return percent / 100;
        }
    }
    return std::nullopt;
}

std::optional<double> read_memory_pressure(const Files& files) {
    return read_from(files, "proc/pressure/memory");
}

std::optional<double> read_memory_pressure(const Files& files, const std::string& cgroup) {
    // As the kernel writes the path of a cgroup outside of this namespace's: not to be seen here.
    if (!cgroup.starts_with('/') || cgroup.contains("/..")) return std::nullopt;
    return read_from(files, "sys/fs/cgroup" + cgroup + "/memory.pressure");
}

}  // namespace memtide::agent
