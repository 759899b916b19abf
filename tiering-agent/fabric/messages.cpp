#include "tiering-agent/fabric/messages.h"

#include <array>
#include <charconv>
#include <limits>
#include <set>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace memtide::agent {
namespace {

namespace json = boost::json;

std::unexpected<Error> wrong(std::string_view field, std::string_view expected) {
    return fail(ErrorCode::kProtocol, fmt::format("\"{}\" must be {}", field, expected));
}

Result<std::string> string_field(const json::object& object, std::string_view name) {
    const json::value* const value = object.if_contains(name);
    if (value == nullptr || !value->is_string()) return wrong(name, "a string");
    return std::string(value->get_string());
}

Result<std::uint64_t> number_field(const json::object& object, std::string_view name) {
    const json::value* const value = object.if_contains(name);
    if (value != nullptr && value->is_uint64()) return value->get_uint64();
    if (value != nullptr && value->is_int64() && value->get_int64() >= 0)
        return static_cast<std::uint64_t>(value->get_int64());
    return wrong(name, "a whole number that is not negative");
}

Result<Want> want_field(const json::object& object) {
    const auto text = string_field(object, "desired");
    if (text && *text == "online") return Want::kOnline;
    if (text && *text == "offline") return Want::kOffline;
    return wrong("desired", "\"online\" or \"offline\"");
}

// Unknown patterns are refused, not passed over: the manager would take the memory for verified.
Result<Verification> verification_field(const json::value& value) {
    constexpr std::uint64_t kMost = 65'536;
    const json::object* const object = value.if_object();
    if (object == nullptr) return wrong("verify_erased", "an object");
    const auto samples = number_field(*object, "samples");
    if (!samples || *samples == 0 || *samples > kMost) return wrong("samples", "from 1 to 65536");
    Verification result{.samples = static_cast<std::uint32_t>(*samples), .pattern = ErasedPattern::kZeros};
    if (!object->contains("pattern")) return result;
    const auto pattern = string_field(*object, "pattern");
    if (pattern && *pattern == "uniform")
        result.pattern = ErasedPattern::kUniform;
    else if (!pattern || *pattern != "zeros")
        return wrong("pattern", "\"zeros\" or \"uniform\"");
    return result;
}

Result<> read_optional_fields(const json::object& object, DesiredRegion& region) {
    if (const json::value* const force = object.if_contains("force"); force != nullptr && !force->is_null()) {
        if (!force->is_bool()) return wrong("force", "true or false");
        region.force = force->get_bool();
    }
    if (const json::value* const deadline = object.if_contains("drain_deadline");
        deadline != nullptr && !deadline->is_null()) {
        if (!deadline->is_string()) return wrong("drain_deadline", "a time or null");
        const auto time = parse_time(std::string_view(deadline->get_string()));
        if (!time) return std::unexpected(time.error());
        region.drain_deadline = *time;
    }
    if (const json::value* const verify = object.if_contains("verify_erased");
        verify != nullptr && !verify->is_null()) {
        const auto read = verification_field(*verify);
        if (!read) return std::unexpected(read.error());
        region.verify = *read;
    }
    return {};
}

Result<std::vector<SerialNumber>> serials_field(const json::object& object) {
    constexpr std::size_t kMost = 16;  // ways of an interleave (CXL 3.1, 9.13.1)
    const json::value* const list = object.if_contains("serials");
    if (list == nullptr || !list->is_array() || list->get_array().empty() || list->get_array().size() > kMost)
        return wrong("serials", "a list of 1 to 16 serial numbers");
    std::vector<SerialNumber> serials;
    for (const json::value& value : list->get_array()) {
        const auto serial = value.is_string() ? parse_serial(std::string_view(value.get_string()))
                                              : Result<SerialNumber>(wrong("serials", "texts"));
        if (!serial) return wrong("serials", "serial numbers such as \"0x4d54000100000001\"");
        serials.push_back(*serial);
    }
    return serials;
}

Result<RegionId> id_field(const json::object& object) {
    const auto composition = string_field(object, "composition");
    if (!composition) return std::unexpected(composition.error());
    if (composition->empty() || composition->size() > 64)
        return wrong("composition", "a text of 1 to 64 bytes");
    const auto number = number_field(object, "region");
    if (!number) return std::unexpected(number.error());
    if (*number > std::numeric_limits<std::uint32_t>::max()) return wrong("region", "below 2^32");
    return RegionId{CompositionId{*composition}, static_cast<std::uint32_t>(*number)};
}

Result<DesiredRegion> parse_region(const json::value& value) {
    const json::object* const object = value.if_object();
    if (object == nullptr) return wrong("regions", "a list of objects");
    DesiredRegion region;
    auto id = id_field(*object);
    if (!id) return std::unexpected(id.error());
    region.id = *std::move(id);
    auto serials = serials_field(*object);
    if (!serials) return std::unexpected(serials.error());
    region.serials = *std::move(serials);
    const auto size = number_field(*object, "size");
    if (!size) return std::unexpected(size.error());
    if (*size == 0 || *size >= (1ULL << 63) ||
        !Bytes{*size}.is_multiple_of(kCxlGranule * region.serials.size()))
        return wrong("size", "a multiple of 256 MiB for each serial number");
    region.size = {*size};
    const auto want = want_field(*object);
    if (!want) return std::unexpected(want.error());
    region.want = *want;
    if (auto read = read_optional_fields(*object, region); !read) return std::unexpected(read.error());
    return region;
}

}  // namespace

