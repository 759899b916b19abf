#include "cxl-emul/rack/rack_host.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/log/log.h"
#include "cxl-emul/rack/messages.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {
constexpr std::size_t kRecentConsole = 16 << 10;
constexpr auto kConfigureTimeout = std::chrono::seconds(90);
constexpr auto kPowerOffTime = std::chrono::seconds(4);
// An emulated CPU on a busy machine now and then loses its timer early in boot and then sits there for good.
// A guest that boots says something more often than this.
constexpr auto kSilentBoot = std::chrono::seconds(40);
constexpr int kBootsAgain = 2;
}  // namespace

RackHost::RackHost(asio::any_io_executor executor, HostPlan plan, std::string folder,
                   std::vector<std::string> agent, std::function<void()> changed)
    : executor_(std::move(executor)), agent_(std::move(agent)), changed_(std::move(changed)) {
    QemuHost::Callbacks callbacks;
    callbacks.changed = [this] {
        const auto state = qemu_->state();
        if (link_ && (state == HostState::kPanicked || state == HostState::kStopped))
            link_->lost({ErrorCode::kUnavailable, fmt::format("host {} is {}", name(), to_string(state))});
        changed_();
    };
    callbacks.console = [this](std::string_view bytes) { console(bytes); };
    callbacks.guest_port = [this](bool open) {
        if (open || !link_) return;
        link_->restarting({ErrorCode::kUnavailable, fmt::format("the helper in host {} ended", name())});
        qemu_->mark_booting();
    };
    callbacks.reset = [this] {
        if (link_) link_->restarting({ErrorCode::kUnavailable, fmt::format("host {} reboots", name())});
    };
    qemu_ = std::make_unique<QemuHost>(executor_, std::move(plan), std::move(folder), std::move(callbacks));
}

RackHost::~RackHost() {
    changed_ = [] {};
    if (link_) link_->close();
    qemu_.reset();
    if (agent_log_ >= 0) ::close(agent_log_);
}

asio::awaitable<Result<>> RackHost::start() {
    auto self = shared_from_this();
    auto started = co_await qemu_->start();
    if (!started) co_return started;
    GuestLink::Callbacks callbacks;
    callbacks.hello = [this] {
        agent_state_ = agent_.empty() ? "" : "starting";
        asio::co_spawn(executor_, configure(), asio::detached);
    };
    callbacks.event = [this](const json::object& event) { take_event(event); };
    callbacks.agent_log = [this](std::string_view bytes) { log_agent(bytes); };
    link_ = GuestLink::open(executor_, qemu_->take_guest_descriptor(), std::move(callbacks));
    qemu_->set_helper(link_);
    last_console_ = std::chrono::steady_clock::now();
    asio::co_spawn(executor_, watch_boot(weak_from_this()), asio::detached);
    co_return Result<>{};
}

asio::awaitable<void> RackHost::watch_boot(std::weak_ptr<RackHost> host) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    bool booting = true;
    while (booting) {
        timer.expires_after(std::chrono::seconds(1));
        co_await timer.async_wait(asio::use_awaitable);
        const auto self = host.lock();
        if (!self) co_return;
        booting = co_await self->boot_again_if_stuck();
    }
}

// Whether the boot is still to be watched.
asio::awaitable<bool> RackHost::boot_again_if_stuck() {
    if (qemu_->state() != HostState::kBooting || boots_again_ == kBootsAgain) co_return false;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_console_ < kSilentBoot) co_return true;
    ++boots_again_;
    last_console_ = now;
    log::warning("boot is stuck, booting again", {{"host", name()}, {"attempt", boots_again_ + 1}});
    const auto reset = co_await qemu_->reset();
    if (!reset) log::warning("could not boot again", {{"host", name()}, {"error", reset.error()}});
    co_return true;
}

