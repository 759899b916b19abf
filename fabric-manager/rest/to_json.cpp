#include "fabric-manager/rest/to_json.h"

#include <cmath>

#include <boost/json/value.hpp>

#include "common/base/ids.h"
#include "common/json/write.h"
#include "fabric-manager/rest/text.h"

namespace memtide::fm {
namespace {

namespace json = boost::json;

json::value text_or_null(const std::string& text) {
    return text.empty() ? json::value(nullptr) : json::value(text);
}
json::value time_or_null(const std::optional<Time>& time) {
    return time ? json::value(format_time(*time)) : json::value(nullptr);
}
template <typename Tag>
json::value id_or_null(const std::optional<Id<Tag>>& id) {
    return id ? json::value(id->value) : json::value(nullptr);
}
template <typename T>
json::value or_null(const std::optional<T>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}
json::value serial_or_null(SerialNumber serial) {
    return serial.value == 0 ? json::value(nullptr) : json::value(format_serial(serial));
}
json::value ld_or_null(LdId ld) { return ld == kWholeDevice ? json::value(nullptr) : json::value(ld.value); }
json::value reason_or_null(const std::optional<Reason>& reason) {
    if (!reason) return nullptr;
    return json::object{{"code", reason->code}, {"detail", reason->detail}};
}

// Milliseconds to the microsecond: what lies below is noise.
double rounded(double ms) { return std::round(ms * 1000) / 1000; }

json::object holder_json(const Holder& holder) {
    return {{"block", holder.block},
            {"pid", or_null(holder.pid)},
            {"command", holder.command},
            {"bytes", holder.bytes.value}};
}

json::object step_json(const Step& step) {
    return {{"step", step.name},
            {"part", step.part},
            {"started", format_time(step.started)},
            {"ended", time_or_null(step.ended)},
            {"duration_ms",
             step.ended ? json::value(rounded(to_ms(*step.ended - step.started))) : json::value(nullptr)},
            {"detail", step.detail}};
}

template <typename Items, typename Write>
json::array array_of(const Items& items, Write write) {
    json::array result;
    result.reserve(items.size());
    for (const auto& item : items) result.push_back(write(item));
    return result;
}

json::object part_json(const Part& part) {
    json::object result;
    result.reserve(24);
    result["number"] = part.number;
    result["region"] = part.region;
    result["size"] = part.size.value;
    result["state"] = to_string(part.state);
    result["reason"] = reason_or_null(part.reason);
    result["device"] = part.memory.device.value;
    result["ld"] = ld_or_null(part.memory.ld);
    result["serial"] = serial_or_null(part.serial);
    result["switch"] = part.where.switch_id.value;
    result["vcs"] = part.where.vcs;
    result["vppb"] = part.where.vppb;
    result["node"] = or_null(part.node);
    result["region_name"] = or_null(part.region_name);
    result["replacement"] = part.replacement;
    result["verified"] = part.verified_pages != 0;
    result["verified_pages"] = part.verified_pages;
    result["waiting_for"] = text_or_null(part.waiting_for);
    result["holders"] = array_of(part.holders, holder_json);
    return result;
}

json::object policy_json(const PlacementPolicy& policy) {
    return {{"policy", to_string(policy.kind)},
            {"ways", policy.ways},
            {"max_devices", policy.max_devices},
            {"max_percent_per_device", policy.max_percent_per_device},
            {"max_percent_per_switch", policy.max_percent_per_switch},
            {"exclusive_devices", policy.exclusive_devices},
            {"use_reserve", policy.use_reserve},
            {"reprovide", policy.reprovide}};
}

json::value exchange_or_null(const std::optional<Exchange>& exchange) {
    if (!exchange) return nullptr;
    return json::object{{"size_before", exchange->size_before.value},
                        {"deadline", format_time(exchange->deadline)},
                        {"leaving", json::array(exchange->leaving.begin(), exchange->leaving.end())},
                        {"coming", json::array(exchange->coming.begin(), exchange->coming.end())}};
}

// The NUMA node, when all parts that are online are on the same one.
std::optional<int> common_node(const Composition& c) {
    std::optional<int> node;
    for (const Part& part : c.parts) {
        if (!part.node) continue;
        if (node && *node != *part.node) return std::nullopt;
        node = part.node;
    }
    return node;
}

}  // namespace

json::object to_json(const Composition& c) {
    json::object labels;
    for (const auto& [key, value] : c.labels) labels[key] = value;
    json::array holders;
    for (const Part& part : c.parts)
        for (const Holder& holder : part.holders) holders.push_back(holder_json(holder));
    json::object result;
    result.reserve(32);
    result["id"] = c.id.value;
    result["host"] = c.host.value;
    result["size"] = c.size.value;
    result["tenant"] = or_null(c.tenant);
    result["labels"] = std::move(labels);
    result["placement"] = policy_json(c.placement);
    result["state"] = to_string(c.state);
    result["revision"] = c.revision;
    result["reason"] = reason_or_null(c.reason);
    result["node"] = or_null(common_node(c));
    result["parts"] = array_of(c.parts, part_json);
    result["exchange"] = exchange_or_null(c.exchange);
    result["created"] = format_time(c.created);
    result["updated"] = format_time(c.updated);
    result["ttl_seconds"] = c.ttl ? json::value(c.ttl->count()) : json::value(nullptr);
    result["expires"] = time_or_null(c.expires);
    result["forced"] = c.forced;
    result["adopted"] = c.adopted;
    result["waiting_for"] = text_or_null(waiting_for(c));
    result["holders"] = std::move(holders);
    result["undone"] = array_of(c.undone, [](const std::string& text) { return json::value(text); });
    result["steps"] = array_of(c.steps, step_json);
    result["manager_overhead_ms"] = rounded(c.manager_overhead_ms);
    return result;
}

namespace {

json::object verify_json(const VerifyErased& verify) {
    json::object result{{"samples", verify.samples}};
    if (verify.pattern == ErasedPattern::kUniform) result["pattern"] = "uniform";
    return result;
}

}  // namespace

json::object to_json(const DesiredState& desired) {
    const auto serial = [](SerialNumber one) { return json::value(format_serial(one)); };
    const auto one = [&](const DesiredRegion& region) -> json::object {
        json::object result{
            {"composition", region.id.composition.value},           {"region", region.id.number},
            {"serials", array_of(region.serials, serial)},          {"size", region.size.value},
            {"desired", region.online ? "online" : "offline"},      {"force", region.force},
            {"drain_deadline", time_or_null(region.drain_deadline)}};
        if (region.verify) result["verify_erased"] = verify_json(*region.verify);
        return result;
    };
    return {{"revision", desired.revision},
            {"host", desired.host.value},
            {"regions", array_of(desired.regions, one)}};
}

json::object to_json(const History& history) {
    const Composition& c = history.composition;
    json::value next = nullptr;
    if (history.more && !history.events.empty()) next = std::to_string(history.events.back().id);
    return {{"composition", c.id.value},
            {"state", to_string(c.state)},
            {"created", format_time(c.created)},
            {"updated", format_time(c.updated)},
            {"steps", array_of(c.steps, step_json)},
            {"items", array_of(history.events, [](const Event& event) { return to_json(event); })},
            {"next", std::move(next)},
            {"complete", history.complete}};
}

json::object to_json(const Event& event) {
    return {{"id", event.id},
            {"time", format_time(event.time)},
            {"type", event.type},
            {"composition", id_or_null(event.composition)},
            {"host", id_or_null(event.host)},
            {"switch", id_or_null(event.switch_id)},
            {"device", id_or_null(event.device)},
            {"state", text_or_null(event.state)},
            {"code", text_or_null(event.code)},
            {"detail", event.detail},
            {"forced", event.forced}};
}

namespace {

json::value owner_or_null(const std::optional<PartId>& owner) {
    return owner ? json::value(owner->composition.value) : json::value(nullptr);
}

std::string_view use_text(LdUse use) {
    switch (use) {
        case LdUse::kUnallocated:
            return "unallocated";
        case LdUse::kFree:
            return "free";
        case LdUse::kReserved:
            return "reserved";
        case LdUse::kBound:
            return "bound";
        case LdUse::kQuarantined:
            return "quarantined";
        case LdUse::kForeign:
            return "foreign";
    }
    return "free";
}

std::string_view role_text(PortRole role) {
    switch (role) {
        case PortRole::kUnused:
            return "unused";
        case PortRole::kUpstream:
            return "upstream";
        case PortRole::kDownstream:
            return "downstream";
    }
    return "unused";
}

std::string_view status_text(BindingStatus status) {
    switch (status) {
        case BindingStatus::kUnbound:
            return "unbound";
        case BindingStatus::kInProgress:
            return "in-progress";
        case BindingStatus::kBoundPort:
            return "bound-port";
        case BindingStatus::kBoundLd:
            return "bound-ld";
    }
    return "unbound";
}

json::object sums_json(const auto& sums) {
    return {{"capacity", sums.capacity.value},        {"free", sums.free.value},
            {"composed", sums.composed.value},        {"quarantined", sums.quarantined.value},
            {"foreign", sums.foreign.value},          {"stranded", sums.stranded.value},
            {"largest_free", sums.largest_free.value}};
}

json::object ld_json(const LogicalDevice& ld) {
    json::value bound_at = nullptr;
    if (ld.bound_at)
        bound_at = json::object{
            {"switch", ld.bound_at->switch_id.value}, {"vcs", ld.bound_at->vcs}, {"vppb", ld.bound_at->vppb}};
    return {{"id", ld_or_null(ld.id)},
            {"serial", serial_or_null(ld.serial)},
            {"size", ld.size.value},
            {"planned_size", ld.planned ? json::value(ld.planned->value) : json::value(nullptr)},
            {"use", use_text(ld.use)},
            {"clean", ld.clean},
            {"offered", ld.offered},
            {"head", ld.head ? json::value(*ld.head) : json::value(nullptr)},
            {"composition", owner_or_null(ld.owner)},
            {"bound_at", std::move(bound_at)}};
}

json::object head_json(const Head& head) {
    return {{"number", head.number}, {"switch", head.switch_id.value}, {"port", head.port}};
}

json::object port_json(const Port& port) {
    return {{"id", port.id},
            {"role", role_text(port.role)},
            {"link_up", port.link_up},
            {"link_width", port.link_width},
            {"supported_lds", port.supported_lds},
            {"device", id_or_null(port.device)}};
}

json::object vppb_json(const Vppb& vppb) {
    const bool bound = vppb.status == BindingStatus::kBoundPort || vppb.status == BindingStatus::kBoundLd;
    return {{"id", vppb.id},
            {"status", status_text(vppb.status)},
            {"port", bound ? json::value(vppb.port) : json::value(nullptr)},
            {"ld", vppb.status == BindingStatus::kBoundLd ? ld_or_null(vppb.ld) : json::value(nullptr)},
            {"composition", owner_or_null(vppb.owner)}};
}

json::object vcs_json(const Vcs& vcs) {
    return {{"id", vcs.id},
            {"enabled", vcs.enabled},
            {"upstream_port", vcs.upstream_port},
            {"host", id_or_null(vcs.host)},
            {"vppbs", array_of(vcs.vppbs, vppb_json)}};
}

json::object warning_json(const Warning& warning) {
    return {{"code", warning.code}, {"detail", warning.detail}};
}

}  // namespace

namespace {

// Why it gets nothing new.
json::value held_or_null(const Device& device) {
    return text_or_null(device.held.empty() ? device.unfit : device.held);
}

}  // namespace

json::object to_json(const Pool& pool, const Fragmentation& scattered,
                     const std::map<DeviceId, Device>& devices) {
    json::object result = sums_json(pool);
    result["largest_composition"] = scattered.total.largest_composition.value;
    result["fragmentation"] = scattered.total.fragmentation();
    result["switches"] = array_of(scattered.switches, [](const SwitchScatter& one) -> json::object {
        return {{"name", one.id.value},
                {"free", one.scatter.free.value},
                {"largest_free", one.scatter.largest_ld.value},
                {"largest_composition", one.scatter.largest_composition.value},
                {"fragmentation", one.scatter.fragmentation()}};
    });
    result["devices"] = array_of(pool.devices, [&devices](const PoolDevice& device) {
        json::object one = sums_json(device);
        one["name"] = device.id.value;
        one["kind"] = to_string(device.kind);
        const auto known = devices.find(device.id);
        one["held"] = known == devices.end() ? json::value(nullptr) : held_or_null(known->second);
        return one;
    });
    return result;
}

json::array to_json(const std::vector<Exclusion>& excluded) {
    return array_of(excluded, [](const Exclusion& one) -> json::object {
        return {{"device", one.device}, {"constraint", one.constraint}, {"detail", one.detail}};
    });
}

json::object to_json(const TenantStatus& tenant) {
    const TenantQuota& quota = tenant.quota;
    json::value hosts = nullptr;
    if (!quota.hosts.empty())
        hosts = array_of(quota.hosts, [](const HostId& host) { return json::value(host.value); });
    return {{"name", tenant.name},
            {"bytes", tenant.used.bytes.value},
            {"bytes_allowed", quota.bytes ? json::value(quota.bytes->value) : json::value(nullptr)},
            {"compositions", tenant.used.compositions},
            {"compositions_allowed", or_null(quota.compositions)},
            {"hosts", std::move(hosts)}};
}

namespace {

json::value dialect_json(const Switch& item) {
    if (item.dialect.empty()) return nullptr;
    return json::object{
        {"name", item.dialect}, {"detected", item.dialect_detected}, {"in_flight", item.in_flight}};
}

}  // namespace

json::object to_json(const Switch& item) {
    return {{"name", item.id.value},
            {"address", item.address},
            {"up", item.up},
            {"inventoried", item.inventoried},
            {"error", text_or_null(item.error)},
            {"held", text_or_null(item.held)},
            {"dialect", dialect_json(item)},
            {"last_seen", time_or_null(item.last_seen)},
            {"ports", array_of(item.ports, port_json)},
            {"vcss", array_of(item.vcss, vcs_json)}};
}

namespace {

json::value health_json(const std::optional<DeviceHealth>& health) {
    if (!health) return nullptr;
    json::array wrong;
    for (const HealthFinding& one : findings(*health))
        wrong.push_back(json::object{{"level", to_string(one.level)}, {"what", one.what}});
    return json::object{{"verdict", to_string(verdict(*health))},
                        {"findings", std::move(wrong)},
                        {"life_used_percent", or_null(health->life_used_percent)},
                        {"temperature_celsius", or_null(health->temperature_celsius)},
                        {"corrected_volatile_errors", health->corrected_volatile_errors},
                        {"corrected_persistent_errors", health->corrected_persistent_errors},
                        {"dirty_shutdowns", health->dirty_shutdowns},
                        {"as_of", format_time(health->as_of)}};
}

json::object device_json(const Device& device) {
    return {{"name", device.id.value},
            {"kind", to_string(device.kind)},
            {"switch", device.switch_id.value},
            {"port", device.port},
            {"serial", serial_or_null(device.serial)},
            {"size", device.size.value},
            {"granularity", device.granularity.value},
            {"present", device.present},
            {"held", held_or_null(device)},
            {"health", health_json(device.health)},
            {"head_count", device.head_count},
            {"heads", array_of(device.heads, head_json)}};
}

}  // namespace

json::object to_json(const Device& device) {
    json::object result = device_json(device);
    result["lds"] = array_of(device.lds, ld_json);
    return result;
}

void append_json(std::string& text, const Device& device) {
    memtide::json::append(text, device_json(device));
    text.back() = ',';  // in place of the end of the object
    text += "\"lds\":[";
    for (std::size_t i = 0; i < device.lds.size(); ++i) {
        if (i > 0) text += ',';
        memtide::json::append(text, ld_json(device.lds[i]));
    }
    text += "]}";
}

json::object to_json(const Host& host, Bytes composed, bool connected, std::optional<Time> away_since) {
    const auto attachment = [](const HostAttachment& at) -> json::object {
        return {{"switch", at.switch_id.value}, {"vcs", at.vcs}};
    };
    const auto memdev = [](const HostMemdev& m) -> json::object {
        return {{"name", m.name}, {"serial", format_serial(m.serial)}, {"size", m.size.value}};
    };
    const auto window = [](const HostWindow& w) -> json::object {
        return {{"name", w.name},
                {"ways", w.ways},
                {"size", w.size.value},
                {"largest_free", w.largest_free.value}};
    };
    return {{"name", host.id.value},
            {"attach", array_of(host.attach, attachment)},
            {"composed", composed.value},
            {"held", text_or_null(host.held)},
            {"revision", host.revision},
            {"agent", json::object{{"connected", connected},
                                   {"away_since", time_or_null(away_since)},
                                   {"last_report", time_or_null(host.last_report)},
                                   {"version", text_or_null(host.agent_version)},
                                   {"boot_id", text_or_null(host.boot_id)},
                                   {"revision_seen", host.revision_seen}}},
            {"memdevs", array_of(host.memdevs, memdev)},
            {"windows", array_of(host.windows, window)},
            {"warnings", array_of(host.warnings, warning_json)}};
}

}  // namespace memtide::fm
