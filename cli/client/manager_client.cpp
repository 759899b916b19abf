#include "cli/client/manager_client.h"

#include <exception>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "common/http/client.h"

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

Result<json::value> parse_body(const std::string& body) {
    if (body.empty()) return json::value(nullptr);
    boost::system::error_code failed;
    json::value value = json::parse(body, failed);
    if (failed) return fail(ErrorCode::kProtocol, "the answer is not JSON: " + failed.message());
    return value;
}

ErrorCode code_of_status(unsigned status) {
    if (status == 404) return ErrorCode::kNotFound;
    if (status == 409 || status == 412) return ErrorCode::kConflict;
    if (status == 503) return ErrorCode::kUnavailable;  // stopping, or too busy: worth another try
    return status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kInternal;
}

// RFC 9457: "detail" is for people, "code" is ours and stable.
Error refusal(unsigned status, const std::string& body) {
    std::string detail = fmt::format("the manager answered {}", status);
    const auto problem = parse_body(body);
    if (problem && problem->is_object()) {
        const json::object& members = problem->as_object();
        if (const auto* text = members.if_contains("detail"); text && text->is_string())
            detail = std::string(text->as_string());
        if (const auto* code = members.if_contains("code"); code && code->is_string())
            detail += fmt::format(" ({})", std::string_view(code->as_string()));
    }
    return {code_of_status(status), std::move(detail)};
}

// Cuts a text/event-stream into events and hands on the data of each (HTML Living Standard, 9.2.6).
class EventStream {
  public:
    explicit EventStream(const std::function<bool(const json::value&)>& on_event) : on_event_(on_event) {}

    bool take(std::string_view chunk) {
        buffer_ += chunk;
        std::size_t end = 0;
        while ((end = buffer_.find('\n')) != std::string::npos) {
            std::string line = buffer_.substr(0, end);
            buffer_.erase(0, end + 1);
            if (line.ends_with('\r')) line.pop_back();
            if (!take_line(line)) return false;
        }
        return true;
    }

  private:
    bool take_line(std::string_view line) {
        if (line.empty()) {
            const std::string data = std::exchange(data_, {});
            const auto value = parse_body(data);
            return data.empty() || !value || on_event_(*value);
        }
        if (line.starts_with("data:")) {
            line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
            data_ += data_.empty() ? std::string(line) : "\n" + std::string(line);
        }
        return true;
    }

    const std::function<bool(const json::value&)>& on_event_;
    std::string buffer_;
    std::string data_;
};

}  // namespace

Error ManagerClient::explain(Error error) const {
    if (error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout)
        error.message = fmt::format(
            "no answer from a fabric manager at {}: {}; is memtide-fabric-manager running there? "
            "(--url or $MEMTIDE_URL says where)",
            url_, error.message);
    return error;
}

Result<json::value> ManagerClient::exchange(std::string_view method, const std::string& target,
                                            http::Headers headers, std::string body) const {
    asio::io_context context;
    http::Client client(context.get_executor(), url_);
    http::ClientRequest request;
    request.method = method;
    request.target = target;
    request.headers = std::move(headers);
    request.body = std::move(body);
    request.timeout = kExchangeTimeout;
    const auto response = run(context, client.send(std::move(request)));
    if (!response) return std::unexpected(explain(response.error()));
    if (response->status >= 400) return std::unexpected(refusal(response->status, response->body));
    return parse_body(response->body);
}

Result<json::value> ManagerClient::get(const std::string& target) const {
    return exchange("GET", target, {}, {});
}

Result<json::array> ManagerClient::list(const std::string& target) const {
    json::array items;
    std::string page;
    do {
        const auto answer = get(target + (page.empty() ? "" : "?page=" + http::percent_encode(page)));
        if (!answer) return std::unexpected(answer.error());
        const auto* object = answer->if_object();
        const auto* part = object ? object->if_contains("items") : nullptr;
        if (!part || !part->is_array())
            return fail(ErrorCode::kProtocol, "the answer to " + target + " has no list of items");
        items.insert(items.end(), part->as_array().begin(), part->as_array().end());
        const auto* next = object->if_contains("next");
        page = next && next->is_string() ? std::string(next->as_string()) : "";
    } while (!page.empty());
    return items;
}

Result<json::value> ManagerClient::post(const std::string& target, const json::value& body,
                                        const std::string& idempotency_key) const {
    constexpr int kAttempts = 3;
    for (int attempt = 1;; ++attempt) {
        auto answer = exchange("POST", target,
                               {{"Content-Type", "application/json"}, {"Idempotency-Key", idempotency_key}},
                               json::serialize(body));
        if (answer || answer.error().code != ErrorCode::kUnavailable || attempt == kAttempts) return answer;
        std::this_thread::sleep_for(std::chrono::milliseconds(200) * attempt);
    }
}

Result<json::value> ManagerClient::remove(const std::string& target) const {
    return exchange("DELETE", target, {}, {});
}

Result<> ManagerClient::events(std::uint64_t last_id, bool follow,
                               const std::function<bool(const json::value&)>& on_event) const {
    asio::io_context context;
    http::Client client(context.get_executor(), url_);
    http::ClientRequest request;
    request.target = fmt::format("/v1/events?after={}&follow={}", last_id, follow);
    request.headers["Accept"] = "text/event-stream";
    EventStream stream(on_event);
    bool heard = false;
    const auto response = run(context, client.stream(std::move(request), [&](std::string_view chunk) {
        heard = true;
        return stream.take(chunk);
    }));
    if (!response) {
        if (follow && heard) return {};
        return std::unexpected(explain(response.error()));
    }
    if (response->status >= 400) return std::unexpected(refusal(response->status, response->body));
    return {};
}

std::string new_idempotency_key() {
    std::random_device random;
    return fmt::format("memtide-{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace memtide::cli
