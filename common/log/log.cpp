#include "common/log/log.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "common/base/utf8.h"

namespace memtide::log {
namespace {

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})";

std::atomic<Format> format{Format::kText};

const char* pattern() { return format == Format::kJson ? kJsonPattern : kTextPattern; }

std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
    auto logger = std::make_shared<spdlog::logger>("memtide", std::move(sink));
    logger->set_pattern(pattern());
    logger->flush_on(spdlog::level::info);
    return logger;
}

// The level of the current logger, to be asked without a lock.
std::atomic<Level> current_level{Level::kInfo};

std::mutex logger_mutex;
std::shared_ptr<spdlog::logger>& logger_slot() {
    static std::shared_ptr<spdlog::logger> logger =
        make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    return logger;
}

std::shared_ptr<spdlog::logger> current_logger() {
    const std::lock_guard lock(logger_mutex);
    return logger_slot();
}

// logfmt: a value with a space, quote, '=' or control character goes into quotes.
void append_value(std::string& line, std::string_view value) {
    const bool plain = !value.empty() && value.find_first_of(" \"=\\") == std::string_view::npos &&
                       std::ranges::none_of(value, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (plain) {
        line += value;
        return;
    }
    line += '"';
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            line.append("\\").push_back(c);
        else if (c == '\n')
            line += "\\n";
        else if (byte < 0x20 || byte == 0x7f)
            line += fmt::format("\\x{:02x}", byte);
        else
            line += c;
    }
    line += '"';
}

// A JSON string; what is no UTF-8 becomes U+FFFD, so that no peer can make a line that is no JSON.
void append_string(std::string& line, std::string_view text) {
    line += '"';
    while (!text.empty()) {
        const CodePoint c = first_code_point(text);
        const std::size_t size = std::max<std::size_t>(c.size, 1);
        if (c.size == 0)
            line += "\\ufffd";
        else if (c.value == '"' || c.value == '\\')
            line.append("\\").append(text.substr(0, 1));
        else if (c.value < 0x20)
            line += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
        else
            line += text.substr(0, size);
        text.remove_prefix(size);
    }
    line += '"';
}

std::string json_line(std::string_view event, Fields fields) {
    std::string line = "\"event\":";
    append_string(line, event);
    for (const Field& field : fields) {
        if (field.value.empty()) continue;
        line += ',';
        append_string(line, field.key);
        line += ':';
        // "inf" and "nan" are no numbers of JSON.
        if (field.number && field.value.find('n') == std::string::npos)
            line += field.value;
        else
            append_string(line, field.value);
    }
    return line;
}

std::string text_line(std::string_view event, Fields fields) {
    std::string line = "event=";
    append_value(line, event);
    for (const Field& field : fields) {
        if (field.value.empty()) continue;
        line.append(" ").append(field.key).append("=");
        append_value(line, field.value);
    }
    return line;
}

constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                 spdlog::level::warn, spdlog::level::err};

void write(Level level, std::string_view event, Fields fields) {
    if (!is_enabled(level)) return;
    const std::string line = format == Format::kJson ? json_line(event, fields) : text_line(event, fields);
    current_logger()->log(kLevels[static_cast<int>(level)], spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void set_level(Level level) {
    current_level = level;
    current_logger()->set_level(kLevels[static_cast<int>(level)]);
}

void set_format(Format wanted) {
    format = wanted;
    current_logger()->set_pattern(pattern());
}
bool is_enabled(Level level) { return level >= current_level.load(std::memory_order_relaxed); }

Result<> to_file(const std::string& path) {
    try {
        auto logger = make_logger(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
        const std::lock_guard lock(logger_mutex);
        logger->set_level(logger_slot()->level());
        logger_slot() = std::move(logger);
        return {};
    } catch (const spdlog::spdlog_ex& e) {
        return fail(ErrorCode::kIo, std::string("open log file ") + path + ": " + e.what());
    }
}

void debug(std::string_view event, Fields fields) { write(Level::kDebug, event, fields); }
void info(std::string_view event, Fields fields) { write(Level::kInfo, event, fields); }
void warning(std::string_view event, Fields fields) { write(Level::kWarning, event, fields); }
void error(std::string_view event, Fields fields) { write(Level::kError, event, fields); }

}  // namespace memtide::log
