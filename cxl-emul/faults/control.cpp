#include "cxl-emul/faults/control.h"

#include <charconv>
#include <chrono>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include "cxl-emul/faults/fault_table.h"
#include "cxl-emul/faults/fault_text.h"
#include "cxl-emul/faults/read_fault.h"
#include "cxl-emul/switch/endpoint.h"

namespace memtide::emul {
namespace asio = boost::asio;

namespace {

using FaultAnswer = asio::awaitable<http::Response>;

constexpr unsigned kHttpOk = 200;
constexpr unsigned kHttpCreated = 201;
constexpr unsigned kHttpNoContent = 204;
constexpr unsigned kHttpNotFound = 404;
constexpr unsigned kHttpUnprocessable = 422;
constexpr double kFastest = 1000;
constexpr double kSlowest = 0.001;
constexpr std::string_view kStateNames[] = {"waiting", "active", "over"};

http::Response refusal(const Error& error) {
    if (error.code == ErrorCode::kNotFound) return http::problem(kHttpNotFound, "not-found", error.message);
    return http::problem(kHttpUnprocessable, "invalid-request", error.message);
}

http::Response no_content() {
    http::Response response;
    response.status = kHttpNoContent;
    return response;
}

boost::json::object listing(FaultBoard& board) {
    boost::json::array faults;
    std::uint64_t counts[3] = {};
    for (const FaultStatus& one : board.list()) {
        boost::json::object item;
        item["id"] = one.id;
        item["kind"] = to_string(one.fault.kind);
        item["state"] = kStateNames[static_cast<std::size_t>(one.state)];
        item["hits"] = one.hits;
        item["fault"] = to_string(one.fault);
        ++counts[static_cast<std::size_t>(one.state)];
        faults.push_back(std::move(item));
    }
    boost::json::object result;
    for (std::size_t i = 0; i < std::size(counts); ++i) result[kStateNames[i]] = counts[i];
    result["faults"] = std::move(faults);
    return result;
}

// "3": a whole number, and nothing behind it.
template <typename Number>
std::optional<Number> number_of_text(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

Result<double> speed_of(const http::Request& request) {
    const auto given = request.query_value("speed");
    if (!given) return 1;
    const auto speed = number_of_text<double>(*given);
    if (speed && *speed >= kSlowest && *speed <= kFastest) return *speed;
    return fail(ErrorCode::kInvalidArgument, "speed must be a number from 0.001 to 1000");
}

http::Response begin_fault(FaultBoard& board, const http::Request& request) {
    auto fault = parse_fault(request.body, "fault", &board.topology());
    if (!fault) return refusal(fault.error());
    const auto id = board.inject(*std::move(fault));
    if (!id) return refusal(id.error());
    boost::json::object result;
    result["id"] = *id;
    return http::json_response(kHttpCreated, boost::json::serialize(result));
}

http::Response play_scenario(FaultBoard& board, const http::Request& request) {
    const auto speed = speed_of(request);
    if (!speed) return refusal(speed.error());
    const auto scenario = parse_scenario(request.body, "scenario", &board.topology());
    if (!scenario) return refusal(scenario.error());
    const auto ids = board.play(*scenario, *speed);
    if (!ids) return refusal(ids.error());
    boost::json::array all;
    for (const std::uint64_t id : *ids) all.emplace_back(id);
    boost::json::object result;
    result["ids"] = std::move(all);
    return http::json_response(kHttpCreated, boost::json::serialize(result));
}

http::Response end_fault(FaultBoard& board, const http::Request& request) {
    const std::string& text = request.path_parameters.at("id");
    const auto id = number_of_text<std::uint64_t>(text);
    if (!id) return refusal({ErrorCode::kNotFound, fmt::format("\"{}\" is no number of a fault", text)});
    const auto cleared = board.clear(*id);
    return cleared ? no_content() : refusal(cleared.error());
}

}  // namespace

void add_fault_routes(http::Router& router, FaultBoard& board) {
    router.add("GET", "/v1/faults", [&board](http::Request) -> FaultAnswer {
        co_return http::json_response(kHttpOk, boost::json::serialize(listing(board)));
    });
    router.add("POST", "/v1/faults",
               [&board](http::Request request) -> FaultAnswer { co_return begin_fault(board, request); });
    router.add("POST", "/v1/scenarios",
               [&board](http::Request request) -> FaultAnswer { co_return play_scenario(board, request); });
    router.add("DELETE", "/v1/faults/{id}",
               [&board](http::Request request) -> FaultAnswer { co_return end_fault(board, request); });
    router.add("DELETE", "/v1/faults", [&board](http::Request) -> FaultAnswer {
        board.clear_all();
        co_return no_content();
    });
}

FaultService::FaultService(asio::any_io_executor executor, Equipment& equipment)
    : board_(executor, equipment), server_(executor, router_) {
    add_fault_routes(router_, board_);
}

Result<std::string> FaultService::listen(const std::string& address) {
    if (!address.starts_with("unix:"))
        if (auto loopback = parse_endpoint("tcp://" + address); !loopback)
            return std::unexpected(std::move(loopback.error()));
    const mode_t mask = ::umask(0177);  // a socket for its owner alone
    auto listening = server_.listen(address);
    ::umask(mask);
    if (!listening) return std::unexpected(std::move(listening.error()));
    if (!address.ends_with(":0")) return address;
    return address.substr(0, address.size() - 1) + std::to_string(server_.port());
}

asio::awaitable<void> FaultService::stop() {
    board_.stop();
    co_await server_.stop(std::chrono::milliseconds(500));
}

}  // namespace memtide::emul
