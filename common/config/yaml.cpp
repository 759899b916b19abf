#include "common/config/yaml.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include "common/base/nearest.h"

namespace memtide {
namespace {

struct Place {
    int line = 0;  // from 1; 0 stands for the file as a whole
    int column = 0;
    auto operator<=>(const Place&) const = default;
};

Place place_of(const YAML::Mark& mark) {
    return mark.is_null() ? Place{} : Place{mark.line + 1, mark.column + 1};
}

// Whether the line (from 0), or the one before it, where a parser may notice first, begins with a tab.
bool is_tab_indented(std::string_view text, int line) {
    for (int number = 0; number <= line && !text.empty(); ++number) {
        const std::string_view here = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), here.size() + 1));
        const std::string_view indentation = here.substr(0, here.find_first_not_of(" \t"));
        if (number >= line - 1 && indentation.find('\t') != std::string_view::npos) return true;
    }
    return false;
}

std::string extended(const std::string& key_path, std::string_view key) {
    return key_path.empty() ? std::string(key) : fmt::format("{}.{}", key_path, key);
}

void sort_by_place(std::vector<YamlComplaint>& all) {
    std::ranges::stable_sort(all, {}, [](const YamlComplaint& one) { return Place{one.line, one.column}; });
}

}  // namespace

struct YamlDocument::State {
    std::string name;
    YAML::Node root;
    bool is_readable = true;
    std::vector<YamlComplaint> complaints;
    std::vector<YamlComplaint> remarks;
    // Maps that were read, by where they stand, and the keys that the program knows in each.
    struct ReadMap {
        YAML::Node node;
        std::string key_path;
        std::set<std::string, std::less<>> known;
    };
    std::map<Place, ReadMap> maps;

    bool is_blamed(Place place) const {
        return std::ranges::any_of(complaints, [place](const YamlComplaint& one) {
            return one.line == place.line && one.column == place.column;
        });
    }
    std::string where(Place place) const {
        return place.line == 0 ? name : fmt::format("{}:{}:{}", name, place.line, place.column);
    }
};

struct YamlValue::Node {
    YAML::Node yaml;  // null when the value is absent
    Place place;
    bool absent = false;
    std::string key_path;
};

YamlDocument::YamlDocument(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::string> YamlDocument::read(const std::string& path) {
    std::error_code no_matter;
    if (std::filesystem::is_directory(path, no_matter))
        return fail(ErrorCode::kNotFound, fmt::format("{}: is a folder, not a file", path));
    errno = 0;
    std::ifstream file(path);
    if (!file) return fail(ErrorCode::kNotFound, fmt::format("{}: {}", path, std::strerror(errno)));
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().empty()) return fail(ErrorCode::kInvalidArgument, fmt::format("{}: is empty", path));
    return text.str();
}

Result<YamlDocument> YamlDocument::load(const std::string& path) {
    const auto text = read(path);
    if (!text) return std::unexpected(text.error());
    return parse(*text, path);
}

Result<YamlDocument> YamlDocument::parse(std::string_view text, std::string name) {
    YamlDocument document = examine(text, std::move(name));
    if (!document.is_readable()) return std::unexpected(document.check().error());
    return document;
}

YamlDocument YamlDocument::examine(std::string_view text, std::string name) {
    auto state = std::make_shared<State>();
    state->name = std::move(name);
    const auto give_up = [&](Place place, std::string what) {
        state->root = YAML::Node(YAML::NodeType::Map);
        state->is_readable = false;
        state->complaints.push_back({place.line, place.column, std::move(what), {}, {}});
    };
    try {
        state->root = YAML::Load(std::string(text));
        if (!state->root.IsMap()) give_up({1, 1}, "the file must be a map of keys and values");
    } catch (const YAML::Exception& e) {
        give_up(place_of(e.mark), is_tab_indented(text, e.mark.line)
                                      ? "a tab in the indentation; YAML allows only spaces"
                                      : e.msg);
    }
    return YamlDocument(std::move(state));
}

bool YamlDocument::is_readable() const { return state_->is_readable; }

YamlMap YamlDocument::root() const {
    auto node = std::make_shared<YamlValue::Node>(
        YamlValue::Node{state_->root, place_of(state_->root.Mark()), false, {}});
    return YamlValue(state_, std::move(node)).map();
}

