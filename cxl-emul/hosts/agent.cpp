#include "cxl-emul/hosts/agent.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "common/json/json.h"
#include "common/log/log.h"

namespace memtide::emul {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using Microseconds = std::chrono::microseconds;

namespace {

constexpr std::chrono::seconds kPoll{30};
constexpr std::chrono::seconds kPatience{90};
constexpr Microseconds kFirstPause = 50ms;
constexpr Microseconds kLongestPause = 2s;
constexpr Microseconds kLate = 2s;
constexpr Microseconds kSettle = 500ms;  // that what is no news waits for what is
constexpr std::chrono::hours kForever{1};
constexpr unsigned kOk = 200;
constexpr unsigned kNoContent = 204;
constexpr unsigned kUnauthenticated = 401;
constexpr unsigned kForbidden = 403;

Result<WantedState> read_wanted(const std::string& body) {
    const auto document = json::parse(body, {.bytes = 16 << 20, .depth = 32});
    if (!document) return std::unexpected(document.error());
    const json::Reader reader(*document);
    const json::Object root = reader.root().object();
    WantedState state;
    state.revision = root.require("revision").integer<std::uint64_t>();
    for (const json::Value& item : root.require("regions").list()) {
        const json::Object one = item.object();
        Wanted wanted{CompositionId(one.require("composition").string()),
                      one.require("region").integer<std::uint32_t>(),
                      {},
                      one.require("size").bytes(),
                      one.require("desired").one_of({"online", "offline"}) == "online"};
        for (const json::Value& serial : one.require("serials").list())
            wanted.serials.push_back(serial.serial());
        if (const auto verify = one.get("verify_erased"))
            wanted.samples = verify->object().require("samples").integer<std::uint32_t>(1);
        state.regions.push_back(std::move(wanted));
    }
    if (const auto good = reader.check(json::Reader::Unknown::kIgnored); !good)
        return std::unexpected(good.error());
    return state;
}

asio::awaitable<bool> is_stopped() {
    const auto state = co_await asio::this_coro::cancellation_state;
    co_return state.cancelled() != asio::cancellation_type::none;
}

}  // namespace

Agent::Agent(asio::any_io_executor executor, HostModel& model, Ledger& ledger, ClientPool& pool,
             Identity identity, Neighbour neighbour)
    : executor_(std::move(executor)),
      model_(model),
      ledger_(ledger),
      pool_(pool),
      identity_(std::move(identity)),
      neighbour_(std::move(neighbour)),
      awake_(executor_) {}

std::shared_ptr<asio::cancellation_signal> Agent::spawn(asio::awaitable<void> coroutine) {
    auto signal = std::make_shared<asio::cancellation_signal>();
    // What stop() cancels ends by an exception; the signal lives as long as the coroutine.
    auto ended = [signal](const std::exception_ptr&) {};
    asio::co_spawn(executor_, std::move(coroutine),
                   asio::bind_cancellation_slot(signal->slot(), std::move(ended)));
    return signal;
}

void Agent::start() {
    if (std::exchange(running_, true)) return;
    model_.report_again();
    stop_acting_ = spawn(act(shared_from_this()));
    if (network_) start_asking();
}

Agent::Caller Agent::caller() const {
    return {impersonates_ ? neighbour_.identity : identity_, impersonates_};
}

void Agent::start_asking() {
    stop_asking_ = spawn(ask(shared_from_this(), pool_.make(caller().identity), impersonates_));
}

void Agent::stop() {
    if (!std::exchange(running_, false)) return;
    if (stop_asking_) stop_asking_->emit(asio::cancellation_type::all);
    stop_acting_->emit(asio::cancellation_type::all);
}

void Agent::set_network(bool there) {
    if (std::exchange(network_, there) == there || !running_) return;
    if (!there) {
        if (stop_asking_) stop_asking_->emit(asio::cancellation_type::all);
        return;
    }
    model_.report_again();
    wake();
    start_asking();
}

void Agent::impersonate(bool on) {
    if (std::exchange(impersonates_, on) == on || !running_ || !network_) return;
    if (stop_asking_) stop_asking_->emit(asio::cancellation_type::all);
    model_.report_again();
    wake();
    start_asking();
}

void Agent::wake() { awake_.cancel(); }

asio::awaitable<void> Agent::sleep(Microseconds time) {
    asio::steady_timer timer(executor_, time);
    co_await timer.async_wait(asio::use_awaitable);
}

// --- Asking ---

// What it means that a poll was answered like this.
void Agent::judge(const Result<http::ClientResponse>& answer, bool impersonates) {
    if (answer && answer->status == kOk) {
        if (impersonates)
            ledger_.violation({"foreign-certificate", model_.name(), SerialNumber{},
                               "the manager answered it with the certificate of " + neighbour_.name.value});
        return;
    }
    const bool refused = answer ? answer->status == kUnauthenticated || answer->status == kForbidden
                                : answer.error().code == ErrorCode::kPermission;
    if (!refused) return;
    if (impersonates) ++ledger_.refused_certificates;
    ledger_.refused(model_.name(), answer ? answer->body : answer.error().message);
}

asio::awaitable<void> Agent::ask(Self self, std::unique_ptr<http::Client> client, bool impersonates) {
    std::optional<std::uint64_t> seen;
    Microseconds pause = kFirstPause;
    for (;;) {
        http::ClientRequest request;
        request.target =
            fmt::format("/v1/hosts/{}/desired?timeout={}s", self->model_.name().value, kPoll.count());
        if (seen) request.target += fmt::format("&after={}", *seen);
        request.timeout = kPatience;
        const auto answer = co_await client->send(std::move(request));
        self->judge(answer, impersonates);
        auto wanted = answer && answer->status == kOk
                          ? read_wanted(answer->body)
                          : fail(ErrorCode::kUnavailable, answer ? answer->body : answer.error().message);
        if (!wanted) {
            log::debug("no answer from the manager",
                       {{"host", self->model_.name()}, {"error", wanted.error()}});
            // A manager that was away may have forgotten what was reported.
            seen.reset();
            co_await self->sleep(pause);
            pause = std::min(pause * 2, kLongestPause);
            continue;
        }
        pause = kFirstPause;
        if (seen == wanted->revision)
            self->model_.report_again();
        else
            self->model_.want(*std::move(wanted));
        seen = self->model_.revision();
        self->wake();
    }
}

// --- Acting and reporting ---

asio::awaitable<void> Agent::act(Self self) {
    std::optional<HostModel::Time> to_tell;  // by when; nullopt: nothing
    Microseconds pause = kFirstPause;
    for (;;) {
        const HostModel::Time now = HostModel::Clock::now();
        if (self->model_.advance(now) && !to_tell) to_tell = now + kSettle;
        if (to_tell && self->network_ && (self->model_.has_news() || *to_tell <= now)) {
            to_tell.reset();  // what changes from here on is another report's
            if (co_await self->report()) {
                pause = kFirstPause;
            } else {
                self->model_.report_again();
                co_await self->sleep(pause);
                pause = std::min(pause * 2, kLongestPause);
            }
            continue;
        }
        auto due = self->model_.next_due();
        if (to_tell && self->network_ && (!due || *to_tell < *due)) due = to_tell;
        self->awake_.expires_at(due ? *due : HostModel::Clock::now() + kForever);
        boost::system::error_code woken;
        co_await self->awake_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
        if (co_await is_stopped()) co_return;
    }
}

asio::awaitable<bool> Agent::report() {
    Microseconds delay = model_.draw_report_delay();
    if (model_.faults().has(HostFault::kLateReports)) delay += kLate;
    // What is true when the report is written is what is sent, however late.
    std::string body = model_.observed();
    model_.told();
    const bool names_any = model_.wanted_count() != 0;
    if (delay.count() > 0) co_await sleep(delay);
    const Caller who = caller();
    // A report that names nothing is nobody's; whoever has another's certificate and key is that one.
    if (names_any && !who.impersonates && neighbour_.name != model_.name() &&
        model_.faults().has(HostFault::kReportsForAnother))
        co_await report_for_another(who, body);
    const unsigned status = co_await put_observed(who, model_.name(), std::move(body));
    if (who.impersonates && status == kNoContent)
        ledger_.violation({"foreign-certificate", model_.name(), SerialNumber{},
                           "the manager took its report with the certificate of " + neighbour_.name.value});
    co_return status == kNoContent;
}

asio::awaitable<void> Agent::report_for_another(const Caller& who, std::string body) {
    const unsigned status = co_await put_observed(who, neighbour_.name, std::move(body));
    if (status == kNoContent)
        ledger_.violation({"foreign-report", model_.name(), SerialNumber{},
                           "the manager took its report for " + neighbour_.name.value});
}

asio::awaitable<unsigned> Agent::put_observed(const Caller& who, const HostId& host, std::string body) {
    http::ClientRequest request;
    request.method = "PUT";
    request.target = fmt::format("/v1/hosts/{}/observed", host.value);
    request.headers["Content-Type"] = "application/json";
    request.body = std::move(body);
    ClientPool::Lease client = co_await pool_.take(who.identity);
    struct CutOff {
        ClientPool::Lease& lease;
        bool armed = true;
        ~CutOff() {
            if (armed) lease.discard();
        }
    } cut_off{client};
    const auto answer = co_await client->send(std::move(request));
    cut_off.armed = false;
    if (!answer) co_return 0;
    ++ledger_.reports;
    if (answer->status != kNoContent) {
        ++ledger_.refused_reports;
        if (who.impersonates) ++ledger_.refused_certificates;
        log::debug("report refused", {{"host", host}, {"answer", answer->body}});
    }
    co_return answer->status;
}

}  // namespace memtide::emul
