#include "tests/tiering-agent/hotplug_qemu/wishing_manager.h"

#include <chrono>
#include <ctime>
#include <stdexcept>
#include <thread>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

namespace memtide::agent {

namespace asio = boost::asio;
namespace json = boost::json;
using namespace std::chrono_literals;

WishingManager::WishingManager(std::string host) : host_(std::move(host)) {
    router_.add("GET", "/v1/hosts/{host}/desired", [this](http::Request r) { return desired(std::move(r)); });
    router_.add("PUT", "/v1/hosts/{host}/observed",
                [this](http::Request r) { return observed(std::move(r)); });
    background_.call([this] {
        server_ = std::make_unique<http::Server>(background_.executor(), router_);
        if (!server_->listen("127.0.0.1:0")) throw std::runtime_error("cannot listen");
        return 0;
    });
}

WishingManager::~WishingManager() {
    background_.call([this] {
        server_.reset();
        return 0;
    });
    background_.stop();
}

std::string WishingManager::address() const { return fmt::format("127.0.0.1:{}", server_->port()); }

void WishingManager::wish(const std::string& id, json::object composition) {
    const std::lock_guard lock(mutex_);
    wishes_[id] = std::move(composition);
    ++revision_;
}

void WishingManager::wish_online(const std::string& id, const std::vector<std::string>& serials) {
    wish(id, {{"composition", id},
              {"region", 0},
              {"serials", json::array(serials.begin(), serials.end())},
              {"size", serials.size() * (256U << 20)},
              {"desired", "online"},
              {"force", false},
              {"drain_deadline", nullptr}});
}

void WishingManager::wish_offline(const std::string& id, const std::vector<std::string>& serials,
                                  std::chrono::seconds until_deadline) {
    const std::time_t deadline =
        std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + until_deadline);
    wish(id, {{"composition", id},
              {"region", 0},
              {"serials", json::array(serials.begin(), serials.end())},
              {"size", serials.size() * (256U << 20)},
              {"desired", "offline"},
              {"force", false},
              {"drain_deadline", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(deadline))}});
}

void WishingManager::forget(const std::string& id) {
    const std::lock_guard lock(mutex_);
    wishes_.erase(id);
    ++revision_;
}

bool WishingManager::reports(const std::string& id, const std::function<bool(const json::object&)>& matches) {
    const auto deadline = std::chrono::steady_clock::now() + 2min;
    for (; std::chrono::steady_clock::now() < deadline; std::this_thread::sleep_for(10ms)) {
        const std::lock_guard lock(mutex_);
        if (report_.empty() || report_.at("revision_seen").to_number<std::uint64_t>() != revision_) continue;
        for (const json::value& composition : report_.at("regions").as_array())
            if (composition.at("composition").as_string() == id && matches(composition.as_object()))
                return true;
    }
    return false;
}

bool WishingManager::reports(const std::string& id, std::string_view state) {
    return reports(
        id, [&](const json::object& composition) { return composition.at("state").as_string() == state; });
}

std::string WishingManager::warnings() {
    const std::lock_guard lock(mutex_);
    std::string codes;
    if (report_.empty()) return codes;
    for (const json::value& warning : report_.at("warnings").as_array())
        codes += std::string(warning.at("code").as_string()) + " ";
    return codes;
}

std::string WishingManager::last_report() {
    const std::lock_guard lock(mutex_);
    return json::serialize(report_);
}

asio::awaitable<http::Response> WishingManager::desired(http::Request request) {
    const auto after = request.query_value("after");
    asio::steady_timer timer(co_await asio::this_coro::executor);
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (!after || *after != std::to_string(revision_) ||
                std::chrono::steady_clock::now() > deadline) {
                json::array regions;
                for (const auto& [id, wish] : wishes_) regions.push_back(wish);
                co_return http::json_response(
                    200, json::serialize(json::object{
                             {"revision", revision_}, {"host", host_}, {"regions", std::move(regions)}}));
            }
        }
        timer.expires_after(5ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
}

asio::awaitable<http::Response> WishingManager::observed(http::Request request) {
    const std::lock_guard lock(mutex_);
    report_ = json::parse(request.body).as_object();
    co_return http::Response{.status = 204, .headers = {}, .body = {}, .stream = {}};
}

}  // namespace memtide::agent
