#include <exception>
#include <limits>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "fabric-manager/store/record.h"

namespace memtide::fm {

namespace {

namespace bj = boost::json;

Time time_of(std::int64_t ns) {
    return Time(std::chrono::duration_cast<Time::duration>(std::chrono::nanoseconds(ns)));
}

// What reads throws on what does not fit; the public functions catch.

template <typename T>
T number(const bj::object& in, std::string_view key) {
    return in.at(key).to_number<T>();
}
template <typename T>
T number_or(const bj::object& in, std::string_view key, T otherwise) {
    const bj::value* value = in.if_contains(key);
    return value == nullptr ? otherwise : value->to_number<T>();
}
std::string text(const bj::object& in, std::string_view key) {
    const bj::value* value = in.if_contains(key);
    return value == nullptr ? std::string() : std::string(value->as_string());
}
std::optional<std::string> maybe_text(const bj::object& in, std::string_view key) {
    if (!in.contains(key)) return std::nullopt;
    return text(in, key);
}
template <typename IdType>
std::optional<IdType> maybe_id(const bj::object& in, std::string_view key) {
    if (!in.contains(key)) return std::nullopt;
    return IdType(text(in, key));
}
std::optional<Time> maybe_time(const bj::object& in, std::string_view key) {
    if (!in.contains(key)) return std::nullopt;
    return time_of(number<std::int64_t>(in, key));
}
std::optional<int> maybe_int(const bj::object& in, std::string_view key) {
    if (!in.contains(key)) return std::nullopt;
    return number<int>(in, key);
}
bool flag(const bj::object& in, std::string_view key) { return in.contains(key) && in.at(key).as_bool(); }

std::vector<LdSize> read_sizes(const bj::value& in) {
    std::vector<LdSize> out;
    for (const bj::value& one : in.as_array())
        out.push_back(
            {LdId{one.at(0).to_number<std::uint16_t>()}, Bytes{one.at(1).to_number<std::uint64_t>()}});
    return out;
}

std::optional<Reason> read_reason(const bj::object& in) {
    const bj::value* value = in.if_contains("reason");
    if (value == nullptr) return std::nullopt;
    return Reason{text(value->as_object(), "code"), text(value->as_object(), "detail")};
}

CompositionState read_state(const bj::object& in) {
    const auto state = parse_state(text(in, "state"));
    if (!state) throw std::invalid_argument("unknown state " + text(in, "state"));
    return *state;
}

PlacementPolicy read_policy(const bj::object& in) {
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

Part read_part(const bj::object& in) {
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
    if (const bj::value* value = in.if_contains("carve")) {
        const bj::object& carve = value->as_object();
        part.carve =
            Carve{read_sizes(carve.at("before")), read_sizes(carve.at("after")), flag(carve, "done")};
    }
    return part;
}

std::vector<std::uint32_t> read_numbers(const bj::value& in) {
    std::vector<std::uint32_t> out;
    for (const bj::value& one : in.as_array()) out.push_back(one.to_number<std::uint32_t>());
    return out;
}

std::optional<Exchange> read_exchange(const bj::object& in) {
    const bj::value* value = in.if_contains("exchange");
    if (value == nullptr) return std::nullopt;
    const bj::object& one = value->as_object();
    return Exchange{Bytes{number<std::uint64_t>(one, "size_before")},
                    time_of(number<std::int64_t>(one, "deadline")), read_numbers(one.at("leaving")),
                    read_numbers(one.at("coming"))};
}

// Before schema version 3 a composition was made of one part, whose members were its own.
void read_single_part(const bj::object& in, Composition& c) {
    Part part = read_part(in);
    part.region_name = maybe_text(in, "region");
    const bool unbound = part.boot_id.empty();
    c.parts.push_back(std::move(part));
    c.next_part = 1;
    c.failed = c.reason.has_value();
    c.was_online = !unbound;
}

void read_parts(const bj::object& in, Composition& c) {
    const bj::value* list = in.if_contains("parts");
    if (list == nullptr) return read_single_part(in, c);
    for (const bj::value& value : list->as_array()) {
        const bj::object& one = value.as_object();
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

void read_details(const bj::object& in, Composition& c) {
    for (const bj::value& value : in.at("steps").as_array()) {
        const bj::object& one = value.as_object();
        c.steps.push_back({text(one, "name"), number_or<std::uint32_t>(one, "part", 0),
                           time_of(number<std::int64_t>(one, "started")), maybe_time(one, "ended"),
                           text(one, "detail")});
    }
    if (const bj::value* list = in.if_contains("undone"))
        for (const bj::value& value : list->as_array()) c.undone.emplace_back(value.as_string());
    if (const bj::value* map = in.if_contains("labels"))
        for (const auto& [key, value] : map->as_object()) c.labels[key] = std::string(value.as_string());
}

Composition read_composition(const bj::object& in) {
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
    -> Result<decltype(read(std::declval<const bj::object&>()))> {
    try {
        bj::monotonic_resource memory(4 * record.size() + 1024);
        return read(bj::parse(record, &memory).as_object());
    } catch (const std::exception& e) {
        return fail(ErrorCode::kProtocol,
                    fmt::format("the store has a {} that cannot be read: {}", what, e.what()));
    }
}

}  // namespace

Result<Composition> decode_composition(std::string_view record) {
    return decode(record, "composition", read_composition);
}

Result<Event> decode_event(std::string_view record) {
    return decode(record, "event", [](const bj::object& in) {
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
