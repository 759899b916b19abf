#include "cli/client/manager_client.h"

#include <chrono>
#include <exception>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <fmt/format.h>

#include "cli/client/event_stream.h"
#include "common/http/client.h"
#include "common/json/member.h"
#include "common/json/write.h"

namespace memtide::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

// Long polls are answered within their own timeout; this only bounds a manager that hangs.
constexpr std::chrono::milliseconds kExchangeTimeout{90'000};

// Runs one coroutine to its end on this thread.
template <typename T>
T run(asio::io_context& context, asio::awaitable<T> work) {
    std::optional<T> result;
    asio::co_spawn(context, std::move(work), [&](const std::exception_ptr& failure, T value) {
        if (failure) std::rethrow_exception(failure);
        result = std::move(value);
    });
    context.run();
    return *std::move(result);
}

// How many pages a list may have: far more than any rack fills.
constexpr int kMostPages = 10'000;

bool is_list(const json::value& answer) { return memtide::json::find_list(answer, "items") != nullptr; }

std::string next_of(const json::value& page) {
    const auto* const next = memtide::json::find_text(page, "next");
    return next == nullptr ? "" : std::string(*next);
}

bool is_event_stream(const http::ClientResponse& response) {
    const auto type = response.headers.find("Content-Type");
    return response.status == 200 && type != response.headers.end() &&
           type->second.starts_with("text/event-stream");
}

}  // namespace

Answer<json::value> ManagerClient::exchange(http::ClientRequest request, IsResource is_resource) const {
    asio::io_context context;
    http::Client client(context.get_executor(), url_, credentials_);
    request.timeout = kExchangeTimeout;
    const std::string asked = url_ + request.target;
    const auto response = run(context, client.send(std::move(request)));
    if (!response) return std::unexpected(unreachable(url_, response.error()));
    if (response->status >= 400) return std::unexpected(refusal(asked, *response));
    // Only these say something about a resource: what a redirect or a 204 stands for is another server's.
    const bool meant = response->status == 200 || response->status == 201 || response->status == 202;
    boost::system::error_code failed;
    json::value answer = json::parse(response->body, failed);
    if (!meant || failed || !is_resource(answer)) return std::unexpected(unexpected_answer(asked, *response));
    return answer;
}

Answer<json::value> ManagerClient::get(const std::string& target, IsResource is_resource) const {
    http::ClientRequest request;
    request.target = target;
    return exchange(std::move(request), is_resource);
}

Answer<json::array> ManagerClient::list(const std::string& target, IsResource is_item) const {
    json::array items;
    std::set<std::string> seen;
    const std::string separator = target.contains('?') ? "&" : "?";
    for (std::string page; seen.insert(page).second && seen.size() <= kMostPages;) {
        const std::string asked =
            page.empty() ? target : target + separator + "page=" + http::percent_encode(page);
        auto answer = get(asked, is_list);
        if (!answer) return std::unexpected(answer.error());
        for (json::value& item : answer->at("items").as_array()) {
            if (!is_item(item))
                return std::unexpected(unexpected_answer(url_ + asked, "an item is not what was asked for"));
            items.push_back(std::move(item));
        }
        page = next_of(*answer);
        if (page.empty()) return items;
    }
    return std::unexpected(unexpected_answer(url_ + target, "its pages have no end"));
}

Answer<json::value> ManagerClient::post(const std::string& target, const json::value& body,
                                        const std::string& idempotency_key, IsResource is_resource) const {
    http::ClientRequest request;
    request.method = "POST";
    request.target = target;
    request.headers["Content-Type"] = "application/json";
    if (!idempotency_key.empty()) request.headers["Idempotency-Key"] = idempotency_key;
    request.body = memtide::json::write(body);
    constexpr int kAttempts = 3;
    for (int attempt = 1;; ++attempt) {
        auto answer = exchange(request, is_resource);
        if (answer || answer.error().kind != ErrorCode::kUnavailable || attempt == kAttempts) return answer;
        std::this_thread::sleep_for(std::chrono::milliseconds(200) * attempt);
    }
}

Answer<json::value> ManagerClient::patch(const std::string& target, const json::value& body,
                                         IsResource is_resource) const {
    http::ClientRequest request;
    request.method = "PATCH";
    request.target = target;
    request.headers["Content-Type"] = "application/json";
    request.body = json::serialize(body);
    return exchange(std::move(request), is_resource);
}

Answer<json::value> ManagerClient::remove(const std::string& target, IsResource is_resource) const {
    http::ClientRequest request;
    request.method = "DELETE";
    request.target = target;
    return exchange(std::move(request), is_resource);
}

namespace {

std::string events_target(std::uint64_t last_id, bool follow, const EventFilter& filter) {
    std::string target = fmt::format("/v1/events?after={}&follow={}", last_id, follow);
    const auto add = [&](std::string_view name, const std::optional<std::string>& value) {
        if (value) target += fmt::format("&{}={}", name, http::percent_encode(*value));
    };
    add("type", filter.type);
    add("composition", filter.composition);
    add("host", filter.host);
    return target;
}

}  // namespace

Answer<void> ManagerClient::events(std::uint64_t& last_id, bool follow, const EventFilter& filter,
                                   const std::function<bool(const json::value&)>& on_event) const {
    asio::io_context context;
    http::Client client(context.get_executor(), url_, credentials_);
    http::ClientRequest request;
    request.target = events_target(last_id, follow, filter);
    request.headers["Accept"] = "text/event-stream";
    const std::string asked = url_ + request.target;
    EventStream stream(on_event, last_id);
    bool heard = false;
    const auto response = run(context, client.stream(std::move(request), [&](std::string_view chunk) {
        heard = true;
        return stream.take(chunk);
    }));
    if (!stream.nonsense().empty()) return std::unexpected(unexpected_answer(asked, stream.nonsense()));
    if (!response) {
        if (follow && heard) return {};
        return std::unexpected(unreachable(url_, response.error()));
    }
    if (response->status >= 400) return std::unexpected(refusal(asked, *response));
    if (!is_event_stream(*response)) return std::unexpected(unexpected_answer(asked, *response));
    return {};
}

std::string new_idempotency_key() {
    std::random_device random;
    return fmt::format("memtide-{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace memtide::cli
