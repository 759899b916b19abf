#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "common/base/nearest.h"
#include "common/json/json.h"

namespace memtide::json {

namespace bj = boost::json;

namespace {

const bj::value kNull;

// "$.labels.tier", "$.labels[\"a b\"]": a path that people can follow and JSONPath tools can evaluate.
std::string member_path(const std::string& parent, std::string_view name) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    constexpr std::size_t kLongest = 64;  // a sender must not choose how long our log lines get
    std::string shown(name.substr(0, kLongest));
    if (shown.size() < name.size()) shown += "...";
    if (!name.empty() && std::ranges::all_of(name, plain)) return fmt::format("{}.{}", parent, shown);
    std::string quoted;
    for (const char c : shown) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
            continue;
        }
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c;
    }
    return fmt::format("{}[\"{}\"]", parent, quoted);
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view{} : text.substr(first);
}

// A double that is a whole number within [-2^63, 2^64).
bool is_whole(double number) {
    return std::floor(number) == number && number >= -9223372036854775808.0 &&
           number < 18446744073709551616.0;
}

}  // namespace

struct Reader::State {
    struct Asked {
        std::string path;
        std::set<std::string, std::less<>> names;
    };
    const bj::value* value = nullptr;
    std::vector<std::string> mistakes;
    std::map<const bj::object*, Asked> objects;
};

// --- Reader ---

Reader::Reader(const bj::value& value) : state_(std::make_shared<State>()) { state_->value = &value; }

Value Reader::root() const { return Value{state_, state_->value, "$"}; }

Result<> Reader::check(Unknown unknown) const {
    constexpr std::size_t kMost = 20;  // enough to correct a text, too few to flood an answer
    std::vector<std::string> mistakes = state_->mistakes;
    if (unknown == Unknown::kRefused) {
        for (const auto& [object, asked] : state_->objects) {
            for (const auto& member : *object) {
                const std::string_view name(member.key().data(), member.key().size());
                if (asked.names.contains(name)) continue;
                std::string mistake = member_path(asked.path, name) + ": is not known";
                if (const auto hint = nearest_name(name, asked.names); !hint.empty())
                    mistake += fmt::format("; did you mean \"{}\"?", hint);
                mistakes.push_back(std::move(mistake));
            }
        }
    }
    if (mistakes.empty()) return {};
    if (mistakes.size() > kMost) {
        const std::size_t more = mistakes.size() - kMost;
        mistakes.resize(kMost);
        mistakes.push_back(fmt::format("and {} more", more));
    }
    return fail(ErrorCode::kInvalidArgument, fmt::format("{}", fmt::join(mistakes, "; ")));
}

// --- Value ---

Value::Value(std::shared_ptr<Reader::State> state, const bj::value* value, std::string path)
    : state_(std::move(state)), value_(value), path_(std::move(path)) {}

void Value::reject(std::string_view message) const {
    state_->mistakes.push_back(fmt::format("{}: {}", path_, message));
}

const bj::value& Value::raw() const { return value_ == nullptr ? kNull : *value_; }

std::string Value::string(std::size_t max_length) const {
    if (value_ == nullptr) return {};
    const bj::string* text = value_->if_string();
    if (text == nullptr) {
        reject("must be a text");
        return {};
    }
    if (text->size() > max_length) {
        reject(fmt::format("must not be longer than {} bytes", max_length));
        return {};
    }
    return {text->data(), text->size()};
}

std::string Value::name() const {
    if (value_ == nullptr) return {};
    const bj::string* text = value_->if_string();
    if (text == nullptr) {
        reject("must be a text");
        return {};
    }
    std::string result(text->data(), std::min<std::size_t>(text->size(), 256));
    if (const auto good = check_name(result); !good) {
        reject("must be a name: " + good.error().message);
        return {};
    }
    return result;
}

bool Value::boolean() const {
    if (value_ == nullptr) return false;
    const bool* flag = value_->if_bool();
    if (flag == nullptr) reject("must be true or false");
    return flag != nullptr && *flag;
}

std::int64_t Value::signed_integer(std::int64_t min, std::int64_t max) const {
    const std::int64_t otherwise = std::clamp<std::int64_t>(0, min, max);
    if (value_ == nullptr) return otherwise;
    std::optional<std::int64_t> number;
    if (const auto* integer = value_->if_int64()) number = *integer;
    // -2^63 is a double that converts exactly; 2^63 no longer does.
    if (const auto* real = value_->if_double(); real && is_whole(*real) && *real < 9223372036854775808.0)
        number = static_cast<std::int64_t>(*real);
    if (number && *number >= min && *number <= max) return *number;
    if (number || value_->is_uint64())
        reject(fmt::format("must be from {} to {}", min, max));
    else
        reject("must be an integer");
    return otherwise;
}

