#include "fabric-manager/rest/from_json.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "common/json/json.h"
#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/text.h"

namespace memtide::fm {
namespace {

// Bounds of what is kept for a composition, in bytes.
constexpr std::size_t kLabels = 64;
constexpr std::size_t kLabelKey = 63;
constexpr std::size_t kLabelValue = 255;
constexpr std::size_t kName = 63;
constexpr std::size_t kText = 4096;
// More than any machine has.
constexpr std::size_t kItems = 4096;
constexpr std::size_t kWarnings = 64;
// The server bounds bodies; this only has to be no smaller.
constexpr json::Limits kLimits{.bytes = 64 << 20, .depth = 16};

Outcome<boost::json::value> parse_body(std::string_view body) {
    if (body.empty()) return refuse(problem::kInvalidJson, "the request has no body; send a JSON object");
    auto value = json::parse(body, kLimits);
    if (value) return *std::move(value);
    return refuse(problem::kInvalidJson, "the body is not JSON: " + value.error().message);
}

// Names and labels end up on terminals and in logs of others.
bool has_control(std::string_view text) {
    return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}
std::string read_printable(const json::Value& given, std::size_t most) {
    std::string text = given.string(most);
    if (has_control(text)) given.reject("must not have control characters");
    return text;
}

std::map<std::string, std::string> read_labels(const std::optional<json::Value>& given) {
    std::map<std::string, std::string> labels;
    if (!given) return labels;
    const auto entries = given->object().entries();
    if (entries.size() > kLabels) {
        given->reject(fmt::format("must have at most {} members", kLabels));
        return labels;
    }
    for (const auto& [key, value] : entries) {
        if (key.empty() || key.size() > kLabelKey)
            value.reject(fmt::format("must have a name of 1 to {} bytes", kLabelKey));
        if (has_control(key)) value.reject("must not have control characters in its name");
        labels.emplace(key, read_printable(value, kLabelValue));
    }
    return labels;
}

std::optional<std::chrono::seconds> read_ttl(const std::optional<json::Value>& given, std::int64_t least) {
    if (!given) return std::nullopt;
    constexpr std::int64_t kHundredYears = 86'400LL * 36'525;
    std::int64_t seconds = 0;
    if (given->is_number()) {
        seconds = given->integer<std::int64_t>(least, kHundredYears);
    } else if (const auto duration = parse_duration(given->string(kName));
               duration && duration->count() >= 1000 && duration->count() % 1000 == 0) {
        seconds = duration->count() / 1000;
    } else {
        given->reject("must be a number of seconds, or a text such as \"90s\", \"10min\" or \"2h\"");
    }
    return std::chrono::seconds(seconds);
}

std::string text_of(const std::optional<json::Value>& given) { return given ? given->string(kText) : ""; }
Bytes bytes_of(const std::optional<json::Value>& given) { return given ? given->bytes() : Bytes{}; }
std::optional<int> int_of(const std::optional<json::Value>& given) {
    if (!given) return std::nullopt;
    return given->integer<int>(0);
}
std::vector<json::Value> items_of(const std::optional<json::Value>& given, std::size_t most = kItems) {
    return given ? given->list(most) : std::vector<json::Value>{};
}

Holder read_holder(const json::Object& object) {
    return {.block = object.require("block").string(kName),
            .pid = int_of(object.get("pid")),
            .command = text_of(object.get("command")),
            .bytes = bytes_of(object.get("bytes"))};
}

std::uint8_t small_of(const std::optional<json::Value>& given, std::uint8_t least, std::uint8_t most,
                      std::uint8_t otherwise) {
    return given ? given->integer<std::uint8_t>(least, most) : otherwise;
}
bool flag_of(const std::optional<json::Value>& given) { return given && given->boolean(); }

// The policy, which limits of it were given, and without a policy that of whoever asks for ways:
// interleaving.
void read_placement(const json::Object& root, CompositionRequest& request) {
    PlacementPolicy& policy = request.placement;
    if (const auto ways = root.get("ways")) policy.ways = ways->integer<std::uint8_t>(1, kMostParts);
    if (policy.ways > 1) policy.kind = PlacementKind::kBandwidth;
    const auto given = root.get("placement");
    if (!given) return;
    const json::Object object = given->object();
    if (const auto kind = object.get("policy"))
        policy.kind = parse_placement_kind(kind->one_of({"pack", "spread", "bandwidth"}))
                          .value_or(PlacementKind::kPack);
    policy.max_devices = small_of(object.get("max_devices"), 1, kMostParts, kMostParts);
    policy.max_percent_per_device = small_of(object.get("max_percent_per_device"), 1, 100, 100);
    policy.max_percent_per_switch = small_of(object.get("max_percent_per_switch"), 1, 100, 100);
    policy.exclusive_devices = flag_of(object.get("exclusive_devices"));
    policy.use_reserve = flag_of(object.get("use_reserve"));
    policy.reprovide = flag_of(object.get("reprovide"));
    PlacementLimits& limits = request.limits;
    if (object.get("max_percent_per_device")) limits.max_percent_per_device = policy.max_percent_per_device;
    if (object.get("max_percent_per_switch")) limits.max_percent_per_switch = policy.max_percent_per_switch;
    if (object.get("exclusive_devices")) limits.exclusive_devices = policy.exclusive_devices;
}

ObservedRegion read_observed_region(const json::Object& object) {
    ObservedRegion result;
    result.id = {CompositionId(object.require("composition").string(kName)),
                 object.require("region").integer<std::uint32_t>()};
    for (const json::Value& serial : object.require("serials").list(kMostParts))
        result.serials.push_back(serial.serial());
    const std::string state =
        object.require("state").one_of({"absent", "found", "online", "draining", "offline", "failed"});
    result.state = parse_observed_state(state).value_or(ObservedState::kAbsent);
    result.node = int_of(object.get("node"));
    if (const auto name = object.get("name")) result.region = name->string(kName);
    result.online_bytes = bytes_of(object.get("online_bytes"));
    if (const auto pages = object.get("verified_pages"))
        result.verified_pages = pages->integer<std::uint32_t>();
    if (const auto dirty = object.get("not_erased"))
        for (const json::Value& serial : dirty->list(kMostParts))
            result.not_erased.push_back(serial.serial());
    if (const auto error = object.get("error")) {
        const json::Object reason = error->object();
        result.error = Reason{reason.require("code").string(kName), text_of(reason.get("detail"))};
    }
    for (const json::Value& holder : items_of(object.get("holders")))
        result.holders.push_back(read_holder(holder.object()));
    return result;
}

}  // namespace

Outcome<CompositionRequest> read_composition_request(std::string_view body) {
    const auto document = parse_body(body);
    if (!document) return std::unexpected(document.error());
    const json::Reader reader(*document);
    const json::Object root = reader.root().object();
    CompositionRequest request;
    request.host = HostId(root.require("host").string(kName));
    const json::Value size = root.require("size");
    if (size.is_negative())
        return refuse(problem::kSizeNegative, "the size of a composition cannot be negative");
    request.size = size.bytes();
    if (const auto tenant = root.get("tenant")) request.tenant = read_printable(*tenant, kName);
    request.labels = read_labels(root.get("labels"));
    request.ttl = read_ttl(root.get("ttl"), 1);
    read_placement(root, request);
    if (const auto good = reader.check(json::Reader::Unknown::kRefused); !good)
        return refuse(problem::kInvalidRequest, good.error().message);
    return request;
}

Outcome<CompositionChangeRequest> read_composition_change(std::string_view body) {
    const auto document = parse_body(body);
    if (!document) return std::unexpected(document.error());
    const json::Reader reader(*document);
    const json::Object root = reader.root().object();
    CompositionChangeRequest request;
    if (const auto size = root.get("size")) {
        if (size->is_negative())
            return refuse(problem::kSizeNegative, "the size of a composition cannot be negative");
        request.size = size->bytes();
    }
    if (const auto ttl = root.get("ttl")) request.ttl = read_ttl(ttl, 0);
    if (const auto labels = root.get("labels")) request.labels = read_labels(labels);
    if (const auto good = reader.check(json::Reader::Unknown::kRefused); !good)
        return refuse(problem::kInvalidRequest, good.error().message);
    if (!request.size && !request.ttl && !request.labels)
        return refuse(problem::kInvalidRequest, "nothing to change: give size, ttl or labels");
    return request;
}

Outcome<ObservedReport> read_observed_report(std::string_view body) {
    const auto document = parse_body(body);
    if (!document) return std::unexpected(document.error());
    const json::Reader reader(*document);
    const json::Object root = reader.root().object();
    ObservedReport report;
    report.agent_version = text_of(root.get("agent_version"));
    report.boot_id = root.require("boot_id").string(kText);
    if (const auto seen = root.get("revision_seen")) report.revision_seen = seen->integer<std::uint64_t>();
    for (const json::Value& item : items_of(root.get("memdevs"))) {
        const json::Object memdev = item.object();
        report.memdevs.push_back({memdev.require("name").string(kName), memdev.require("serial").serial(),
                                  memdev.require("size").bytes()});
    }
    for (const json::Value& item : items_of(root.get("windows"))) {
        const json::Object window = item.object();
        report.windows.push_back({window.require("name").string(kName),
                                  window.require("ways").integer<std::uint8_t>(1, 16),
                                  bytes_of(window.get("size")), bytes_of(window.get("largest_free"))});
    }
    for (const json::Value& item : items_of(root.get("regions")))
        report.regions.push_back(read_observed_region(item.object()));
    for (const json::Value& item : items_of(root.get("warnings"), kWarnings)) {
        const json::Object warning = item.object();
        report.warnings.push_back({warning.require("code").string(kName), text_of(warning.get("detail"))});
    }
    if (const auto good = reader.check(json::Reader::Unknown::kIgnored); !good)
        return refuse(problem::kInvalidRequest, good.error().message);
    return report;
}

std::string fingerprint(const CompositionRequest& request) {
    // Each field with its length before it, so that no two requests run together to the same text.
    std::string text =
        fmt::format("{}\n{}:{}\n", request.size.value, request.host.value.size(), request.host.value);
    if (request.tenant) text += fmt::format("t{}:{}\n", request.tenant->size(), *request.tenant);
    if (request.ttl) text += fmt::format("l{}\n", request.ttl->count());
    const PlacementPolicy& policy = request.placement;
    if (policy != PlacementPolicy{})
        text += fmt::format("p{} {} {} {} {} {} {} {}\n", to_string(policy.kind), policy.ways,
                            policy.max_devices, policy.max_percent_per_device, policy.max_percent_per_switch,
                            policy.exclusive_devices, policy.use_reserve, policy.reprovide);
    for (const auto& [key, value] : request.labels)
        text += fmt::format("{}:{}={}:{}\n", key.size(), key, value.size(), value);
    // FNV-1a, from two offsets: clients only ever collide with themselves, so a hash against accidents will
    // do.
    std::array<std::uint64_t, 2> hash{0xcbf29ce484222325ULL, 0x84222325cbf29ce4ULL};
    for (const char c : text)
        for (std::uint64_t& h : hash) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return fmt::format("{:016x}{:016x}", hash[0], hash[1]);
}

}  // namespace memtide::fm
