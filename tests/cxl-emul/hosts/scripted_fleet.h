#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gtest/gtest.h>

#include "common/http/server.h"
#include "cxl-emul/hosts/fleet.h"
#include "tests/cxl-emul/switch/manager.h"
#include "tests/cxl-emul/switch/test_switch.h"
#include "tests/integration/background.h"
#include "tests/integration/eventually.h"

// A whole fleet, with a manager on either side of it that says what the test wants it to say.
namespace memtide::emul::test {

using namespace std::chrono_literals;
using memtide::test::eventually;
namespace json = boost::json;

// The agents' side of a manager. Everything runs on one executor.
class ScriptedManager {
  public:
    ScriptedManager(boost::asio::any_io_executor executor, const std::string& address)
        : executor_(std::move(executor)), server_(executor_, routes(), {}) {
        if (!server_.listen(address)) throw std::runtime_error("cannot listen on " + address);
    }

    // For every host, from its next poll on.
    void want(std::string compositions) {
        ++revision_;
        compositions_ = std::move(compositions);
    }
    // The last report for a host; null when there is none.
    json::value reported(const std::string& host) const {
        const auto found = reports_.find(host);
        return found == reports_.end() ? json::value() : found->second;
    }
    std::size_t reports(const std::string& host) { return counts_[host]; }
    std::string state(const std::string& host) const {
        const json::value report = reported(host);
        if (report.is_null() || report.at("regions").as_array().empty()) return "";
        return std::string(report.at("regions").at(0).at("state").as_string());
    }
    boost::asio::awaitable<void> stop() { return server_.stop(100ms); }

  private:
    using Answer = boost::asio::awaitable<http::Response>;
    const http::Router& routes() {
        router_.add("GET", "/v1/hosts/{host}/desired", [this](http::Request request) -> Answer {
            const auto after = request.query_value("after");
            // A short long poll: the test is not to wait for it.
            if (after && *after == std::to_string(revision_)) {
                boost::asio::steady_timer timer(executor_, 10ms);
                co_await timer.async_wait(boost::asio::use_awaitable);
            }
            co_return http::json_response(200, R"({"revision": )" + std::to_string(revision_) +
                                                   R"(, "host": "x", "regions": )" + compositions_ + "}");
        });
        router_.add("PUT", "/v1/hosts/{host}/observed", [this](http::Request request) -> Answer {
            const std::string host = request.path_parameters.at("host");
            reports_[host] = json::parse(request.body);
            ++counts_[host];
            http::Response response;
            response.status = 204;
            co_return response;
        });
        return router_;
    }

    boost::asio::any_io_executor executor_;
    http::Router router_;
    int revision_ = 1;
    std::string compositions_ = "[]";
    std::map<std::string, json::value> reports_;
    std::map<std::string, std::size_t> counts_;
    http::Server server_;
};

inline constexpr std::string_view kWantOnline =
    R"([{"composition": "c-1", "region": 0, "serials": ["0x4d54100000000001"], "size": 268435456, "desired": "online"}])";
inline constexpr std::string_view kWantOffline =
    R"([{"composition": "c-1", "region": 0, "serials": ["0x4d54100000000001"], "size": 268435456, "desired": "offline"}])";

// Two hosts at one switch; port 0 is host0's, port 2 the first device's.
class ScriptedFleet : public testing::Test {
  protected:
    explicit ScriptedFleet(DeviceKind kind) {
        background_.call([&] {
            manager_.emplace(background_.executor(), "unix:" + folder_.path() + "/manager.sock");
            FleetOptions options;
            options.count = 2;
            options.kind = kind;
            options.listen = "unix://" + folder_.path();
            options.manager = "unix:" + folder_.path() + "/manager.sock";
            auto fleet = Fleet::open(background_.executor(), options);
            if (!fleet) throw std::runtime_error(fleet.error().message);
            fleet_ = *std::move(fleet);
            fleet_->start();
            return 0;
        });
    }
    ~ScriptedFleet() override {
        background_.call([&] {
            fleet_->stop();
            return 0;
        });
        background_.stop();
        fleet_.reset();
        manager_.reset();
    }

    Manager connect() { return Manager("unix://" + folder_.path() + "/switch0.sock"); }
    FleetCounts counts() {
        return background_.call([&] { return fleet_->counts(); });
    }
    std::uint64_t violations() {
        return background_.call([&] { return fleet_->ledger().violation_count(); });
    }
    void want(std::string_view compositions) {
        background_.call([&] {
            manager_->want(std::string(compositions));
            return 0;
        });
    }
    bool reports(const std::string& host, const std::string& state) {
        return eventually([&] { return background_.call([&] { return manager_->state(host) == state; }); });
    }
    Result<> begin(HostFault fault) {
        return background_.call([&] { return fleet_->begin_fault(HostId("host0"), fault, std::nullopt); });
    }
    Result<> end(HostFault fault) {
        return background_.call([&] { return fleet_->end_fault(HostId("host0"), fault); });
    }

    TemporaryFolder folder_;
    memtide::test::Background background_;
    std::optional<ScriptedManager> manager_;
    std::unique_ptr<Fleet> fleet_;
};

}  // namespace memtide::emul::test