std::uint64_t Value::unsigned_integer(std::uint64_t min, std::uint64_t max) const {
    if (value_ == nullptr) return min;
    std::optional<std::uint64_t> number;
    if (const auto* integer = value_->if_int64(); integer && *integer >= 0)
        number = static_cast<std::uint64_t>(*integer);
    if (const auto* large = value_->if_uint64()) number = *large;
    if (const auto* real = value_->if_double(); real && is_whole(*real) && *real >= 0)
        number = static_cast<std::uint64_t>(*real);
    if (number && *number >= min && *number <= max) return *number;
    if (!number && !is_negative())
        reject("must be an integer");
    else if (max == std::numeric_limits<std::uint64_t>::max())
        reject(fmt::format("must be an integer of at least {}", min));
    else
        reject(fmt::format("must be from {} to {}", min, max));
    return min;
}

double Value::number() const {
    if (value_ == nullptr) return 0;
    if (const auto* real = value_->if_double()) return *real;
    if (const auto* integer = value_->if_int64()) return static_cast<double>(*integer);
    if (const auto* large = value_->if_uint64()) return static_cast<double>(*large);
    reject("must be a number");
    return 0;
}

Bytes Value::bytes() const {
    if (value_ == nullptr) return {};
    if (const bj::string* text = value_->if_string()) {
        const auto size =
            parse_bytes(std::string_view(text->data(), std::min<std::size_t>(text->size(), 64)));
        if (size) return *size;
        reject("must be a size: " + size.error().message);
        return {};
    }
    if (!is_number()) {
        reject("must be a number of bytes or a text such as \"256MiB\"");
        return {};
    }
    if (is_negative()) {
        reject("must not be negative");
        return {};
    }
    return Bytes{unsigned_integer(0, std::numeric_limits<std::int64_t>::max())};
}

SerialNumber Value::serial() const {
    if (value_ == nullptr) return {};
    if (const bj::string* text = value_->if_string()) {
        if (const auto serial =
                parse_serial(std::string_view(text->data(), std::min<std::size_t>(text->size(), 64))))
            return *serial;
    }
    reject("must be a serial number as text, such as \"0x4d54000100000001\"");
    return {};
}

std::string Value::one_of(std::initializer_list<std::string_view> choices) const {
    if (value_ == nullptr) return std::string(*choices.begin());
    if (const bj::string* text = value_->if_string())
        for (const std::string_view choice : choices)
            if (choice == std::string_view(text->data(), text->size())) return std::string(choice);
    reject(fmt::format("must be one of {}", fmt::join(choices, ", ")));
    return std::string(*choices.begin());
}

Object Value::object() const {
    if (value_ == nullptr) return Object{*this};
    const bj::object* object = value_->if_object();
    if (object == nullptr) {
        reject("must be an object");
        return Object{Value{state_, nullptr, path_}};
    }
    state_->objects[object].path = path_;
    return Object{*this};
}

std::vector<Value> Value::list(std::size_t max_items) const {
    std::vector<Value> items;
    if (value_ == nullptr) return items;
    const bj::array* array = value_->if_array();
    if (array == nullptr) {
        reject("must be a list");
        return items;
    }
    if (array->size() > max_items) {
        reject(fmt::format("must not have more than {} items", max_items));
        return items;
    }
    items.reserve(array->size());
    for (std::size_t i = 0; i < array->size(); ++i)
        items.push_back(Value{state_, &(*array)[i], fmt::format("{}[{}]", path_, i)});
    return items;
}

bool Value::is_null() const { return value_ == nullptr || value_->is_null(); }
bool Value::is_string() const { return raw().is_string(); }
bool Value::is_number() const { return raw().is_number(); }
bool Value::is_object() const { return raw().is_object(); }
bool Value::is_list() const { return raw().is_array(); }

bool Value::is_negative() const {
    const bj::value& value = raw();
    if (const auto* integer = value.if_int64()) return *integer < 0;
    if (const auto* real = value.if_double()) return *real < 0;
    if (const bj::string* text = value.if_string())
        return trimmed(std::string_view(text->data(), text->size())).starts_with('-');
    return false;
}

// --- Object ---

Object::Object(Value self) : self_(std::move(self)) {}

std::optional<Value> Object::get(std::string_view name) const {
    const bj::object* object = self_.raw().if_object();
    if (object == nullptr) return std::nullopt;
    self_.state_->objects[object].names.emplace(name);
    const bj::value* value = object->if_contains(name);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return Value{self_.state_, value, member_path(self_.path_, name)};
}

Value Object::require(std::string_view name) const {
    if (auto value = get(name)) return *std::move(value);
    Value absent{self_.state_, nullptr, member_path(self_.path_, name)};
    // Inside something that is not even an object, that is the mistake to mend.
    if (self_.is_object()) absent.reject("is missing");
    return absent;
}

bool Object::has(std::string_view name) const {
    const bj::object* object = self_.raw().if_object();
    return object != nullptr && object->if_contains(name) != nullptr;
}

std::vector<std::pair<std::string, Value>> Object::entries() const {
    std::vector<std::pair<std::string, Value>> result;
    const bj::object* object = self_.raw().if_object();
    if (object == nullptr) return result;
    auto& names = self_.state_->objects[object].names;
    for (const auto& member : *object) {
        std::string name(member.key().data(), member.key().size());
        names.insert(name);
        Value value{self_.state_, &member.value(), member_path(self_.path_, name)};
        result.emplace_back(std::move(name), std::move(value));
    }
    return result;
}

}  // namespace memtide::json
