#include "tests/integration/fake_agent.h"

#include <chrono>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>

#include "common/http/client.h"

namespace memtide::test {

namespace asio = boost::asio;
namespace json = boost::json;

// Kept by its two coroutines: one polls, one reports whenever there is something new.
struct FakeAgent::State : std::enable_shared_from_this<State> {
    State(const asio::any_io_executor& the_executor, const std::string& base_url, std::string the_host,
          Behaviour the_behaviour, const std::shared_ptr<http::Credentials>& credentials)
        : executor(the_executor),
          host(std::move(the_host)),
          behaviour(std::move(the_behaviour)),
          polling(executor, base_url, credentials),
          reporting(executor, base_url, credentials),
          changed(executor) {}

    asio::any_io_executor executor;
    std::string host;
    Behaviour behaviour;
    http::Client polling;
    http::Client reporting;
    asio::steady_timer changed;  // cancelled when `dirty` is set
    bool dirty = false;
    bool stopped = false;
    json::value desired;

    void touch() {
        dirty = true;
        changed.cancel();
    }

    asio::awaitable<void> pause(std::chrono::milliseconds duration) {
        changed.expires_after(duration);
        boost::system::error_code cancelled;
        co_await changed.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }

    asio::awaitable<void> poll(std::shared_ptr<State>) {
        std::optional<std::uint64_t> seen;
        while (!stopped) {
            http::ClientRequest request;
            request.target = fmt::format("/v1/hosts/{}/desired?timeout=5s", host);
            if (seen) request.target += fmt::format("&after={}", *seen);
            const auto answer = co_await polling.send(std::move(request));
            if (stopped) co_return;
            boost::system::error_code not_json;
            json::value now = answer ? json::parse(answer->body, not_json) : json::value();
            if (!answer || answer->status != 200 || not_json) {
                // A manager that was away may have forgotten the last report.
                seen.reset();
                asio::steady_timer timer(executor, std::chrono::milliseconds(20));
                co_await timer.async_wait(asio::use_awaitable);
                continue;
            }
            const std::uint64_t revision = now.at("revision").to_number<std::uint64_t>();
            if (seen == revision) continue;
            seen = revision;
            desired = std::move(now);
            touch();
        }
    }

    asio::awaitable<void> report(std::shared_ptr<State>) {
        while (!stopped) {
            if (!dirty) co_await pause(std::chrono::hours(1));
            if (stopped || !dirty) continue;
            dirty = false;
            http::ClientRequest request;
            request.method = "PUT";
            request.target = fmt::format("/v1/hosts/{}/observed", host);
            request.headers["Content-Type"] = "application/json";
            request.body = json::serialize(observed());
            const auto answer = co_await reporting.send(std::move(request));
            if (answer && answer->status == 204) continue;
            asio::steady_timer timer(executor, std::chrono::milliseconds(20));
            co_await timer.async_wait(asio::use_awaitable);
            dirty = true;
        }
    }

    json::object observed() {
        json::array regions;
        json::array memdevs;
        for (const json::value& item : desired.at("regions").as_array()) {
            std::optional<json::object> seen = behaviour(item.as_object());
            if (!seen) continue;
            (*seen)["composition"] = item.at("composition");
            (*seen)["region"] = item.at("region");
            (*seen)["serials"] = item.at("serials");
            const json::array& serials = item.at("serials").as_array();
            for (const json::value& serial : serials) {
                if (seen->at("state") == "absent") continue;
                json::object memdev;
                memdev["name"] = fmt::format("mem{}", memdevs.size());
                memdev["serial"] = serial;
                memdev["size"] = item.at("size").to_number<std::uint64_t>() / serials.size();
                memdevs.push_back(std::move(memdev));
            }
            regions.push_back(*std::move(seen));
        }
        json::object result;
        result["agent_version"] = "fake";
        result["boot_id"] = "boot-of-" + host;
        result["revision_seen"] = desired.at("revision");
        result["memdevs"] = std::move(memdevs);
        result["regions"] = std::move(regions);
        result["warnings"] = json::array();
        return result;
    }
};

FakeAgent::FakeAgent(asio::any_io_executor executor, std::string base_url, std::string host,
                     Behaviour behaviour, std::shared_ptr<http::Credentials> credentials)
    : state_(
          std::make_shared<State>(executor, base_url, std::move(host), std::move(behaviour), credentials)) {
    asio::co_spawn(executor, state_->poll(state_), asio::detached);
    asio::co_spawn(executor, state_->report(state_), asio::detached);
}

FakeAgent::~FakeAgent() {
    asio::post(state_->executor, [state = state_] {
        state->stopped = true;
        state->changed.cancel();
    });
}

void FakeAgent::behave(Behaviour behaviour) {
    asio::post(state_->executor, [state = state_, next = std::move(behaviour)]() mutable {
        state->behaviour = std::move(next);
        if (!state->desired.is_null()) state->touch();
    });
}

namespace {

json::object online(const json::object& desired) {
    json::object result;
    result["state"] = "online";
    result["node"] = 1;
    result["name"] = "region0";
    result["online_bytes"] = desired.at("size");
    return result;
}

json::object in_state(std::string_view state) {
    json::object result;
    result["state"] = state;
    return result;
}

bool wants_online(const json::object& desired) { return desired.at("desired") == "online"; }

}  // namespace

FakeAgent::Behaviour FakeAgent::obedient() {
    return [](const json::object& desired) -> std::optional<json::object> {
        return wants_online(desired) ? online(desired) : in_state("offline");
    };
}

FakeAgent::Behaviour FakeAgent::idle() {
    return [](const json::object&) -> std::optional<json::object> { return in_state("found"); };
}

FakeAgent::Behaviour FakeAgent::held_by(int pid, std::string command) {
    return [pid, command = std::move(command)](const json::object& desired) -> std::optional<json::object> {
        json::object result = online(desired);
        if (wants_online(desired)) return result;
        json::object holder;
        holder["block"] = "memory32";
        holder["pid"] = pid;
        holder["command"] = command;
        holder["bytes"] = 4096;
        result["state"] = "draining";
        result["holders"] = json::array{std::move(holder)};
        return result;
    };
}

FakeAgent::Behaviour FakeAgent::blind() {
    return [](const json::object&) -> std::optional<json::object> { return in_state("absent"); };
}

}  // namespace memtide::test