std::vector<YamlComplaint> YamlDocument::complaints() const {
    std::vector<YamlComplaint> all = state_->complaints;
    for (const auto& [place, map] : state_->maps) {
        std::set<std::string> seen;
        for (const auto& entry : map.node) {
            const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
            const auto [line, column] = place_of(entry.first.Mark());
            const std::string key_path = extended(map.key_path, key);
            if (!seen.insert(key).second)
                all.push_back(
                    {line, column, fmt::format("key \"{}\" is given twice", key), "take one away", key_path});
            if (map.known.contains(key)) continue;
            std::string hint;
            if (const auto nearest = nearest_name(key, map.known); !nearest.empty())
                hint = fmt::format("; did you mean \"{}\"?", nearest);
            all.push_back({line, column, fmt::format("unknown key \"{}\"{}", key, hint),
                           fmt::format("known here: {}", fmt::join(map.known, ", ")), key_path});
        }
    }
    sort_by_place(all);
    return all;
}

std::vector<YamlComplaint> YamlDocument::remarks() const {
    std::vector<YamlComplaint> all = state_->remarks;
    sort_by_place(all);
    return all;
}

Result<> YamlDocument::check() const {
    const std::vector<YamlComplaint> all = complaints();
    if (all.empty()) return {};
    std::string message;
    for (const YamlComplaint& one : all) {
        if (!message.empty()) message += '\n';
        message += state_->where({one.line, one.column}) + ": " + one.message;
    }
    return fail(ErrorCode::kInvalidArgument, std::move(message));
}

YamlValue::YamlValue(std::shared_ptr<YamlDocument::State> document, std::shared_ptr<Node> node)
    : document_(std::move(document)), node_(std::move(node)) {}

std::string YamlValue::where() const { return document_->where(node_->place); }

bool YamlValue::is_sound() const { return !node_->absent && !document_->is_blamed(node_->place); }

void YamlValue::reject(std::string message, std::string advice) const {
    // An absent value was complained about when it was required; a second line would only confuse. So would a
    // second one about the same value: it is read as something else after the first.
    if (node_->absent) return;
    if (node_->yaml.IsScalar() && document_->is_blamed(node_->place)) return;
    document_->complaints.push_back(
        {node_->place.line, node_->place.column, std::move(message), std::move(advice), node_->key_path});
}

void YamlValue::remark(std::string message, std::string advice) const {
    if (!is_sound()) return;
    document_->remarks.push_back(
        {node_->place.line, node_->place.column, std::move(message), std::move(advice), node_->key_path});
}

bool YamlValue::is_map() const { return node_->yaml.IsMap(); }
bool YamlValue::is_list() const { return node_->yaml.IsSequence(); }

std::string YamlValue::string() const {
    if (!node_->yaml.IsScalar()) {
        reject("must be a text");
        return {};
    }
    return node_->yaml.Scalar();
}

std::string YamlValue::name() const {
    std::string text = string();
    if (node_->yaml.IsScalar())
        if (auto valid = check_name(text); !valid) reject(valid.error().message);
    return text;
}

bool YamlValue::boolean() const {
    bool value = false;
    if (!node_->yaml.IsScalar() || !YAML::convert<bool>::decode(node_->yaml, value))
        reject("must be true or false");
    return value;
}

std::uint64_t YamlValue::integer(std::uint64_t min, std::uint64_t max) const {
    const std::string text = node_->yaml.IsScalar() ? node_->yaml.Scalar() : "";
    const bool hex = text.starts_with("0x");
    const char* const first = text.data() + (hex ? 2 : 0);
    const char* const last = text.data() + text.size();
    std::uint64_t value = 0;
    const auto [stop, status] = std::from_chars(first, last, value, hex ? 16 : 10);
    if (first == last || status != std::errc{} || stop != last || value < min || value > max) {
        reject(fmt::format("must be a whole number from {} to {}", min, max));
        return min;
    }
    return value;
}

Bytes YamlValue::bytes() const {
    if (!node_->yaml.IsScalar()) {
        reject("must be a size such as 256MiB");
        return {};
    }
    auto size = parse_bytes(node_->yaml.Scalar());
    if (size) return *size;
    reject(size.error().message);
    return {};
}

Bytes YamlValue::bytes_multiple_of(Bytes unit) const {
    const std::size_t complaints_before = document_->complaints.size();
    const Bytes size = bytes();
    if (document_->complaints.size() != complaints_before || node_->absent) return unit;
    if (size.value != 0 && size.is_multiple_of(unit)) return size;
    reject(fmt::format("{} must be a multiple of {}, and at least that", format_bytes(size),
                       format_bytes(unit)));
    return unit;
}

