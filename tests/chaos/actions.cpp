#include "tests/chaos/actions.h"

#include <array>
#include <chrono>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/chaos/checks.h"

namespace memtide::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kHostFaults{"reboot",          "agent-dies",          "silence",
                                 "refuses-online",  "refuses-offline",     "late-reports",
                                 "lies-about-size", "reports-for-another", "link-down",
                                 "refuses-capacity"};

class Chaos {
  public:
    explicit Chaos(World& world) : world_(world), random_(world.options().seed) {}

    std::map<std::string, int> run() {
        const auto end = Clock::now() + world_.options().time;
        while (Clock::now() < end && world_.mistakes().empty()) {
            take_action();
            std::this_thread::sleep_for(std::chrono::milliseconds(draw(0, 12)));
        }
        return taken_;
    }

  private:
    struct Action {
        int weight;
        const char* name;
        void (Chaos::*run)();
    };

    int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
    bool one_in(int n) { return draw(1, n) == 1; }
    std::string any_host() { return fmt::format("host{}", draw(0, world_.options().hosts - 1)); }
    std::string any_switch() { return fmt::format("switch{}", draw(0, world_.options().switches - 1)); }
    std::string any_device() {
        return fmt::format("dev-{}-{}", draw(0, world_.options().switches - 1), draw(0, kChaosDevices - 1));
    }

    void take_action() {
        static constexpr std::array kActions{
            Action{450, "compose", &Chaos::compose}, Action{330, "release", &Chaos::release},
            Action{60, "resize", &Chaos::resize}, Action{20, "renew", &Chaos::renew},
            Action{90, "host-fault", &Chaos::host_fault}, Action{12, "power-off", &Chaos::power_off},
            Action{18, "link-down", &Chaos::link_down}, Action{12, "erase-fails", &Chaos::erase_fails},
            Action{12, "sick-device", &Chaos::sick_device}, Action{12, "kill-manager", &Chaos::kill},
            Action{4, "restart-manager", &Chaos::restart}, Action{60, "look", &Chaos::look},
            // From here on only of a world that is secured.
            Action{30, "wrong-certificate", &Chaos::wrong_certificate},
            Action{12, "renew-agent", &Chaos::renew_agent}, Action{4, "renew-server", &Chaos::renew_server}};
        constexpr std::size_t kOfSecured = 3;
        const std::span<const Action> actions =
            std::span(kActions).first(kActions.size() - (world_.secured() == nullptr ? kOfSecured : 0));
        int total = 0;
        for (const Action& action : actions) total += action.weight;
        int drawn = draw(1, total);
        for (const Action& action : actions) {
            drawn -= action.weight;
            if (drawn > 0) continue;
            ++taken_[action.name];
            (this->*action.run)();
            return;
        }
    }

    void compose() {
        const std::string host = any_host();
        // Of many sizes, so that what is free on a device is in pieces.
        const int granules = one_in(2) ? draw(1, 6) : 1;
        std::string more;
        if (one_in(6)) more += fmt::format(R"(, "ttl": {})", draw(1, 3));
        if (one_in(3)) more += fmt::format(R"(, "tenant": "{}")", one_in(2) ? "red" : "blue");
        if (granules > 1) more += any_placement(granules);
        world_.compose(host, granules, more);
    }
    std::string any_placement(int granules) {
        static constexpr std::array kPolicies{
            R"("policy": "pack")", R"("policy": "spread", "max_devices": 2)", R"("policy": "bandwidth")"};
        const int which = draw(0, static_cast<int>(kPolicies.size()) - (granules % 2 == 0 ? 1 : 2));
        return fmt::format(R"(, "placement": {{{}, "reprovide": {}}}{})",
                           kPolicies[static_cast<std::size_t>(which)], one_in(2),
                           which == 2 ? R"(, "ways": 2)" : "");
    }
    void resize() { change(fmt::format(R"({{"size": "{}MiB"}})", 256 * draw(1, 5))); }
    void renew() { change(fmt::format(R"({{"ttl": {}}})", draw(1, 5))); }
    void change(const std::string& body) {
        const std::vector<std::string> living = world_.living();
        const int which = draw(0, 1'000'000);
        if (!living.empty()) world_.change(living[static_cast<std::size_t>(which) % living.size()], body);
    }
    void release() {
        const std::vector<std::string> living = world_.living();
        const int which = draw(0, 1'000'000);
        const bool force = one_in(5);
        if (!living.empty()) world_.release(living[static_cast<std::size_t>(which) % living.size()], force);
    }
    void host_fault() {
        const std::string host = any_host();
        const int fault = draw(0, static_cast<int>(kHostFaults.size()) - 1);
        world_.control("PUT", fmt::format("/v1/hosts/{}/faults/{}?for={}ms", host,
                                          kHostFaults[static_cast<std::size_t>(fault)], draw(20, 1500)));
    }
    void power_off() {
        world_.control("PUT",
                       fmt::format("/v1/switches/{}/faults/power-off?for={}ms", any_switch(), draw(20, 800)));
    }
    void link_down() {
        world_.control("PUT",
                       fmt::format("/v1/devices/{}/faults/link-down?for={}ms", any_device(), draw(20, 1200)));
    }
    void erase_fails() {
        world_.control(
            "PUT", fmt::format("/v1/devices/{}/faults/erase-fails?for={}ms", any_device(), draw(20, 800)));
    }
    void sick_device() {
        world_.control("PUT", fmt::format("/v1/devices/{}/faults/{}?for={}ms", any_device(),
                                          one_in(2) ? "failing" : "worn", draw(20, 800)));
    }
    void kill() {
        world_.kill_manager();
        std::this_thread::sleep_for(std::chrono::milliseconds(draw(0, 300)));
        world_.start_manager();
        if (one_in(2)) world_.repeat_unanswered();
    }
    void restart() { world_.restart_manager_politely(); }
    void wrong_certificate() {
        world_.control(
            "PUT", fmt::format("/v1/hosts/{}/faults/wrong-certificate?for={}ms", any_host(), draw(20, 1500)));
    }
    void renew_agent() {
        const std::string host = any_host();
        world_.renew_agent_certificate(host, one_in(2));
    }
    void renew_server() { world_.renew_server_certificate(); }
    void look() { check_sums(world_); }

    World& world_;
    std::mt19937_64 random_;
    std::map<std::string, int> taken_;
};

}  // namespace

std::map<std::string, int> run_chaos(World& world) { return Chaos(world).run(); }

}  // namespace memtide::test
