// JSON of any kind, read as if it were each of the types there are.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <boost/json/serialize.hpp>

#include "common/json/json.h"

namespace {

using namespace memtide;

void read(const json::Value& value, int depth) {
    (void)value.string(16);
    (void)value.name();
    (void)value.boolean();
    (void)value.integer<std::uint8_t>(3, 200);
    (void)value.integer<std::int64_t>();
    (void)value.integer<std::uint64_t>();
    (void)value.number();
    (void)value.bytes();
    (void)value.serial();
    (void)value.one_of({"online", "offline"});
    (void)value.is_negative();
    if (depth == 0) return;
    for (const auto& item : value.list(100)) read(item, depth - 1);
    const json::Object object = value.object();
    (void)object.get("size");
    (void)object.require("host").string();
    if (depth % 2 == 0)
        for (const auto& [name, member] : object.entries()) read(member, depth - 1);
}

// Boost.JSON reads and writes doubles to within a few units in the last place.
bool has_double(const boost::json::value& value) {
    if (const auto* array = value.if_array()) return std::ranges::any_of(*array, has_double);
    if (const auto* object = value.if_object())
        return std::ranges::any_of(*object, [](const auto& member) { return has_double(member.value()); });
    return value.is_double();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto value = json::parse(text, {.bytes = 1 << 16, .depth = 16});
    if (!value) {
        if (value.error().message.empty()) std::abort();
        return 0;
    }
    const json::Reader reader(*value);
    read(reader.root(), 4);
    (void)reader.check(json::Reader::Unknown::kIgnored);
    (void)reader.check(json::Reader::Unknown::kRefused);
    if (has_double(*value)) return 0;
    // What was understood, written and read again, is the same.
    const std::string written = boost::json::serialize(*value);
    const auto again = json::parse(written, {.bytes = 1 << 20, .depth = 16});
    if (!again || boost::json::serialize(*again) != written) std::abort();
    return 0;
}
