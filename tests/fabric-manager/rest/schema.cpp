#include "tests/fabric-manager/rest/schema.h"

#include <regex>
#include <set>

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace memtide::fm {
namespace {

namespace json = boost::json;

class Check {
  public:
    Check(const json::value& document, bool strict, std::vector<std::string>& mistakes)
        : document_(document), strict_(strict), mistakes_(mistakes) {}

    void check(const json::object& schema, const json::value& value, const std::string& path) {
        if (const json::value* target = schema.if_contains("$ref")) {
            const std::string pointer(std::string_view(target->get_string()).substr(1));
            return check(document_.at_pointer(pointer).as_object(), value, path);
        }
        if (const json::value* choices = schema.if_contains("oneOf"))
            return one_of(choices->as_array(), value, path);
        known_keywords(schema, path);
        type(schema, value, path);
        if (const json::value* choices = schema.if_contains("enum")) in(choices->as_array(), value, path);
        if (value.is_object()) object(schema, value.get_object(), path);
        if (value.is_array() && schema.contains("items"))
            for (std::size_t i = 0; i < value.get_array().size(); ++i)
                check(schema.at("items").as_object(), value.get_array()[i], fmt::format("{}[{}]", path, i));
        if (value.is_number()) range(schema, value.to_number<double>(), path);
        if (value.is_string() && schema.contains("pattern") &&
            !std::regex_search(std::string(value.get_string()),
                               std::regex(std::string(schema.at("pattern").as_string()))))
            mistake(path, "does not match its pattern");
    }

  private:
    void mistake(const std::string& path, std::string_view what) {
        mistakes_.push_back(fmt::format("{}: {}", path, what));
    }

    void one_of(const json::array& choices, const json::value& value, const std::string& path) {
        int fitting = 0;
        for (const json::value& choice : choices) {
            std::vector<std::string> wrong;
            Check(document_, strict_, wrong).check(choice.as_object(), value, path);
            if (wrong.empty()) ++fitting;
        }
        if (fitting != 1) mistake(path, fmt::format("fits {} of the choices, not one", fitting));
    }

    void known_keywords(const json::object& schema, const std::string& path) {
        static const std::set<std::string_view> known{
            "type",        "enum",     "required", "properties", "additionalProperties",
            "items",       "minimum",  "maximum",  "pattern",    "format",
            "description", "examples", "default",  "maxLength",  "maxProperties"};
        for (const auto& [key, unused] : schema)
            if (!known.contains(key)) mistake(path, fmt::format("unknown keyword {}", std::string_view(key)));
    }

    static bool has_type(std::string_view type, const json::value& value) {
        if (type == "null") return value.is_null();
        if (type == "boolean") return value.is_bool();
        if (type == "string") return value.is_string();
        if (type == "object") return value.is_object();
        if (type == "array") return value.is_array();
        if (type == "number") return value.is_number();
        return type == "integer" && (value.is_int64() || value.is_uint64());
    }

    void type(const json::object& schema, const json::value& value, const std::string& path) {
        const json::value* types = schema.if_contains("type");
        if (types == nullptr) return mistake(path, "has no type in the schema");
        bool fits = false;
        if (types->is_string()) fits = has_type(types->get_string(), value);
        if (types->is_array())
            for (const json::value& one : types->get_array()) fits |= has_type(one.as_string(), value);
        if (!fits) mistake(path, "is of the wrong type: " + json::serialize(value));
    }

    void in(const json::array& choices, const json::value& value, const std::string& path) {
        for (const json::value& choice : choices)
            if (choice == value) return;
        mistake(path, "is none of its choices: " + json::serialize(value));
    }

    void object(const json::object& schema, const json::object& value, const std::string& path) {
        if (const json::value* required = schema.if_contains("required"))
            for (const json::value& key : required->as_array())
                if (!value.contains(key.as_string()))
                    mistake(path, fmt::format("{} is missing", std::string_view(key.as_string())));
        const json::value* properties = schema.if_contains("properties");
        const json::value* others = schema.if_contains("additionalProperties");
        for (const auto& [key, member] : value) {
            const std::string member_path = fmt::format("{}.{}", path, std::string_view(key));
            const json::value* property =
                properties == nullptr ? nullptr : properties->as_object().if_contains(key);
            if (property != nullptr)
                check(property->as_object(), member, member_path);
            else if (others != nullptr && others->is_object())
                check(others->get_object(), member, member_path);
            else if (others != nullptr ? !others->as_bool() : strict_ && properties != nullptr)
                mistake(member_path, "is not described");
        }
    }

    void range(const json::object& schema, double value, const std::string& path) {
        if (const json::value* least = schema.if_contains("minimum");
            least && value < least->to_number<double>())
            mistake(path, "is too small");
        if (const json::value* most = schema.if_contains("maximum");
            most && value > most->to_number<double>())
            mistake(path, "is too large");
    }

    const json::value& document_;
    bool strict_;
    std::vector<std::string>& mistakes_;
};

}  // namespace

Schema::Schema(const json::value& document, const std::string& name)
    : document_(document), schema_(document.at_pointer("/components/schemas/" + name)) {}

std::vector<std::string> Schema::mistakes(const json::value& value) const {
    std::vector<std::string> result;
    Check(document_, strict_, result).check(schema_.as_object(), value, "$");
    return result;
}

}  // namespace memtide::fm
