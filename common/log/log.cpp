#include "common/log/log.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace memtide::log {
namespace {

std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
    auto logger = std::make_shared<spdlog::logger>("memtide", std::move(sink));
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
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

constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                 spdlog::level::warn, spdlog::level::err};

void write(Level level, std::string_view event, Fields fields) {
    if (!is_enabled(level)) return;
    const auto logger = current_logger();
    std::string line;
    line.append("event=");
    append_value(line, event);
    for (const Field& field : fields) {
        if (field.value.empty()) continue;
        line.append(" ").append(field.key).append("=");
        append_value(line, field.value);
    }
    logger->log(kLevels[static_cast<int>(level)], spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void set_level(Level level) {
    current_level = level;
    current_logger()->set_level(kLevels[static_cast<int>(level)]);
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
