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
        put(one, "ended", step.ended);
        put(one, "detail", step.detail);
        out.push_back(std::move(one));
    }
    return out;
}

json::array holders(const std::vector<Holder>& list) {
    json::array out;
    for (const Holder& holder : list) {
        json::object one{{"block", holder.block}, {"command", holder.command}, {"bytes", holder.bytes.value}};
        put(one, "pid", holder.pid);
        out.push_back(std::move(one));
    }
    return out;
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

void read_details(const json::object& in, Composition& c) {
    for (const json::value& value : in.at("steps").as_array()) {
        const json::object& one = value.as_object();
        c.steps.push_back({text(one, "name"), time_of(number<std::int64_t>(one, "started")),
                           maybe_time(one, "ended"), text(one, "detail")});
    }
    if (const json::value* list = in.if_contains("holders"))
        for (const json::value& value : list->as_array()) {
            const json::object& one = value.as_object();
            c.holders.push_back({text(one, "block"), maybe_int(one, "pid"), text(one, "command"),
                                 Bytes{number<std::uint64_t>(one, "bytes")}});
        }
    if (const json::value* list = in.if_contains("undone"))
        for (const json::value& value : list->as_array()) c.undone.emplace_back(value.as_string());
    if (const json::value* map = in.if_contains("labels"))
        for (const auto& [key, value] : map->as_object()) c.labels[key] = std::string(value.as_string());
    if (const json::value* value = in.if_contains("carve")) {
        const json::object& carve = value->as_object();
        c.carve = Carve{read_sizes(carve.at("before")), read_sizes(carve.at("after")), flag(carve, "done")};
    }
    if (const json::value* value = in.if_contains("reason"))
        c.reason = Reason{text(value->as_object(), "code"), text(value->as_object(), "detail")};
}

Composition read_composition(const json::object& in) {
    Composition c;
    c.id = CompositionId(text(in, "id"));
    c.sequence = number<std::uint64_t>(in, "sequence");
    c.host = HostId(text(in, "host"));
    c.size = Bytes{number<std::uint64_t>(in, "size")};
    c.tenant = maybe_text(in, "tenant");
    const auto state = parse_state(text(in, "state"));
    if (!state) throw std::invalid_argument("unknown state " + text(in, "state"));
    c.state = *state;
    c.revision = number<std::uint64_t>(in, "revision");
    c.memory = {DeviceId(text(in, "device")), LdId{number<std::uint16_t>(in, "ld")}};
    c.serial = SerialNumber{number<std::uint64_t>(in, "serial")};
    c.port = number<std::uint8_t>(in, "port");
    c.where = {SwitchId(text(in, "switch")), number<std::uint8_t>(in, "vcs"),
               number<std::uint8_t>(in, "vppb")};
    c.node = maybe_int(in, "node");
    c.region = maybe_text(in, "region");
    c.created = time_of(number<std::int64_t>(in, "created"));
    c.updated = time_of(number<std::int64_t>(in, "updated"));
    if (in.contains("ttl")) c.ttl = std::chrono::seconds(number<std::int64_t>(in, "ttl"));
    c.expires = maybe_time(in, "expires");
    c.forced = flag(in, "forced");
    c.adopted = flag(in, "adopted");
    c.release_requested = flag(in, "release_requested");
    c.waiting_for = text(in, "waiting_for");
    c.manager_overhead_ms = number_or<double>(in, "overhead_ms", 0);
    c.drain_deadline = maybe_time(in, "drain_deadline");
    c.offline_revision = number_or<std::uint64_t>(in, "offline_revision", 0);
    c.boot_id = text(in, "boot_id");
    c.erased = flag(in, "erased");
    c.phase_started = time_of(number<std::int64_t>(in, "phase_started"));
    c.phase_waited_ms = number_or<double>(in, "phase_waited_ms", 0);
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
    json::object out{{"id", c.id.value},
                     {"sequence", c.sequence},
                     {"host", c.host.value},
                     {"size", c.size.value},
                     {"state", to_string(c.state)},
                     {"revision", c.revision},
                     {"device", c.memory.device.value},
                     {"ld", c.memory.ld.value},
                     {"serial", c.serial.value},
                     {"port", c.port},
                     {"switch", c.where.switch_id.value},
                     {"vcs", c.where.vcs},
                     {"vppb", c.where.vppb},
                     {"created", nanoseconds(c.created)},
                     {"updated", nanoseconds(c.updated)},
                     {"phase_started", nanoseconds(c.phase_started)},
                     {"steps", steps(c.steps)}};
    put(out, "tenant", c.tenant);
    put(out, "node", c.node);
    put(out, "region", c.region);
    if (c.ttl) out["ttl"] = c.ttl->count();
    put(out, "expires", c.expires);
    put(out, "forced", c.forced);
    put(out, "adopted", c.adopted);
    put(out, "release_requested", c.release_requested);
    put(out, "waiting_for", c.waiting_for);
    put(out, "drain_deadline", c.drain_deadline);
    put(out, "boot_id", c.boot_id);
    put(out, "erased", c.erased);
    if (c.manager_overhead_ms != 0) out["overhead_ms"] = c.manager_overhead_ms;
    if (c.offline_revision != 0) out["offline_revision"] = c.offline_revision;
    if (c.phase_waited_ms != 0) out["phase_waited_ms"] = c.phase_waited_ms;
    if (c.reason) out["reason"] = json::object{{"code", c.reason->code}, {"detail", c.reason->detail}};
    if (!c.holders.empty()) out["holders"] = holders(c.holders);
    if (!c.undone.empty()) out["undone"] = json::array(c.undone.begin(), c.undone.end());
    if (!c.labels.empty()) {
        json::object labels;
        for (const auto& [key, value] : c.labels) labels[key] = value;
        out["labels"] = std::move(labels);
    }
    if (c.carve) {
        json::object carve{{"before", sizes(c.carve->before)}, {"after", sizes(c.carve->after)}};
        put(carve, "done", c.carve->done);
        out["carve"] = std::move(carve);
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