Result<Desired> parse_desired(std::string_view text, const HostId& host) {
    boost::system::error_code error;
    const json::value document = json::parse(json::string_view(text.data(), text.size()), error);
    if (error) return fail(ErrorCode::kProtocol, "it is not JSON: " + error.message());
    const json::object* const object = document.if_object();
    if (object == nullptr) return fail(ErrorCode::kProtocol, "it is not a JSON object");
    const auto name = string_field(*object, "host");
    if (!name) return std::unexpected(name.error());
    if (*name != host.value)
        return fail(ErrorCode::kConflict,
                    fmt::format("it is for host \"{}\", this is \"{}\"", *name, host.value));
    Desired desired;
    const auto revision = number_field(*object, "revision");
    if (!revision) return std::unexpected(revision.error());
    desired.revision = *revision;
    const json::value* const list = object->if_contains("regions");
    if (list == nullptr || !list->is_array()) return wrong("regions", "a list");
    std::set<RegionId> ids;
    std::set<SerialNumber> serials;
    for (const json::value& value : list->get_array()) {
        auto region = parse_region(value);
        if (!region) return std::unexpected(region.error());
        bool fresh = ids.insert(region->id).second;
        for (const SerialNumber serial : region->serials) fresh = serials.insert(serial).second && fresh;
        if (!fresh)
            return fail(
                ErrorCode::kProtocol,
                fmt::format("region {} or one of its serial numbers is listed twice", to_string(region->id)));
        desired.regions.push_back(*std::move(region));
    }
    return desired;
}

namespace {

// Process names may be any bytes, JSON must be UTF-8.
std::string printable(std::string text) {
    for (char& c : text)
        if (c < ' ' || c > '~') c = '?';
    return text;
}

json::value finding_value(const Finding& finding) {
    return {{"code", finding.code}, {"detail", printable(finding.detail)}};
}

json::value region_value(const ObservedRegion& region) {
    json::array holders;
    for (const Holder& holder : region.holders)
        holders.push_back({{"block", holder.block},
                           {"pid", holder.pid ? json::value(*holder.pid) : json::value(nullptr)},
                           {"command", printable(holder.command)},
                           {"bytes", holder.bytes.value}});
    json::array serials;
    for (const SerialNumber serial : region.serials) serials.emplace_back(format_serial(serial));
    json::object result{{"composition", region.id.composition.value},
                        {"region", region.id.number},
                        {"serials", std::move(serials)},
                        {"state", to_string(region.status)},
                        {"node", region.node ? json::value(*region.node) : json::value(nullptr)},
                        {"name", region.region ? json::value(*region.region) : json::value(nullptr)},
                        {"online_bytes", region.online.value},
                        {"error", region.error ? finding_value(*region.error) : json::value(nullptr)},
                        {"holders", std::move(holders)}};
    if (region.verified_pages != 0) result["verified_pages"] = region.verified_pages;
    if (!region.not_erased.empty()) {
        json::array dirty;
        for (const SerialNumber serial : region.not_erased) dirty.emplace_back(format_serial(serial));
        result["not_erased"] = std::move(dirty);
    }
    return result;
}

// The windows that memdevs are below, each once.
json::array windows_value(const std::vector<Memdev>& memdevs) {
    json::array list;
    std::set<std::string> known;
    for (const Memdev& memdev : memdevs)
        for (const Window& window : memdev.ram_windows)
            if (known.insert(window.name).second)
                list.push_back({{"name", window.name},
                                {"ways", window.ways},
                                {"size", window.size.value},
                                {"largest_free", window.largest_free.value}});
    return list;
}

}  // namespace

