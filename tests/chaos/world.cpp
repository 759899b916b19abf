#include "tests/chaos/world.h"

#include <cstdio>
#include <thread>
#include <utility>

#include <boost/json/parse.hpp>
#include <fmt/format.h>

namespace memtide::test {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr int kLds = 16;
constexpr std::uint64_t kGranule = 256ULL << 20;

// Short enough that many things happen in a minute.
constexpr const char* kTiming =
    "timing: {switch_poll: 200ms, health_poll: 100ms, command_timeout: 1s, connect_timeout: 1s, retry_max: "
    "200ms, "
    "gone_after: 300ms, quarantine_retry: 500ms, drain_deadline: 2s, shutdown_grace: 1s}\n"
    "flapping: {limit: 4, window: 2s, hold: 300ms, hold_max: 1s}\n"
    "tenants: [{name: red, bytes: 4GiB, compositions: 10}, {name: blue}]\n";

}  // namespace

World::World(const ChaosOptions& options)
    : options_(options),
      secured_(options.secured ? std::make_unique<Secured>(folder_, options.hosts) : nullptr),
      rest_(secured_ ? secured_->url() : manager_url(folder_),
            secured_ ? secured_->client() : http::Credentials::none()),
      control_(fleet_control(folder_)) {
    FleetOptions fleet{.hosts = options.hosts,
                       .switches = options.switches,
                       .devices = kChaosDevices,
                       .options = {"--seed=" + std::to_string(options.seed), "--online-delay=exp:5ms",
                                   "--offline-delay=0ms..20ms", "--report-delay=0ms..5ms", "--bind-time=1ms",
                                   "--erase-time=2ms", "--kind=" + options.kind}};
    fleet_.emplace(start_fleet(folder_, secured_ ? secured_->fleet(std::move(fleet)) : fleet));
    start_manager();
}

std::uint64_t World::capacity() const {
    return kGranule * kLds * kChaosDevices * static_cast<std::uint64_t>(options_.switches);
}

void World::wrong(std::string what) {
    std::fprintf(stderr, "chaos: WRONG: %s\n", what.c_str());
    mistakes_.push_back(std::move(what));
}

// --- Clients ---

RestAnswer World::ask(const std::string& method, const std::string& target) {
    return rest_.call(method, target, {}, {}, 5s);
}

RestAnswer World::ask_json(const std::string& method, const std::string& target, const std::string& body) {
    return rest_.send_json(method, target, body);
}

bool World::try_compose(const Unanswered& request) {
    http::Headers headers;
    headers["Idempotency-Key"] = request.key;
    const RestAnswer answer = rest_.send_json("POST", "/v1/compositions", request.body, std::move(headers));
    if (answer.status == 202) {
        acknowledged_[text(answer.json, "id")].host = request.host;
        return true;
    }
    // Refused for want of memory, vPPBs, a switch that is up, or by a quota.
    if (answer.status == 409 || answer.status == 422 || answer.status == 507) return true;
    if (answer.status != 0 && answer.status < 500)
        wrong(fmt::format("compose on {} is answered {}: {}", request.host, answer.status, answer.body));
    return false;
}

void World::compose(std::string host, int granules, const std::string& more) {
    Unanswered request;
    request.key = fmt::format("chaos-{}-{}", options_.seed, ++keys_);
    request.body = fmt::format(R"({{"host": "{}", "size": "{}MiB"{}}})", host, 256 * granules, more);
    request.host = std::move(host);
    if (!try_compose(request)) unanswered_.push_back(std::move(request));
}

void World::change(const std::string& id, const std::string& body) {
    const RestAnswer answer = rest_.send_json("PATCH", "/v1/compositions/" + id, body);
    if (answer.status == 404) wrong("an acknowledged composition is not known: " + id);
    const bool refused = answer.status == 409 || answer.status == 422 || answer.status == 507;
    if (answer.status != 0 && answer.status != 202 && !refused && answer.status < 500)
        wrong(fmt::format("PATCH {} of {} is answered {}: {}", body, id, answer.status, answer.body));
}

void World::repeat_unanswered() {
    std::vector<Unanswered> again = std::exchange(unanswered_, {});
    for (Unanswered& request : again)
        if (!try_compose(request)) unanswered_.push_back(std::move(request));
}

void World::release(const std::string& id, bool force) {
    // Counts as forced from now on: it may be carried out and its answer lost.
    if (force) acknowledged_[id].forced = true;
    const RestAnswer answer = ask("DELETE", "/v1/compositions/" + id + (force ? "?force=true" : ""));
    if (answer.status == 202) acknowledged_[id].release_acknowledged = true;
    if (answer.status == 409 && answer.code() == "composition-ended") ended(id);
    if (answer.status == 404) wrong("an acknowledged composition is not known: " + id);
}

std::vector<std::string> World::living() const {
    std::vector<std::string> ids;
    for (const auto& [id, one] : acknowledged_)
        if (!ended_.contains(id) && !one.release_acknowledged) ids.push_back(id);
    return ids;
}

std::vector<json::value> World::compositions() {
    std::vector<json::value> all;
    std::string page;
    do {
        const RestAnswer answer = ask("GET", "/v1/compositions?limit=500" + page);
        if (answer.status != 200) {
            wrong(fmt::format("the list of compositions is answered {}: {}", answer.status, answer.body));
            return all;
        }
        for (const json::value& item : answer.json.at("items").as_array()) all.push_back(item);
        const std::string next = text(answer.json, "next");
        page = next.empty() ? "" : "&page=" + next;
    } while (!page.empty());
    return all;
}

std::vector<json::value> World::events() {
    std::string stream;
    rest_.stream("/v1/events?after=0&follow=false", {}, [&](std::string_view chunk) {
        stream += chunk;
        return true;
    });
    std::vector<json::value> all;
    constexpr std::string_view kData = "data: ";
    for (std::size_t at = stream.find(kData); at != std::string::npos; at = stream.find(kData, at)) {
        at += kData.size();
        const std::size_t end = stream.find('\n', at);
        all.push_back(json::parse(stream.substr(at, end - at)));
    }
    return all;
}

// --- Disasters ---

void World::control(const std::string& method, const std::string& target) {
    const RestAnswer answer = control_.call(method, target);
    // 409: a switch that is off cannot be switched off.
    if (answer.status != 204 && answer.status != 409)
        wrong(fmt::format("the fleet answers {} to {}: {}", answer.status, target, answer.body));
}

json::value World::fleet(const std::string& target) { return control_.get(target).json; }

void World::start_manager() {
    ++manager_starts_;
    manager_.emplace(start_fleet_manager(folder_, kTiming));
}

void World::renew_agent_certificate(const std::string& host, bool revokes) {
    if (revokes) secured_->revoke_agent(host);
    secured_->renew_agent(host);
}

void World::kill_manager() {
    if (!manager_runs()) wrong("the manager had ended by itself: " + manager_->output());
    manager_->kill();
}

void World::restart_manager_politely() {
    if (!manager_runs()) wrong("the manager had ended by itself: " + manager_->output());
    const process::Exit exit = manager_->terminate();
    if (!exit.succeeded()) wrong("the manager was told to stop and " + exit.describe());
    start_manager();
}

std::string World::logs() const {
    std::string all = "--- fleet\n" + fleet_->output() + "--- manager\n" + manager_->output();
    constexpr std::size_t kMost = 20'000;
    return all.size() > kMost ? all.substr(all.size() - kMost) : all;
}

}  // namespace memtide::test
