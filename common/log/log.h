#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"

namespace memtide::log {

// One fact beside an event: log::info("composition online", {{"composition", id}, {"node", 1}}). A fact
// without a value is left out.
struct Field {
    std::string_view key;
    std::string value;
    bool number = false;  // written without quotes in JSON

    Field(std::string_view k, std::string_view v) : key(k), value(v) {}
    Field(std::string_view k, const char* v) : key(k), value(v) {}
    Field(std::string_view k, const std::string& v) : key(k), value(v) {}
    Field(std::string_view k, std::integral auto v) : key(k), value(std::to_string(v)), number(true) {}
    Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), number(true) {}
    Field(std::string_view k, double v) : key(k), value(std::to_string(v)), number(true) {}
    Field(std::string_view k, Bytes v) : key(k), value(format_bytes(v)) {}
    Field(std::string_view k, SerialNumber v) : key(k), value(format_serial(v)) {}
    Field(std::string_view k, const Error& e) : key(k), value(e.message) {}
    template <typename Tag>
    Field(std::string_view k, const Id<Tag>& id) : key(k), value(id.value) {}
};
using Fields = std::initializer_list<Field>;

enum class Level { kDebug, kInfo, kWarning, kError };
enum class Format {
    kText,  // logfmt: time level event="..." key=value ...
    kJson,  // one object a line: {"time": ..., "level": ..., "event": ..., "key": ...}
};

// Lines go to standard error, as logfmt until told otherwise. Thread safe.
void set_level(Level level);
void set_format(Format format);
// Whether lines of this level are written at all: for lines whose fields cost something to make.
bool is_enabled(Level level);
// Sends lines to a file instead (opened for append); kIo when it cannot be opened.
Result<> to_file(const std::string& path);

void debug(std::string_view event, Fields fields = {});
void info(std::string_view event, Fields fields = {});
void warning(std::string_view event, Fields fields = {});
void error(std::string_view event, Fields fields = {});

}  // namespace memtide::log
