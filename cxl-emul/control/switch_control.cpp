#include "cxl-emul/control/switch_control.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace memtide::emul {
namespace {

namespace json = boost::json;
using Answer = boost::asio::awaitable<http::Response>;

constexpr unsigned kOk = 200;
constexpr unsigned kNoContent = 204;
constexpr unsigned kNotFound = 404;
constexpr unsigned kConflict = 409;
constexpr unsigned kUnprocessable = 422;
constexpr unsigned kMaxId = 254;

Result<std::uint8_t> number(std::string_view what, std::string_view text) {
    unsigned value = 0;
    const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || stop != text.data() + text.size() || value > kMaxId)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} \"{}\" is not a number from 0 to {}", what, text.substr(0, 40), kMaxId));
    return static_cast<std::uint8_t>(value);
}

Result<bool> truth(std::string_view text) {
    if (text == "true") return true;
    if (text == "false") return false;
    return fail(ErrorCode::kInvalidArgument, "enabled is true or false");
}

// What is asked for a virtual switch: each of the query's parameters is one change.
Result<std::vector<VcsChange>> changes_of(std::uint8_t id, const http::Request& request) {
    const auto upstream = request.query_value("upstream_port");
    const auto vppbs = request.query_value("vppbs");
    const auto enabled = request.query_value("enabled");
    std::vector<VcsChange> changes;
    // Each of them may be refused, and then nothing is to have changed.
    if (vppbs && enabled && !upstream)
        return fail(ErrorCode::kInvalidArgument, "changes vppbs or enabled, one at a time");
    if (vppbs) {
        const auto count = number("vppbs", *vppbs);
        if (!count) return std::unexpected(count.error());
        if (upstream) {
            const auto port = number("upstream_port", *upstream);
            if (!port) return std::unexpected(port.error());
            changes.emplace_back(AddVcs{{.id = id, .upstream_port = *port, .vppbs = *count}});
        } else {
            changes.emplace_back(ResizeVcs{id, *count});
        }
    }
    if (enabled) {
        const auto on = truth(*enabled);
        if (!on) return std::unexpected(on.error());
        changes.emplace_back(EnableVcs{id, *on});
    }
    if (changes.empty())
        return fail(
            ErrorCode::kInvalidArgument,
            "says nothing to change: ?upstream_port=0&vppbs=4 adds, ?vppbs=6 resizes, ?enabled=false");
    return changes;
}

Answer change_vcs(FindSwitch find, http::Request request) {
    const SwitchId name(request.path_parameters.at("name"));
    const auto id = number("VCS", request.path_parameters.at("vcs"));
    if (!id) co_return answer_of(std::unexpected(id.error()));
    std::vector<VcsChange> changes;
    if (request.method == "DELETE") {
        changes.emplace_back(RemoveVcs{*id});
    } else {
        auto asked = changes_of(*id, request);
        if (!asked) co_return answer_of(std::unexpected(asked.error()));
        changes = *std::move(asked);
    }
    for (const VcsChange& change : changes) {
        const auto running = find(name);
        if (!running) co_return answer_of(std::unexpected(running.error()));
        const Result<> done = co_await (*running)->change_vcs(change);
        if (!done) co_return answer_of(done);
    }
    co_return answer_of({});
}

Answer set_demand(FindSwitch find, http::Request request) {
    const auto ld = number("LD", request.path_parameters.at("ld"));
    if (!ld) co_return answer_of(std::unexpected(ld.error()));
    const auto text = request.query_value("demand");
    if (!text) co_return answer_of(fail(ErrorCode::kInvalidArgument, "needs ?demand=20GiB, a second"));
    const auto demand = parse_bytes(*text);
    if (!demand) co_return answer_of(std::unexpected(demand.error()));
    const auto running = find(SwitchId(request.path_parameters.at("name")));
    if (!running) co_return answer_of(std::unexpected(running.error()));
    DeviceId device(request.path_parameters.at("device"));
    const Result<> done = co_await (*running)->set_ld_demand(std::move(device), *ld, demand->value);
    co_return answer_of(done);
}

json::value describe(const DeviceBandwidth& bandwidth) {
    constexpr std::string_view kLoads[] = {"light", "optimal", "moderate-overload", "severe-overload"};
    json::array lds;
    for (std::size_t ld = 0; ld < bandwidth.lds.size(); ++ld) {
        const LdBandwidth& one = bandwidth.lds[ld];
        json::object item;
        item["ld"] = ld;
        item["has_host"] = one.has_host;
        item["allocated"] = one.qos.allocated;
        item["limit"] = one.qos.limit;
        item["demand"] = one.qos.demand;
        item["granted"] = one.granted;
        item["load"] = kLoads[static_cast<std::size_t>(one.load)];
        lds.push_back(std::move(item));
    }
    json::object result;
    result["bandwidth"] = bandwidth.whole.value;
    result["backpressure_percent"] = bandwidth.backpressure_percent;
    result["lds"] = std::move(lds);
    return result;
}

Answer show_bandwidth(FindSwitch find, http::Request request) {
    const auto running = find(SwitchId(request.path_parameters.at("name")));
    if (!running) co_return answer_of(std::unexpected(running.error()));
    DeviceId device(request.path_parameters.at("device"));
    const Result<DeviceBandwidth> bandwidth = co_await (*running)->bandwidth(std::move(device));
    if (!bandwidth) co_return answer_of(std::unexpected(bandwidth.error()));
    co_return http::json_response(kOk, json::serialize(describe(*bandwidth)));
}

}  // namespace

http::Response answer_of(const Result<>& done) {
    http::Response response;
    response.status = kNoContent;
    if (done) return response;
    switch (done.error().code) {
        case ErrorCode::kNotFound:
            return http::problem(kNotFound, "not-found", done.error().message);
        case ErrorCode::kConflict:
        case ErrorCode::kAlreadyExists:
            return http::problem(kConflict, "conflict", done.error().message);
        default:
            return http::problem(kUnprocessable, "invalid-request", done.error().message);
    }
}

FindSwitch find_among(std::vector<Switch*> switches) {
    return [switches = std::move(switches)](const SwitchId& name) -> Result<Switch*> {
        const auto found = std::ranges::find(switches, name, &Switch::name);
        if (found == switches.end()) return fail(ErrorCode::kNotFound, "no switch named " + name.value);
        return *found;
    };
}

void add_switch_routes(http::Router& router, FindSwitch find) {
    for (const char* method : {"PUT", "DELETE"})
        router.add(method, "/v1/switches/{name}/vcss/{vcs}",
                   [find](http::Request request) { return change_vcs(find, std::move(request)); });
    router.add("PUT", "/v1/switches/{name}/devices/{device}/lds/{ld}",
               [find](http::Request request) { return set_demand(find, std::move(request)); });
    router.add("GET", "/v1/switches/{name}/devices/{device}/bandwidth",
               [find](http::Request request) { return show_bandwidth(find, std::move(request)); });
}

}  // namespace memtide::emul