std::string format_observed(const Observed& observed, const AgentIdentity& identity) {
    json::array memdevs;
    for (const Memdev& memdev : observed.memdevs)
        memdevs.push_back({{"name", memdev.name},
                           {"serial", format_serial(memdev.serial)},
                           {"size", memdev.ram_size.value}});
    json::array regions;
    for (const ObservedRegion& region : observed.regions) regions.push_back(region_value(region));
    json::array warnings;
    for (const Finding& warning : observed.warnings) warnings.push_back(finding_value(warning));
    return json::serialize(json::object{{"agent_version", identity.version},
                                        {"boot_id", identity.boot_id},
                                        {"revision_seen", observed.revision_seen},
                                        {"memdevs", std::move(memdevs)},
                                        {"windows", windows_value(observed.memdevs)},
                                        {"regions", std::move(regions)},
                                        {"warnings", std::move(warnings)}});
}

namespace {

// Reads digits off the front of a time and remembers whether all was as it should be.
class TimeReader {
  public:
    explicit TimeReader(std::string_view text) : left_(text) {}

    int number(std::size_t digits, int min, int max) {
        int value = 0;
        if (left_.size() < digits) return fail_with_zero();
        const auto [end, error] = std::from_chars(left_.data(), left_.data() + digits, value);
        if (error != std::errc{} || end != left_.data() + digits || value < min || value > max ||
            left_[0] == '-')
            return fail_with_zero();
        left_.remove_prefix(digits);
        return value;
    }
    char one_of(std::string_view characters) {
        if (left_.empty() || characters.find(left_.front()) == std::string_view::npos) {
            fail_with_zero();
            return '\0';
        }
        const char found = left_.front();
        left_.remove_prefix(1);
        return found;
    }
    std::chrono::nanoseconds fraction() {
        std::int64_t nanoseconds = 0;
        std::int64_t unit = 100'000'000;
        if (!left_.starts_with('.')) return std::chrono::nanoseconds{0};
        left_.remove_prefix(1);
        if (left_.empty() || left_.front() < '0' || left_.front() > '9') fail_with_zero();
        for (; !left_.empty() && left_.front() >= '0' && left_.front() <= '9';
             left_.remove_prefix(1), unit /= 10)
            nanoseconds += (left_.front() - '0') * unit;
        return std::chrono::nanoseconds{nanoseconds};
    }
    [[nodiscard]] bool good() const { return good_ && left_.empty(); }

  private:
    int fail_with_zero() {
        good_ = false;
        return 0;
    }
    std::string_view left_;
    bool good_ = true;
};

}  // namespace

Result<WallTime> parse_time(std::string_view text) {
    TimeReader reader(text);
    // The clock counts nanoseconds in 64 bits: years beyond 2200 would not fit.
    const std::chrono::year year{reader.number(4, 1970, 2200)};
    reader.one_of("-");
    const std::chrono::month month{static_cast<unsigned>(reader.number(2, 1, 12))};
    reader.one_of("-");
    const std::chrono::day day{static_cast<unsigned>(reader.number(2, 1, 31))};
    reader.one_of("Tt ");
    std::chrono::nanoseconds time = std::chrono::hours{reader.number(2, 0, 23)};
    reader.one_of(":");
    time += std::chrono::minutes{reader.number(2, 0, 59)};
    reader.one_of(":");
    time += std::chrono::seconds{reader.number(2, 0, 60)};
    time += reader.fraction();
    if (const char zone = reader.one_of("Zz+-"); zone == '+' || zone == '-') {
        std::chrono::minutes offset = std::chrono::hours{reader.number(2, 0, 23)};
        reader.one_of(":");
        offset += std::chrono::minutes{reader.number(2, 0, 59)};
        time += zone == '+' ? -offset : offset;
    }
    const std::chrono::year_month_day date{year, month, day};
    if (!reader.good() || !date.ok())
        return fail(ErrorCode::kProtocol, fmt::format("\"{}\" is not an RFC 3339 time", text.substr(0, 64)));
    return WallTime{std::chrono::sys_days{date}} + time;
}

}  // namespace memtide::agent
