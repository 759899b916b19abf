#include "fabric-manager/store/record.h"

#include <exception>
#include <limits>

#include <boost/json.hpp>
#include <fmt/format.h>

namespace memtide::fm {

namespace {

namespace json = boost::json;

std::int64_t nanoseconds(Time time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
Time time_of(std::int64_t ns) {
    return Time(std::chrono::duration_cast<Time::duration>(std::chrono::nanoseconds(ns)));
}

// --- Writing ---

void put(json::object& out, std::string_view key, const std::string& value) {
    if (!value.empty()) out[key] = value;
}
template <typename Tag>
void put(json::object& out, std::string_view key, const std::optional<Id<Tag>>& value) {
    if (value) out[key] = value->value;
}
void put(json::object& out, std::string_view key, const std::optional<std::string>& value) {
    if (value) out[key] = *value;
}
void put(json::object& out, std::string_view key, const std::optional<Time>& value) {
    if (value) out[key] = nanoseconds(*value);
}
void put(json::object& out, std::string_view key, const std::optional<int>& value) {
    if (value) out[key] = *value;
}
void put(json::object& out, std::string_view key, bool value) {
    if (value) out[key] = true;
}

json::array sizes(const std::vector<LdSize>& list) {
    json::array out;
    for (const LdSize& one : list) out.push_back(json::array{one.ld.value, one.size.value});
    return out;
}

json::array steps(const std::vector<Step>& list) {
    json::array out;
    for (const Step& step : list) {
        json::object one{{"name", step.name}, {"started", nanoseconds(step.started)}};
        if (step.part != 0) one["part"] = step.part;
        put(one, "ended", step.ended);
        put(one, "detail", step.detail);
        out.push_back(std::move(one));
    }
    return out;
}

json::object policy(const PlacementPolicy& p) {
    json::object out{{"kind", to_string(p.kind)}, {"ways", p.ways}, {"max_devices", p.max_devices}};
    if (p.max_percent_per_device != 100) out["device_percent"] = p.max_percent_per_device;
    if (p.max_percent_per_switch != 100) out["switch_percent"] = p.max_percent_per_switch;
    put(out, "exclusive", p.exclusive_devices);
    put(out, "reserve", p.use_reserve);
    put(out, "reprovide", p.reprovide);
    return out;
}

void put(json::object& out, const std::optional<Reason>& reason) {
    if (reason) out["reason"] = json::object{{"code", reason->code}, {"detail", reason->detail}};
}

json::object part_record(const Part& part) {
    json::object out{{"number", part.number},
                     {"region", part.region},
                     {"size", part.size.value},
                     {"state", to_string(part.state)},
                     {"device", part.memory.device.value},
                     {"ld", part.memory.ld.value},
                     {"serial", part.serial.value},
                     {"port", part.port},
                     {"switch", part.where.switch_id.value},
                     {"vcs", part.where.vcs},
                     {"vppb", part.where.vppb}};
    put(out, part.reason);
    put(out, "node", part.node);
    put(out, "region_name", part.region_name);
    put(out, "release_requested", part.release_requested);
    put(out, "forced", part.forced);
    put(out, "replacement", part.replacement);
    put(out, "drain_deadline", part.drain_deadline);
    put(out, "boot_id", part.boot_id);
    if (part.verified_pages != 0) out["verified"] = part.verified_pages;
    if (part.offline_revision != 0) out["offline_revision"] = part.offline_revision;
    if (part.carve) {
        json::object carve{{"before", sizes(part.carve->before)}, {"after", sizes(part.carve->after)}};
        put(carve, "done", part.carve->done);
        out["carve"] = std::move(carve);
    }
    return out;
}

json::object exchange_record(const Exchange& exchange) {
    return {{"size_before", exchange.size_before.value},
            {"deadline", nanoseconds(exchange.deadline)},
            {"leaving", json::array(exchange.leaving.begin(), exchange.leaving.end())},
            {"coming", json::array(exchange.coming.begin(), exchange.coming.end())}};
}

// --- Reading (throws on what does not fit; the public functions catch) ---

template <typename T>
T number(const json::object& in, std::string_view key) {
    return in.at(key).to_number<T>();
}
template <typename T>
T number_or(const json::object& in, std::string_view key, T otherwise) {
    const json::value* value = in.if_contains(key);
    return value == nullptr ? otherwise : value->to_number<T>();
}
std::string text(const json::object& in, std::string_view key) {
    const json::value* value = in.if_contains(key);
    return value == nullptr ? std::string() : std::string(value->as_string());
}
std::optional<std::string> maybe_text(const json::object& in, std::string_view key) {
    if (!in.contains(key)) return std::nullopt;
    return text(in, key);
}
template <typename IdType>
std::optional<IdType> maybe_id(const json::object& in, std::string_view key) {
    if (!in.contains(key)) return std::nullopt;
    return IdType(text(in, key));
}
std::optional<Time> maybe_time(const json::object& in, std::string_view key) {
    if (!in.contains(key)) return std::nullopt;
    return time_of(number<std::int64_t>(in, key));
}
std::optional<int> maybe_int(const json::object& in, std::string_view key) {
    if (!in.contains(key)) return std::nullopt;
    return number<int>(in, key);
}
bool flag(const json::object& in, std::string_view key) { return in.contains(key) && in.at(key).as_bool(); }

std::vector<LdSize> read_sizes(const json::value& in) {
    std::vector<LdSize> out;
    for (const json::value& one : in.as_array())
        out.push_back(
            {LdId{one.at(0).to_number<std::uint16_t>()}, Bytes{one.at(1).to_number<std::uint64_t>()}});
    return out;
}

std::optional<Reason> read_reason(const json::object& in) {
    const json::value* value = in.if_contains("reason");
    if (value == nullptr) return std::nullopt;
    return Reason{text(value->as_object(), "code"), text(value->as_object(), "detail")};
}

CompositionState read_state(const json::object& in) {
    const auto state = parse_state(text(in, "state"));
    if (!state) throw std::invalid_argument("unknown state " + text(in, "state"));
    return *state;
}

PlacementPolicy read_policy(const json::object& in) {
    PlacementPolicy policy;
    const auto kind = parse_placement_kind(text(in, "kind"));
    if (!kind) throw std::invalid_argument("unknown placement " + text(in, "kind"));
    policy.kind = *kind;
    policy.ways = number<std::uint8_t>(in, "ways");
    policy.max_devices = number<std::uint8_t>(in, "max_devices");
    policy.max_percent_per_device = number_or<std::uint8_t>(in, "device_percent", 100);
    policy.max_percent_per_switch = number_or<std::uint8_t>(in, "switch_percent", 100);
    policy.exclusive_devices = flag(in, "exclusive");
    policy.use_reserve = flag(in, "reserve");
    policy.reprovide = flag(in, "reprovide");
    return policy;
}

Part read_part(const json::object& in) {
    Part part;
    part.number = number_or<std::uint32_t>(in, "number", 0);
    part.size = Bytes{number<std::uint64_t>(in, "size")};
    part.state = read_state(in);
    part.reason = read_reason(in);
    part.memory = {DeviceId(text(in, "device")), LdId{number<std::uint16_t>(in, "ld")}};
    part.serial = SerialNumber{number<std::uint64_t>(in, "serial")};
    part.port = number<std::uint8_t>(in, "port");
    part.where = {SwitchId(text(in, "switch")), number<std::uint8_t>(in, "vcs"),
                  number<std::uint8_t>(in, "vppb")};
    part.node = maybe_int(in, "node");
    part.release_requested = flag(in, "release_requested");
    part.forced = flag(in, "forced");
    part.replacement = flag(in, "replacement");
    part.drain_deadline = maybe_time(in, "drain_deadline");
    part.offline_revision = number_or<std::uint64_t>(in, "offline_revision", 0);
    part.boot_id = text(in, "boot_id");
    part.verified_pages = number_or<std::uint32_t>(in, "verified", 0);
    if (const json::value* value = in.if_contains("carve")) {
        const json::object& carve = value->as_object();
        part.carve =
            Carve{read_sizes(carve.at("before")), read_sizes(carve.at("after")), flag(carve, "done")};
    }
    return part;
}

std::vector<std::uint32_t> read_numbers(const json::value& in) {
    std::vector<std::uint32_t> out;
    for (const json::value& one : in.as_array()) out.push_back(one.to_number<std::uint32_t>());
    return out;
}

std::optional<Exchange> read_exchange(const json::object& in) {
    const json::value* value = in.if_contains("exchange");
    if (value == nullptr) return std::nullopt;
    const json::object& one = value->as_object();
    return Exchange{Bytes{number<std::uint64_t>(one, "size_before")},
                    time_of(number<std::int64_t>(one, "deadline")), read_numbers(one.at("leaving")),
                    read_numbers(one.at("coming"))};
}

// Before schema version 3 a composition was made of one part, whose members were its own.
void read_single_part(const json::object& in, Composition& c) {
    Part part = read_part(in);
    part.region_name = maybe_text(in, "region");
    const bool unbound = part.boot_id.empty();
    c.parts.push_back(std::move(part));
    c.next_part = 1;
    c.failed = c.reason.has_value();
    c.was_online = !unbound;
}

void read_parts(const json::object& in, Composition& c) {
    const json::value* list = in.if_contains("parts");
    if (list == nullptr) return read_single_part(in, c);
    for (const json::value& value : list->as_array()) {
        const json::object& one = value.as_object();
        Part part = read_part(one);
        part.region = number<std::uint32_t>(one, "region");
        part.region_name = maybe_text(one, "region_name");
        c.parts.push_back(std::move(part));
    }
    c.next_part = number<std::uint32_t>(in, "next_part");
    c.failed = flag(in, "failed");
    c.was_online = flag(in, "was_online");
    c.placement = read_policy(in.at("placement").as_object());
}

void read_details(const json::object& in, Composition& c) {
    for (const json::value& value : in.at("steps").as_array()) {
        const json::object& one = value.as_object();
        c.steps.push_back({text(one, "name"), number_or<std::uint32_t>(one, "part", 0),
                           time_of(number<std::int64_t>(one, "started")), maybe_time(one, "ended"),
                           text(one, "detail")});
    }
    if (const json::value* list = in.if_contains("undone"))
        for (const json::value& value : list->as_array()) c.undone.emplace_back(value.as_string());
    if (const json::value* map = in.if_contains("labels"))
        for (const auto& [key, value] : map->as_object()) c.labels[key] = std::string(value.as_string());
}

Composition read_composition(const json::object& in) {
    Composition c;
    c.id = CompositionId(text(in, "id"));
    c.sequence = number<std::uint64_t>(in, "sequence");
    c.host = HostId(text(in, "host"));
    c.size = Bytes{number<std::uint64_t>(in, "size")};
    c.tenant = maybe_text(in, "tenant");
    c.state = read_state(in);
    c.reason = read_reason(in);
    c.revision = number<std::uint64_t>(in, "revision");
    c.created = time_of(number<std::int64_t>(in, "created"));
    c.updated = time_of(number<std::int64_t>(in, "updated"));
    if (in.contains("ttl")) c.ttl = std::chrono::seconds(number<std::int64_t>(in, "ttl"));
    c.expires = maybe_time(in, "expires");
    c.forced = flag(in, "forced");
    c.adopted = flag(in, "adopted");
    c.release_requested = flag(in, "release_requested");
    c.manager_overhead_ms = number_or<double>(in, "overhead_ms", 0);
    c.phase_started = time_of(number<std::int64_t>(in, "phase_started"));
    c.phase_waited_ms = number_or<double>(in, "phase_waited_ms", 0);
    c.exchange = read_exchange(in);
    read_parts(in, c);
    read_details(in, c);
    return c;
}

template <typename Read>
auto decode(std::string_view record, std::string_view what, Read read)
    -> Result<decltype(read(std::declval<const json::object&>()))> {
    try {
        json::monotonic_resource memory(4 * record.size() + 1024);
        return read(json::parse(record, &memory).as_object());
    } catch (const std::exception& e) {
        return fail(ErrorCode::kProtocol,
                    fmt::format("the store has a {} that cannot be read: {}", what, e.what()));
    }
}

}  // namespace

std::string encode_record(const Composition& c) {
    json::array parts;
    for (const Part& part : c.parts) parts.push_back(part_record(part));
    json::object out{{"id", c.id.value},
                     {"sequence", c.sequence},
                     {"host", c.host.value},
                     {"size", c.size.value},
                     {"placement", policy(c.placement)},
                     {"state", to_string(c.state)},
                     {"revision", c.revision},
                     {"parts", std::move(parts)},
                     {"next_part", c.next_part},
                     {"created", nanoseconds(c.created)},
                     {"updated", nanoseconds(c.updated)},
                     {"phase_started", nanoseconds(c.phase_started)},
                     {"steps", steps(c.steps)}};
    put(out, "tenant", c.tenant);
    put(out, c.reason);
    if (c.ttl) out["ttl"] = c.ttl->count();
    put(out, "expires", c.expires);
    if (c.exchange) out["exchange"] = exchange_record(*c.exchange);
    put(out, "failed", c.failed);
    put(out, "was_online", c.was_online);
    put(out, "forced", c.forced);
    put(out, "adopted", c.adopted);
    put(out, "release_requested", c.release_requested);
    if (c.manager_overhead_ms != 0) out["overhead_ms"] = c.manager_overhead_ms;
    if (c.phase_waited_ms != 0) out["phase_waited_ms"] = c.phase_waited_ms;
    if (!c.undone.empty()) out["undone"] = json::array(c.undone.begin(), c.undone.end());
    if (!c.labels.empty()) {
        json::object labels;
        for (const auto& [key, value] : c.labels) labels[key] = value;
        out["labels"] = std::move(labels);
    }
    return json::serialize(out);
}

Result<Composition> decode_composition(std::string_view record) {
    return decode(record, "composition", read_composition);
}

std::string encode_record(const Event& event) {
    json::object out{{"id", event.id}, {"time", nanoseconds(event.time)}, {"type", event.type}};
    put(out, "composition", event.composition);
    put(out, "host", event.host);
    put(out, "switch", event.switch_id);
    put(out, "device", event.device);
    put(out, "state", event.state);
    put(out, "code", event.code);
    put(out, "detail", event.detail);
    put(out, "forced", event.forced);
    return json::serialize(out);
}

Result<Event> decode_event(std::string_view record) {
    return decode(record, "event", [](const json::object& in) {
        return Event{number<std::uint64_t>(in, "id"),
                     time_of(number<std::int64_t>(in, "time")),
                     text(in, "type"),
                     maybe_id<CompositionId>(in, "composition"),
                     maybe_id<HostId>(in, "host"),
                     maybe_id<SwitchId>(in, "switch"),
                     maybe_id<DeviceId>(in, "device"),
                     text(in, "state"),
                     text(in, "code"),
                     text(in, "detail"),
                     flag(in, "forced")};
    });
}

}  // namespace memtide::fm
