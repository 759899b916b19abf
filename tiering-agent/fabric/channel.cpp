#include "tiering-agent/fabric/channel.h"

#include <algorithm>
#include <random>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "common/http/client.h"
#include "common/log/log.h"

namespace memtide::agent {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

// Pauses that double with each failure in a row. The jitter keeps a rack of agents from coming back all at
// once.
class Backoff {
  public:
    Backoff(milliseconds min, milliseconds max) : min_(min), max_(max) {}
    void reset() { failures_ = 0; }
    milliseconds next() {
        const milliseconds full = std::min(max_, min_ * (1 << std::min(failures_++, 16)));
        return milliseconds(
            std::uniform_int_distribution<milliseconds::rep>(full.count() / 2, full.count())(random_));
    }

  private:
    milliseconds min_;
    milliseconds max_;
    int failures_ = 0;
    std::minstd_rand random_{std::random_device{}()};
};

// Says what is wrong once, and that it is right again.
class Trouble {
  public:
    explicit Trouble(std::string what) : what_(std::move(what)) {}
    void is(const Error& error) {
        if (error.message == last_) return;
        last_ = error.message;
        log::warning(what_ + " failed", {{"reason", error}});
    }
    void is_over() {
        if (!last_.empty()) log::info(what_ + " works again");
        last_.clear();
    }

  private:
    std::string what_;
    std::string last_;
};

// The beginning of a body, on one line, for messages.
std::string excerpt(const std::string& body) {
    std::string text = body.substr(0, 200);
    std::ranges::replace_if(text, [](char c) { return c < ' ' || c > '~'; }, ' ');
    return text;
}

Error unexpected_status(const http::ClientResponse& response) {
    return {ErrorCode::kProtocol,
            fmt::format("the manager answered {}: {}", response.status, excerpt(response.body))};
}

}  // namespace

struct Channel::Impl : std::enable_shared_from_this<Impl> {
    Impl(asio::any_io_executor e, ChannelConfig c, std::function<void(const Desired&)> f)
        : executor(std::move(e)),
          config(std::move(c)),
          on_desired(std::move(f)),
          puller(executor, config.manager, config.credentials),
          reporter(executor, config.manager, config.credentials),
          pull_pause(executor),
          report_pause(executor) {}

    asio::awaitable<void> pull_loop();
    asio::awaitable<Result<Desired>> pull(std::optional<std::uint64_t> after);
    asio::awaitable<void> report_loop();
    asio::awaitable<Result<>> report(const Observed& observed);
    static asio::awaitable<void> pause(asio::steady_timer& timer, milliseconds duration) {
        boost::system::error_code ignored;
        timer.expires_after(duration);
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    void stop() {
        stopped = true;
        pull_pause.cancel();
        report_pause.cancel();
        end_pull.emit(asio::cancellation_type::terminal);
        end_report.emit(asio::cancellation_type::terminal);
    }

    [[nodiscard]] std::string path(std::string_view what) const {
        return fmt::format("/v1/hosts/{}/{}", http::percent_encode(config.host.value), what);
    }

    asio::any_io_executor executor;
    ChannelConfig config;
    std::function<void(const Desired&)> on_desired;
    http::Client puller;  // one exchange at a time each, and a long poll takes long
    http::Client reporter;
    asio::steady_timer pull_pause;
    asio::steady_timer report_pause;
    asio::cancellation_signal end_pull;
    asio::cancellation_signal end_report;
    std::optional<Observed> observed;
    bool changed = false;
    bool stopped = false;
};

asio::awaitable<Result<Desired>> Channel::Impl::pull(std::optional<std::uint64_t> after) {
    const auto poll = std::chrono::ceil<std::chrono::seconds>(config.timing.long_poll);
    http::ClientRequest request{.target = fmt::format("{}?timeout={}s", path("desired"), poll.count()),
                                .headers = {{"Accept", "application/json"}},
                                .body = {},
                                .timeout = poll + config.timing.request};
    if (after) request.target += fmt::format("&after={}", *after);
    auto response = co_await puller.send(std::move(request));
    if (!response) co_return std::unexpected(std::move(response.error()));
    if (response->status != 200) co_return std::unexpected(unexpected_status(*response));
    auto desired = parse_desired(response->body, config.host);
    if (!desired)
        co_return std::unexpected(
            std::move(desired.error()).with_context("the manager's desired state is not used"));
    co_return desired;
}

asio::awaitable<void> Channel::Impl::pull_loop() {
    const auto self = shared_from_this();
    Backoff backoff(config.timing.retry_min, config.timing.retry_max);
    Trouble trouble("asking the manager for the desired state");
    std::optional<Desired> last;
    while (!stopped) {
        const auto asked_at = std::chrono::steady_clock::now();
        std::optional<std::uint64_t> after;  // not a ?: inside the co_await: gcc 12 evaluates both sides
        if (last) after = last->revision;
        auto desired = co_await pull(after);
        if (stopped) break;
        if (!desired) {
            trouble.is(desired.error());
            co_await pause(pull_pause, backoff.next());
            continue;
        }
        trouble.is_over();
        if (last != *desired) {
            last = std::move(*desired);
            on_desired(*last);
            backoff.reset();
        } else if (std::chrono::steady_clock::now() - asked_at < config.timing.retry_min) {
            // A manager that does not wait when it should must not be asked in a tight loop.
            co_await pause(pull_pause, backoff.next());
        } else {
            backoff.reset();
        }
    }
}

asio::awaitable<Result<>> Channel::Impl::report(const Observed& what) {
    http::ClientRequest request{.method = "PUT",
                                .target = path("observed"),
                                .headers = {{"Content-Type", "application/json"}},
                                .body = format_observed(what, config.identity),
                                .timeout = config.timing.request};
    auto response = co_await reporter.send(std::move(request));
    if (!response) co_return std::unexpected(std::move(response.error()));
    if (response->status / 100 != 2) co_return std::unexpected(unexpected_status(*response));
    co_return Result<>{};
}

asio::awaitable<void> Channel::Impl::report_loop() {
    const auto self = shared_from_this();
    Backoff backoff(config.timing.retry_min, config.timing.retry_max);
    Trouble trouble("reporting to the manager");
    while (!stopped) {
        if (!changed) co_await pause(report_pause, config.timing.heartbeat);
        if (stopped) break;
        if (!observed) continue;
        changed = false;
        const Observed sent = *observed;
        const auto reported = co_await report(sent);
        if (stopped) break;
        if (reported) {
            trouble.is_over();
            backoff.reset();
            continue;
        }
        trouble.is(reported.error());
        changed = true;  // still to be told; by then it may be newer
        boost::system::error_code ignored;
        asio::steady_timer timer(executor, backoff.next());
        co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
}

Channel::Channel(asio::any_io_executor executor, ChannelConfig config,
                 std::function<void(const Desired&)> on_desired)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(config), std::move(on_desired))) {}

Channel::~Channel() { impl_->stop(); }

void Channel::start() {
    asio::co_spawn(impl_->executor, impl_->pull_loop(),
                   asio::bind_cancellation_slot(impl_->end_pull.slot(), asio::detached));
    asio::co_spawn(impl_->executor, impl_->report_loop(),
                   asio::bind_cancellation_slot(impl_->end_report.slot(), asio::detached));
}

void Channel::set_observed(Observed observed) {
    asio::post(impl_->executor, [impl = impl_, observed = std::move(observed)]() mutable {
        impl->observed = std::move(observed);
        impl->changed = true;
        impl->report_pause.cancel();
    });
}

void Channel::stop() { impl_->stop(); }

}  // namespace memtide::agent