std::uint64_t YamlValue::milliseconds() const {
    const std::string text = node_->yaml.IsScalar() ? node_->yaml.Scalar() : "";
    std::uint64_t number = 0;
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
    constexpr std::uint64_t kLongest = 1'000'000'000'000;  // some 30 years
    static constexpr std::pair<std::string_view, std::uint64_t> kUnits[] = {
        {"ms", 1}, {"s", 1000}, {"min", 60'000}, {"h", 3'600'000}};
    for (const auto& [name, factor] : kUnits)
        if (status == std::errc{} && unit == name && number <= kLongest / factor) return number * factor;
    if (status == std::errc{} && unit.empty())
        reject(fmt::format("\"{0}\" has no unit: write {0}s, {0}ms, {0}min or {0}h", text));
    else
        reject(fmt::format("\"{}\" must be a duration such as 250ms, 2s, 5min or 1h", text));
    return 0;
}

SerialNumber YamlValue::serial() const {
    auto serial = parse_serial(node_->yaml.IsScalar() ? node_->yaml.Scalar() : "");
    if (serial) return *serial;
    reject(serial.error().message);
    return {};
}

YamlMap YamlValue::map() const {
    if (node_->yaml.IsMap()) {
        document_->maps.try_emplace(node_->place,
                                    YamlDocument::State::ReadMap{node_->yaml, node_->key_path, {}});
        return YamlMap(*this);
    }
    reject("must be a map of keys and values");
    return YamlMap(YamlValue(
        document_, std::make_shared<Node>(Node{YAML::Node(), node_->place, true, node_->key_path})));
}

std::vector<YamlValue> YamlValue::list() const {
    std::vector<YamlValue> values;
    if (!node_->yaml.IsSequence()) {
        reject("must be a list");
        return values;
    }
    for (const YAML::Node& item : node_->yaml)
        values.push_back(YamlValue(
            document_, std::make_shared<Node>(Node{item, place_of(item.Mark()), false, node_->key_path})));
    return values;
}

YamlMap::YamlMap(YamlValue self) : self_(std::move(self)) {}

void YamlMap::reject(std::string message, std::string advice) const {
    self_.reject(std::move(message), std::move(advice));
}

std::optional<YamlValue> YamlMap::get(std::string_view key) const {
    const YamlValue::Node& self = *self_.node_;
    if (self.absent) return std::nullopt;
    self_.document_->maps.at(self.place).known.emplace(key);
    for (const auto& entry : self.yaml) {
        if (!entry.first.IsScalar() || entry.first.Scalar() != key) continue;
        if (entry.second.IsNull()) return std::nullopt;
        auto node = std::make_shared<YamlValue::Node>(YamlValue::Node{
            entry.second, place_of(entry.second.Mark()), false, extended(self.key_path, key)});
        return YamlValue(self_.document_, std::move(node));
    }
    return std::nullopt;
}

YamlValue YamlMap::require(std::string_view key) const {
    if (auto value = get(key)) return *std::move(value);
    const YamlValue::Node& self = *self_.node_;
    const std::string key_path = extended(self.key_path, key);
    // Who reads and who checks may both require it; it is missing once.
    auto& complaints = self_.document_->complaints;
    const std::string message = fmt::format("missing \"{}\"", key);
    const bool is_said = std::ranges::any_of(complaints, [&](const YamlComplaint& one) {
        return one.line == self.place.line && one.column == self.place.column && one.message == message;
    });
    if (!self.absent && !is_said)
        complaints.push_back({self.place.line, self.place.column, message, {}, key_path});
    return YamlValue(self_.document_, std::make_shared<YamlValue::Node>(
                                          YamlValue::Node{YAML::Node(), self.place, true, key_path}));
}

std::vector<std::pair<std::string, YamlValue>> YamlMap::entries() const {
    std::vector<std::pair<std::string, YamlValue>> result;
    if (self_.node_->absent) return result;
    auto& known = self_.document_->maps.at(self_.node_->place).known;
    for (const auto& entry : self_.node_->yaml) {
        if (!entry.first.IsScalar()) {
            self_.reject("keys must be texts");
            continue;
        }
        known.emplace(entry.first.Scalar());
        auto node = std::make_shared<YamlValue::Node>(
            YamlValue::Node{entry.second, place_of(entry.second.Mark()), false,
                            extended(self_.node_->key_path, entry.first.Scalar())});
        result.emplace_back(entry.first.Scalar(), YamlValue(self_.document_, std::move(node)));
    }
    return result;
}

bool YamlMap::is_empty() const { return !self_.node_->absent && self_.node_->yaml.size() == 0; }

}  // namespace memtide
