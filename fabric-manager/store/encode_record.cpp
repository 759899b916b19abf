#include "common/json/write.h"
#include "fabric-manager/store/record.h"

namespace memtide::fm {

namespace {

constexpr std::size_t kUsualSize = 1024;  // of a composition, so that its text grows once

std::int64_t nanoseconds(Time time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void put(json::Writer& out, std::string_view key, const std::string& value) {
    if (!value.empty()) out.member(key, value);
}
template <typename Tag>
void put(json::Writer& out, std::string_view key, const std::optional<Id<Tag>>& value) {
    if (value) out.member(key, value->value);
}
void put(json::Writer& out, std::string_view key, const std::optional<std::string>& value) {
    if (value) out.member(key, *value);
}
void put(json::Writer& out, std::string_view key, const std::optional<Time>& value) {
    if (value) out.member(key, nanoseconds(*value));
}
void put(json::Writer& out, std::string_view key, const std::optional<int>& value) {
    if (value) out.member(key, *value);
}
void put(json::Writer& out, std::string_view key, bool value) {
    if (value) out.member(key, true);
}

void put_sizes(json::Writer& out, std::string_view key, const std::vector<LdSize>& list) {
    out.open_array(key);
    for (const LdSize& one : list) {
        out.open_array();
        out.item(one.ld.value);
        out.item(one.size.value);
        out.close();
    }
    out.close();
}

void put_steps(json::Writer& out, const std::vector<Step>& list) {
    out.open_array("steps");
    for (const Step& step : list) {
        out.open_object();
        out.member("name", step.name);
        out.member("started", nanoseconds(step.started));
        if (step.part != 0) out.member("part", step.part);
        put(out, "ended", step.ended);
        put(out, "detail", step.detail);
        out.close();
    }
    out.close();
}

void put_policy(json::Writer& out, const PlacementPolicy& p) {
    out.open_object("placement");
    out.member("kind", to_string(p.kind));
    out.member("ways", p.ways);
    out.member("max_devices", p.max_devices);
    if (p.max_percent_per_device != 100) out.member("device_percent", p.max_percent_per_device);
    if (p.max_percent_per_switch != 100) out.member("switch_percent", p.max_percent_per_switch);
    put(out, "exclusive", p.exclusive_devices);
    put(out, "reserve", p.use_reserve);
    put(out, "reprovide", p.reprovide);
    out.close();
}

void put(json::Writer& out, const std::optional<Reason>& reason) {
    if (!reason) return;
    out.open_object("reason");
    out.member("code", reason->code);
    out.member("detail", reason->detail);
    out.close();
}

void put_part(json::Writer& out, const Part& part) {
    out.open_object();
    out.member("number", part.number);
    out.member("region", part.region);
    out.member("size", part.size.value);
    out.member("state", to_string(part.state));
    out.member("device", part.memory.device.value);
    out.member("ld", part.memory.ld.value);
    out.member("serial", part.serial.value);
    out.member("port", part.port);
    out.member("switch", part.where.switch_id.value);
    out.member("vcs", part.where.vcs);
    out.member("vppb", part.where.vppb);
    put(out, part.reason);
    put(out, "node", part.node);
    put(out, "region_name", part.region_name);
    put(out, "release_requested", part.release_requested);
    put(out, "forced", part.forced);
    put(out, "replacement", part.replacement);
    put(out, "drain_deadline", part.drain_deadline);
    put(out, "boot_id", part.boot_id);
    if (part.verified_pages != 0) out.member("verified", part.verified_pages);
    if (part.offline_revision != 0) out.member("offline_revision", part.offline_revision);
    if (part.carve) {
        out.open_object("carve");
        put_sizes(out, "before", part.carve->before);
        put_sizes(out, "after", part.carve->after);
        put(out, "done", part.carve->done);
        out.close();
    }
    out.close();
}

void put_list(json::Writer& out, std::string_view key, const auto& list) {
    out.open_array(key);
    for (const auto& one : list) out.item(one);
    out.close();
}

void put_exchange(json::Writer& out, const Exchange& exchange) {
    out.open_object("exchange");
    out.member("size_before", exchange.size_before.value);
    out.member("deadline", nanoseconds(exchange.deadline));
    put_list(out, "leaving", exchange.leaving);
    put_list(out, "coming", exchange.coming);
    out.close();
}

}  // namespace

std::string encode_record(const Composition& c) {
    std::string text;
    text.reserve(kUsualSize);
    json::Writer out(text);
    out.open_object();
    out.member("id", c.id.value);
    out.member("sequence", c.sequence);
    out.member("host", c.host.value);
    out.member("size", c.size.value);
    put_policy(out, c.placement);
    out.member("state", to_string(c.state));
    out.member("revision", c.revision);
    out.open_array("parts");
    for (const Part& part : c.parts) put_part(out, part);
    out.close();
    out.member("next_part", c.next_part);
    out.member("created", nanoseconds(c.created));
    out.member("updated", nanoseconds(c.updated));
    out.member("phase_started", nanoseconds(c.phase_started));
    put_steps(out, c.steps);
    put(out, "tenant", c.tenant);
    put(out, c.reason);
    if (c.ttl) out.member("ttl", c.ttl->count());
    put(out, "expires", c.expires);
    if (c.exchange) put_exchange(out, *c.exchange);
    put(out, "failed", c.failed);
    put(out, "was_online", c.was_online);
    put(out, "forced", c.forced);
    put(out, "adopted", c.adopted);
    put(out, "release_requested", c.release_requested);
    if (c.manager_overhead_ms != 0) out.member("overhead_ms", c.manager_overhead_ms);
    if (c.phase_waited_ms != 0) out.member("phase_waited_ms", c.phase_waited_ms);
    if (!c.undone.empty()) put_list(out, "undone", c.undone);
    if (!c.labels.empty()) {
        out.open_object("labels");
        for (const auto& [key, value] : c.labels) out.member(key, value);
        out.close();
    }
    out.close();
    return text;
}

std::string encode_record(const Event& event) {
    std::string text;
    json::Writer out(text);
    out.open_object();
    out.member("id", event.id);
    out.member("time", nanoseconds(event.time));
    out.member("type", event.type);
    put(out, "composition", event.composition);
    put(out, "host", event.host);
    put(out, "switch", event.switch_id);
    put(out, "device", event.device);
    put(out, "state", event.state);
    put(out, "code", event.code);
    put(out, "detail", event.detail);
    put(out, "forced", event.forced);
    out.close();
    return text;
}

}  // namespace memtide::fm
