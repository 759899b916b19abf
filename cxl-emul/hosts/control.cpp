#include "cxl-emul/hosts/control.h"

#include <map>
#include <string>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "cxl-emul/control/switch_control.h"
#include "cxl-emul/faults/control.h"

namespace memtide::emul {
namespace {

namespace json = boost::json;
using Answer = boost::asio::awaitable<http::Response>;

constexpr unsigned kOk = 200;
constexpr unsigned kNotFound = 404;

// "?for=200ms"; without it the fault lasts until it is ended.
Result<Fleet::Duration> lasts(const http::Request& request) {
    const auto given = request.query_value("for");
    if (!given) return Fleet::Duration();
    const auto time = parse_duration(*given);
    if (!time) return std::unexpected(time.error());
    return Fleet::Duration(*time);
}

json::value status(const Fleet& fleet) {
    const FleetCounts counts = fleet.counts();
    const Ledger& ledger = fleet.ledger();
    json::object result;
    result["hosts"] = counts.hosts;
    result["agents"] = counts.agents;
    result["faulty_hosts"] = counts.faulty_hosts;
    result["switches_off"] = counts.switches_off;
    result["bound"] = counts.bound;
    result["plugged"] = counts.plugged;
    result["online"] = counts.online;
    result["wanted"] = counts.wanted;
    json::object since_start;
    since_start["plugged"] = ledger.plugged;
    since_start["unplugged"] = ledger.unplugged;
    since_start["onlined"] = ledger.onlined;
    since_start["offlined"] = ledger.offlined;
    since_start["reports"] = ledger.reports;
    since_start["refused_reports"] = ledger.refused_reports;
    since_start["refused_agents"] = ledger.refused_agents;
    since_start["refused_certificates"] = ledger.refused_certificates;
    since_start["reboots"] = ledger.reboots;
    since_start["power_cycles"] = ledger.power_cycles;
    since_start["violations"] = ledger.violation_count();
    since_start["surprise_removals"] = ledger.surprises().size();
    result["since_start"] = std::move(since_start);
    return result;
}

json::value violations(const Ledger& ledger) {
    json::array wrong;
    for (const Violation& one : ledger.violations()) {
        json::object item;
        item["kind"] = one.kind;
        item["host"] = one.host.value;
        item["serial"] = format_serial(one.serial);
        item["detail"] = one.detail;
        wrong.push_back(std::move(item));
    }
    json::array surprises;
    for (const SurpriseRemoval& one : ledger.surprises()) {
        json::object item;
        item["host"] = one.host.value;
        item["serial"] = format_serial(one.serial);
        surprises.push_back(std::move(item));
    }
    json::object result;
    result["violations"] = std::move(wrong);
    result["surprise_removals"] = std::move(surprises);
    return result;
}

json::value describe(const Host& host) {
    json::array bound;
    for (const auto& [serial, one] : host.bound()) {
        json::object item;
        item["serial"] = format_serial(serial);
        item["device"] = one.device.media->path();
        item["switch"] = one.slot.switch_name.value;
        item["vcs"] = one.slot.vcs;
        item["vppb"] = one.slot.vppb;
        json::array extents;
        std::uint64_t size = 0;
        for (const ByteRange& memory : host.model().memory_of(serial)) {
            size += memory.size();
            extents.push_back(json::object{{"offset", memory.begin}, {"size", memory.size()}});
        }
        item["size"] = one.device.mailbox ? size : one.device.size.value;
        if (one.device.mailbox) item["extents"] = std::move(extents);
        const auto use = host.model().use_of(serial);
        constexpr std::string_view kUses[] = {"found",         "going-online", "online",
                                              "going-offline", "offline",      "not-erased"};
        item["use"] = use ? kUses[static_cast<std::size_t>(*use)] : "unreachable";
        bound.push_back(std::move(item));
    }
    json::array faults;
    for (const std::string_view name : host_fault_names())
        if (host.model().faults().has(*parse_host_fault(name))) faults.emplace_back(name);
    json::object result;
    result["name"] = host.name().value;
    result["agent"] = host.agent_runs();
    result["boot_id"] = host.model().boot_id();
    result["revision"] = host.model().revision();
    result["faults"] = std::move(faults);
    result["bound"] = std::move(bound);
    return result;
}

// --- Faults ---

Result<> fault_of_host(Fleet& fleet, const HostId& id, const std::string& name, bool begin,
                       Fleet::Duration time) {
    const auto fault = parse_host_fault(name);
    if (!fault) return fail(ErrorCode::kNotFound, fmt::format("a host has no fault \"{}\"", name));
    return begin ? fleet.begin_fault(id, *fault, time) : fleet.end_fault(id, *fault);
}

Result<> fault_of_switch(Fleet& fleet, const SwitchId& id, const std::string& name, bool begin,
                         Fleet::Duration time) {
    if (name != "power-off")
        return fail(ErrorCode::kNotFound, fmt::format("a switch has no fault \"{}\"", name));
    return begin ? fleet.power_off(id, time) : fleet.power_on(id);
}

Result<> fault_of_device(Fleet& fleet, const DeviceId& id, const std::string& name, bool begin,
                         Fleet::Duration time) {
    using enum Fleet::DeviceFault;
    static const std::map<std::string, Fleet::DeviceFault> faults{{"link-down", kLinkDown},
                                                                  {"erase-fails", kEraseFails},
                                                                  {"erase-does-nothing", kEraseDoesNothing},
                                                                  {"worn", kWorn},
                                                                  {"failing", kFailing}};
    const auto found = faults.find(name);
    if (found == faults.end())
        return fail(ErrorCode::kNotFound, fmt::format("a device has no fault \"{}\"", name));
    const Fleet::DeviceFault fault = found->second;
    return begin ? fleet.begin_fault(id, fault, time) : fleet.end_fault(id, fault);
}

template <typename Id, typename Apply>
void add_fault_routes(http::Router& router, const std::string& kind, Fleet& fleet, Apply apply) {
    for (const bool begin : {true, false}) {
        auto handle = [&fleet, apply, begin](http::Request request) -> Answer {
            const auto time = lasts(request);
            if (!time) co_return answer_of(std::unexpected(time.error()));
            const Id id(request.path_parameters.at("name"));
            co_return answer_of(apply(fleet, id, request.path_parameters.at("fault"), begin, *time));
        };
        router.add(begin ? "PUT" : "DELETE", fmt::format("/v1/{}/{{name}}/faults/{{fault}}", kind), handle);
    }
}

}  // namespace

void add_control_routes(http::Router& router, Fleet& fleet, FaultBoard& board) {
    router.add("GET", "/v1/status", [&fleet](http::Request) -> Answer {
        co_return http::json_response(kOk, json::serialize(status(fleet)));
    });
    router.add("GET", "/v1/violations", [&fleet](http::Request) -> Answer {
        co_return http::json_response(kOk, json::serialize(violations(fleet.ledger())));
    });
    router.add("GET", "/v1/hosts/{name}", [&fleet](http::Request request) -> Answer {
        const Host* host = fleet.host(HostId(request.path_parameters.at("name")));
        if (host == nullptr) co_return http::problem(kNotFound, "not-found", "there is no such host");
        co_return http::json_response(kOk, json::serialize(describe(*host)));
    });
    router.add("DELETE", "/v1/faults", [&fleet, &board](http::Request) -> Answer {
        board.clear_all();
        fleet.heal();
        co_return answer_of({});
    });
    add_fault_routes(router, board);
    add_fault_routes<HostId>(router, "hosts", fleet, fault_of_host);
    add_fault_routes<SwitchId>(router, "switches", fleet, fault_of_switch);
    add_fault_routes<DeviceId>(router, "devices", fleet, fault_of_device);
    add_switch_routes(router, [&fleet](const SwitchId& id) { return fleet.running_switch(id); });
}

}  // namespace memtide::emul