asio::awaitable<void> RackHost::configure() {
    auto self = shared_from_this();
    json::object message;
    message["op"] = "configure";
    unsigned slots = 0;
    for (const auto& vcs : qemu_->plan().vcss) slots += vcs.vppbs;
    message["slots"] = slots;
    message["cxl"] = slots > 0 || !qemu_->plan().direct.empty();
    if (!agent_.empty()) {
        json::array argv;
        for (const auto& word : agent_) argv.emplace_back(word);
        message["agent"] = std::move(argv);
    }
    auto configured = co_await link_->ask(std::move(message), kConfigureTimeout);
    if (!configured) {
        if (configured.error().code == ErrorCode::kUnavailable) co_return;  // another helper says hello later
        configure_error_ = configured.error().message;
        log::error("host is not usable", {{"host", name()}, {"error", configured.error()}});
        changed_();
        co_return;
    }
    configure_error_.clear();
    kernel_ = text_of(*configured, "kernel");
    link_->set_available(true);
    qemu_->mark_ready();
}

asio::awaitable<void> RackHost::stop() {
    auto self = shared_from_this();
    const bool asked = link_ && link_->available() && qemu_->state() == HostState::kReady;
    if (asked) {
        json::object message;
        message["op"] = "power-off";
        link_->open_stream(message, [](const Frame&) {});
    }
    const std::chrono::milliseconds grace = asked ? kPowerOffTime : std::chrono::seconds(0);
    co_await qemu_->stop(grace);
}

Result<std::shared_ptr<GuestLink>> RackHost::guest() {
    if (qemu_->state() == HostState::kReady && link_ && link_->available()) return link_;
    const auto& detail = qemu_->detail();
    return fail(ErrorCode::kUnavailable, fmt::format("host {} is {}{}{}", name(), to_string(qemu_->state()),
                                                     detail.empty() ? "" : ": ", detail));
}

std::string RackHost::failure() const {
    if (qemu_->state() == HostState::kPanicked || qemu_->state() == HostState::kStopped)
        return fmt::format("{}: {}", to_string(qemu_->state()), qemu_->detail());
    return configure_error_;
}

json::object RackHost::status() const {
    json::object out;
    out["name"] = qemu_->plan().name;
    out["state"] = to_string(qemu_->state());
    out["detail"] = qemu_->detail().empty() ? configure_error_ : qemu_->detail();
    if (const auto pid = qemu_->pid()) {
        out["pid"] = *pid;
    } else {
        out["pid"] = nullptr;
    }
    if (const auto time = qemu_->boot_time()) {
        out["boot_seconds"] = static_cast<double>(time->count()) / 1000;
    } else {
        out["boot_seconds"] = nullptr;
    }
    out["kernel"] = kernel_;
    out["agent"] = agent_state_;
    out["agent_restarts"] = agent_restarts_;
    out["folder"] = qemu_->folder();
    return out;
}

void RackHost::take_event(const json::object& event) {
    const auto what = text_of(event, "event");
    const auto detail = text_of(event, "detail");
    if (what == "agent-started") {
        agent_state_ = "running";
    } else if (what == "agent-ended") {
        agent_state_ = detail;
        ++agent_restarts_;
        log::warning("agent ended", {{"host", name()}, {"detail", detail}});
    }
    changed_();
}

void RackHost::console(std::string_view bytes) {
    last_console_ = std::chrono::steady_clock::now();
    recent_console_ += bytes;
    if (recent_console_.size() > 2 * kRecentConsole)
        recent_console_.erase(0, recent_console_.size() - kRecentConsole);
    const auto listeners = listeners_;  // one may leave while it is called
    for (const auto& [number, listener] : listeners) listener(bytes);
}

void RackHost::log_agent(std::string_view bytes) {
    if (agent_log_ < 0) {
        const auto path = qemu_->folder() + "/agent.log";
        agent_log_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
    if (agent_log_ < 0 || ::write(agent_log_, bytes.data(), bytes.size()) < 0)
        log::warning("cannot write the agent's log", {{"host", name()}, {"error", std::strerror(errno)}});
}

int RackHost::listen(ConsoleListener listener) {
    listener(recent_console_);
    listeners_[next_listener_] = std::move(listener);
    return next_listener_++;
}

void RackHost::stop_listening(int number) { listeners_.erase(number); }

}  // namespace memtide::emul
