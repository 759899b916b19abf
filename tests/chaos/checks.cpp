#include "tests/chaos/checks.h"

#include <array>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace memtide::test {

namespace json = boost::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kPatience{90};

std::uint64_t number(const json::value& object, const char* member) {
    return object.at(member).to_number<std::uint64_t>();
}

bool is_end(const std::string& state) { return state == "Released" || state == "Failed"; }

void check_sum(World& world, const json::value& part, const std::string& what) {
    const std::uint64_t sum = number(part, "free") + number(part, "composed") + number(part, "quarantined") +
                              number(part, "foreign");
    if (sum != number(part, "capacity"))
        world.wrong(fmt::format("{} does not add up: {}", what, json::serialize(part)));
}

// Everything has ended and is free, every switch answers, and the fleet has nothing either.
bool is_settled(World& world) {
    for (const json::value& one : world.compositions())
        if (!is_end(text(one, "state"))) return false;
    const RestAnswer pool = world.ask("GET", "/v1/pool");
    if (pool.status != 200 || number(pool.json, "capacity") != world.capacity()) return false;
    if (number(pool.json, "free") != world.capacity() || number(pool.json, "stranded") != 0) return false;
    const json::value fleet = world.fleet("/v1/status");
    return number(fleet, "bound") == 0 && number(fleet, "switches_off") == 0;
}

void release_all(World& world) {
    for (const json::value& one : world.compositions())
        if (!is_end(text(one, "state"))) world.ask("DELETE", "/v1/compositions/" + text(one, "id"));
}

void check_hosts(World& world, const std::vector<json::value>& compositions) {
    const json::value seen = world.fleet("/v1/violations");
    for (const json::value& one : seen.at("violations").as_array())
        world.wrong("seen by a host: " + json::serialize(one));
    std::set<std::pair<std::string, std::string>> forced;
    for (const json::value& one : compositions)
        for (const json::value& part : one.at("parts").as_array())
            if (one.at("forced").as_bool()) forced.emplace(text(one, "host"), text(part, "serial"));
    for (const json::value& one : seen.at("surprise_removals").as_array())
        if (!forced.contains({text(one, "host"), text(one, "serial")}))
            world.wrong("unbound under an online host, and nobody forced it: " + json::serialize(one));
}

void check_acknowledged(World& world, const std::vector<json::value>& compositions,
                        const std::vector<json::value>& events) {
    std::map<std::string, std::string> states;
    for (const json::value& one : compositions) states[text(one, "id")] = text(one, "state");
    std::map<std::string, std::string> told;
    for (const json::value& one : events)
        if (text(one, "type") == "composition.state" && is_end(text(one, "state")))
            told[text(one, "composition")] = text(one, "state");
    for (const auto& [id, one] : world.acknowledged()) {
        if (!states.contains(id))
            world.wrong("acknowledged and lost: " + id);
        else if (!is_end(states[id]))
            world.wrong(fmt::format("composition {} has not ended: {}", id, states[id]));
        else if (told[id] != states[id])
            world.wrong(
                fmt::format("composition {} is {} and the events say \"{}\"", id, states[id], told[id]));
    }
    std::uint64_t last = 0;
    for (const json::value& one : events) {
        if (number(one, "id") <= last)
            world.wrong(fmt::format("event {} follows event {}", number(one, "id"), last));
        last = number(one, "id");
    }
}

}  // namespace

void check_sums(World& world) {
    const RestAnswer pool = world.ask("GET", "/v1/pool");
    if (pool.status != 200) return;
    check_sum(world, pool.json, "the pool");
    for (const json::value& device : pool.json.at("devices").as_array()) check_sum(world, device, "a device");
    if (number(pool.json, "capacity") > world.capacity())
        world.wrong(fmt::format("the pool has {} bytes, the devices {}", number(pool.json, "capacity"),
                                world.capacity()));
}

void heal_and_settle(World& world) {
    if (!world.manager_runs()) world.wrong("the manager had ended by itself");
    const auto deadline = Clock::now() + kPatience;
    world.repeat_unanswered();
    // What a switch does while it changes between on and off is asked for once more.
    while (Clock::now() < deadline) {
        world.control("DELETE", "/v1/faults");
        release_all(world);
        if (is_settled(world)) return;
        std::this_thread::sleep_for(100ms);
    }
    world.wrong("it does not settle: " + world.ask("GET", "/v1/pool").body);
    for (const json::value& one : world.compositions())
        if (!is_end(text(one, "state"))) world.wrong("stuck: " + json::serialize(one));
    world.wrong("the fleet: " + json::serialize(world.fleet("/v1/status")));
}

namespace {

std::uint64_t refused(World& world, const char* what) {
    return number(world.fleet("/v1/status").at("since_start"), what);
}

template <typename Holds>
bool within_patience(Holds holds) {
    const auto deadline = Clock::now() + kPatience;
    while (!holds()) {
        if (Clock::now() >= deadline) return false;
        std::this_thread::sleep_for(20ms);
    }
    return true;
}

// As an operator would try it out; the composition of a host that cannot take part waits for it.
void check_composes(World& world, const std::string& host) {
    const RestAnswer made = world.ask_json("POST", "/v1/compositions?wait=Online&timeout=30s",
                                           fmt::format(R"({{"host": "{}", "size": "256MiB"}})", host));
    if (made.status != 202 || text(made.json, "state") != "Online")
        world.wrong(fmt::format("compose on {} after all is answered {}: {}", host, made.status, made.body));
    else
        world.ask("DELETE", "/v1/compositions/" + text(made.json, "id"));
}

}  // namespace

void check_certificates(World& world) {
    const std::uint64_t before = refused(world, "refused_certificates");
    world.control("PUT", "/v1/hosts/host0/faults/wrong-certificate");
    if (!within_patience([&] { return refused(world, "refused_certificates") > before; }))
        world.wrong("host0 shows the certificate of host1 and is not refused");
    const auto is_audited = [&] {
        const std::string log = world.secured()->audit();
        for (std::size_t at = 0; (at = log.find("certificate host1\"", at)) != std::string::npos; ++at) {
            const std::string_view line = std::string_view(log).substr(at, log.find('\n', at) - at);
            if (line.contains("/v1/hosts/host0/") && line.contains("another host's")) return true;
        }
        return false;
    };
    if (!within_patience(is_audited)) world.wrong("the audit log does not tell of host0 as host1");
    world.control("DELETE", "/v1/hosts/host0/faults/wrong-certificate");
    check_composes(world, "host0");
    world.renew_agent_certificate("host1", true);
    world.renew_server_certificate();
    check_composes(world, "host1");
}

void check_end(World& world) {
    check_sums(world);
    const std::vector<json::value> compositions = world.compositions();
    check_hosts(world, compositions);
    check_acknowledged(world, compositions, world.events());
}

}  // namespace memtide::test
