#include "cli/fmapi/arguments.h"

#include <string_view>

#include <fmt/format.h>

#include "common/json/json.h"

namespace memtide::cli {
namespace {

boost::json::array list(std::string_view text) {
    boost::json::array items;
    while (true) {
        const auto comma = text.find(',');
        items.push_back(boost::json::string(text.substr(0, comma)));
        if (comma == std::string_view::npos) return items;
        text.remove_prefix(comma + 1);
    }
}

Result<boost::json::value> value_of(std::string_view text) {
    if (text.starts_with('[') || text.starts_with('{')) return json::parse(text);
    if (text.find(',') != std::string_view::npos) return list(text);
    return boost::json::string(text);
}

// Where "a.b" puts its value: in an object "a" that is made when it is not there yet.
boost::json::object* inner_object(boost::json::object& fields, std::string_view& name) {
    boost::json::object* object = &fields;
    for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
        boost::json::value& inner = (*object)[name.substr(0, dot)];
        if (inner.is_null()) inner.emplace_object();
        if (!inner.is_object()) return nullptr;
        object = &inner.get_object();
        name.remove_prefix(dot + 1);
    }
    return object;
}

}  // namespace

Result<boost::json::object> fields_of_words(const std::vector<std::string>& words) {
    boost::json::object fields;
    for (const std::string& word : words) {
        const auto equals = word.find('=');
        if (equals == 0 || equals == std::string::npos)
            return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not FIELD=VALUE", word));
        std::string_view name = std::string_view(word).substr(0, equals);
        auto value = value_of(std::string_view(word).substr(equals + 1));
        if (!value)
            return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\": {}", word, value.error().message));
        boost::json::object* const object = inner_object(fields, name);
        if (object == nullptr || object->contains(name))
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("\"{}\" is given twice", word.substr(0, equals)));
        (*object)[name] = *std::move(value);
    }
    return fields;
}

}  // namespace memtide::cli
