#include "cxl-emul/qemu/qemu_host.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/object.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/no_throw.h"
#include "common/log/log.h"
#include "common/process/child.h"
#include "cxl-emul/qemu/qmp_client.h"
#include "cxl-emul/qemu/slots.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::steady_clock;

namespace {
constexpr std::string_view kPanicText = "Kernel panic - not syncing";

// A descriptor that closes itself.
class Fd {
  public:
    explicit Fd(int fd = -1) : fd_(fd) {}
    ~Fd() { reset(); }
    Fd(Fd&& other) noexcept : fd_(other.release()) {}
    Fd& operator=(Fd&& other) noexcept {
        if (this != &other) {
            reset();
            fd_ = other.release();
        }
        return *this;
    }
    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  private:
    void reset() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    int fd_;
};

struct SocketPair {
    Fd ours;
    Fd theirs;
};

Result<SocketPair> socket_pair() {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
        return fail_errno("socketpair", "for QEMU", errno);
    return SocketPair{Fd(fds[0]), Fd(fds[1])};
}

std::string last_line(const std::string& path) {
    std::ifstream in(path);
    std::string line;
    std::string last;
    while (std::getline(in, line)) {
        if (!line.empty()) last = line;
    }
    return last;
}
}  // namespace

std::string_view to_string(HostState state) {
    switch (state) {
        case HostState::kStopped:
            return "stopped";
        case HostState::kBooting:
            return "booting";
        case HostState::kReady:
            return "ready";
        case HostState::kPanicked:
            return "panicked";
    }
    return "stopped";
}

struct QemuHost::State : std::enable_shared_from_this<State> {
    State(asio::any_io_executor ex, HostPlan host_plan, std::string host_folder, Callbacks host_callbacks,
          HotplugTiming host_timing)
        : executor(std::move(ex)),
          plan(std::move(host_plan)),
          folder(std::move(host_folder)),
          callbacks(std::move(host_callbacks)),
          timing(host_timing),
          serial(executor),
          ended(executor) {
        ended.expires_at(asio::steady_timer::time_point::max());
    }

    void move_to(HostState next, std::string why) {
        if (state == next && detail == why) return;
        state = next;
        detail = std::move(why);
        if (state == HostState::kPanicked || state == HostState::kStopped) {
            log::warning("host state",
                         {{"host", plan.name}, {"state", to_string(state)}, {"detail", detail}});
        } else {
            log::info("host state", {{"host", plan.name}, {"state", to_string(state)}, {"detail", detail}});
        }
        if (callbacks.changed) callbacks.changed();
    }
    void panicked(std::string why) {
        if (state == HostState::kBooting || state == HostState::kReady)
            move_to(HostState::kPanicked, std::move(why));
    }

    Result<> launch();
    void take_event(const std::string& name, const json::object& data);
    asio::awaitable<void> watch_child();
    asio::awaitable<void> read_serial();
    asio::awaitable<void> write_serial();

    asio::any_io_executor executor;
    HostPlan plan;
    std::string folder;
    Callbacks callbacks;
    HotplugTiming timing;

    HostState state = HostState::kStopped;
    std::string detail = "not started";
    std::optional<process::Child> child;
    std::unique_ptr<QmpClient> qmp;
    std::unique_ptr<Slots> slots;
    Fd guest;
    Fd serial_log;
    asio::local::stream_protocol::socket serial;
    std::string serial_tail;  // end of what was read, for a panic text that comes in two pieces
    std::string typed;
    bool typing = false;
    asio::steady_timer ended;  // never expires; cancelled when QEMU has ended
    bool stopping = false;
    steady_clock::time_point started;
    std::optional<std::chrono::milliseconds> boot_time;
    std::shared_ptr<GuestHelper> helper;
};

Result<> QemuHost::State::launch() {
    auto for_qmp = socket_pair();
    if (!for_qmp) return std::unexpected(for_qmp.error());
    auto for_serial = socket_pair();
    if (!for_serial) return std::unexpected(for_serial.error());
    auto for_guest = socket_pair();
    if (!for_guest) return std::unexpected(for_guest.error());
    const auto log_path = folder + "/serial.log";
    serial_log = Fd(::open(log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (serial_log.get() < 0) return fail_errno("open", log_path, errno);

    const HostDescriptors descriptors{for_qmp->theirs.get(), for_serial->theirs.get(),
                                      for_guest->theirs.get()};
    process::Command command;
    command.argv = qemu_command_line(plan, descriptors);
    command.pass_fds = {descriptors.qmp, descriptors.console, descriptors.guest};
    command.standard_output = process::Stream::file(folder + "/qemu.log", false);
    command.standard_error = process::Stream::file(folder + "/qemu.log");
    command.new_session = true;
    std::ofstream(folder + "/qemu.command") << fmt::format("{}\n", fmt::join(command.argv, " "));
    auto spawned = process::Child::spawn(command);
    if (!spawned)
        return std::unexpected(std::move(spawned.error()).with_context("starting QEMU for " + plan.name));
    child.emplace(std::move(*spawned));
    serial.assign(asio::local::stream_protocol(), for_serial->ours.release());
    guest = std::move(for_guest->ours);
    qmp = std::make_unique<QmpClient>(executor, for_qmp->ours.release());
    slots = std::make_unique<Slots>(executor, *qmp, timing);
    started = steady_clock::now();
    return {};
}

void QemuHost::State::take_event(const std::string& name, const json::object& data) {
    if (name == "GUEST_PANICKED") {
        panicked("the guest's kernel has panicked; see serial.log");
    } else if (name == "RESET") {
        const auto* by_guest = data.if_contains("guest");
        if (!by_guest || !by_guest->is_bool() || !by_guest->get_bool()) return;
        move_to(HostState::kBooting, "the guest rebooted");
        if (callbacks.reset) callbacks.reset();
    } else if (name == "VSERPORT_CHANGE") {
        const auto* open = data.if_contains("open");
        if (open && open->is_bool() && callbacks.guest_port) callbacks.guest_port(open->get_bool());
    }
}

asio::awaitable<void> QemuHost::State::watch_child() {
    auto self = shared_from_this();
    auto exit = co_await child->wait();
    if (!exit && exit.error().code == ErrorCode::kCancelled) co_return;
    qmp->close();
    boost::system::error_code ignored;
    serial.close(ignored);
    slots->forget_all();
    auto how = exit ? exit->describe() : exit.error().message;
    if (!stopping) {
        const auto said = last_line(folder + "/qemu.log");
        how = "QEMU " + how + (said.empty() ? "" : ": " + said);
    }
    move_to(HostState::kStopped, stopping ? "stopped" : how);
    ended.cancel();
}

asio::awaitable<void> QemuHost::State::read_serial() {
    auto self = shared_from_this();
    std::array<char, 4096> chunk{};
    for (;;) {
        auto [error, size] = co_await serial.async_read_some(asio::buffer(chunk), kNoThrow);
        if (error) co_return;
        const std::string_view text(chunk.data(), size);
        if (::write(serial_log.get(), text.data(), text.size()) < 0)
            log::warning("cannot write the serial log",
                         {{"host", plan.name}, {"error", std::strerror(errno)}});
        if (callbacks.console) callbacks.console(text);
        serial_tail += text;
        if (const auto at = serial_tail.find(kPanicText); at != std::string::npos) {
            const auto end = serial_tail.find_first_of("\r\n", at);
            if (end != std::string::npos) {
                panicked(serial_tail.substr(at, end - at));
                serial_tail.erase(0, end);
            }
        } else if (serial_tail.size() > 256) {
            serial_tail.erase(0, serial_tail.size() - 256);
        }
    }
}

asio::awaitable<void> QemuHost::State::write_serial() {
    auto self = shared_from_this();
    while (!typed.empty()) {
        const auto bytes = std::exchange(typed, {});
        auto [error, size] = co_await asio::async_write(serial, asio::buffer(bytes), kNoThrow);
        if (error) break;
    }
    typing = false;
}

QemuHost::QemuHost(asio::any_io_executor executor, HostPlan plan, std::string folder, Callbacks callbacks,
                   HotplugTiming timing)
    : state_(std::make_shared<State>(std::move(executor), std::move(plan), std::move(folder),
                                     std::move(callbacks), timing)) {}

QemuHost::~QemuHost() {
    state_->callbacks = {};
    state_->stopping = true;
    if (state_->qmp) state_->qmp->close();
    if (state_->child) static_cast<void>(state_->child->kill());
    boost::system::error_code ignored;
    state_->serial.close(ignored);
    state_->ended.cancel();
}

asio::awaitable<Result<>> QemuHost::start() {
    auto state = state_;
    auto launched = state->launch();
    if (!launched) co_return launched;
    state->move_to(HostState::kBooting, "");
    asio::co_spawn(state->executor, state->watch_child(), asio::detached);
    asio::co_spawn(state->executor, state->read_serial(), asio::detached);
    state->qmp->on_event([weak = state->weak_from_this()](const std::string& name, const json::object& data) {
        if (auto alive = weak.lock()) alive->take_event(name, data);
    });
    auto greeted = co_await state->qmp->handshake(std::chrono::seconds(60));
    if (!greeted) {
        // QEMU said why in its log when it ended by itself; give it the moment it takes to end.
        asio::steady_timer moment(state->executor, std::chrono::seconds(2));
        while (state->state != HostState::kStopped && moment.expiry() > steady_clock::now()) {
            asio::steady_timer tick(state->executor, std::chrono::milliseconds(20));
            co_await tick.async_wait(kNoThrow);
        }
        const auto why = state->state == HostState::kStopped ? state->detail : greeted.error().message;
        co_return fail(ErrorCode::kUnavailable, fmt::format("host {}: {}", state->plan.name, why));
    }
    co_return Result<>{};
}

asio::awaitable<Result<>> QemuHost::reset() {
    auto state = state_;
    if (!state->qmp) co_return fail(ErrorCode::kUnavailable, "QEMU does not run");
    const auto done = co_await state->qmp->execute("system_reset");
    if (!done) co_return std::unexpected(done.error());
    co_return Result<>{};
}

asio::awaitable<void> QemuHost::stop(std::chrono::milliseconds grace) {
    auto state = state_;
    state->stopping = true;
    if (!state->child || state->state == HostState::kStopped) co_return;
    const auto wait_until = [state](steady_clock::time_point deadline) -> asio::awaitable<void> {
        asio::steady_timer tick(state->executor);
        while (state->state != HostState::kStopped && steady_clock::now() < deadline) {
            tick.expires_after(std::chrono::milliseconds(10));
            co_await tick.async_wait(kNoThrow);
        }
    };
    co_await wait_until(steady_clock::now() + grace);
    if (state->state != HostState::kStopped) {
        co_await state->qmp->execute("quit", {}, std::chrono::seconds(2));
        co_await wait_until(steady_clock::now() + std::chrono::seconds(3));
    }
    if (state->state != HostState::kStopped) {
        static_cast<void>(state->child->kill());
        co_await wait_until(steady_clock::now() + std::chrono::seconds(10));
    }
}

int QemuHost::take_guest_descriptor() { return state_->guest.release(); }
void QemuHost::set_helper(std::shared_ptr<GuestHelper> helper) { state_->helper = std::move(helper); }

void QemuHost::mark_ready() {
    if (state_->state != HostState::kBooting) return;
    if (!state_->boot_time) {
        state_->boot_time =
            std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - state_->started);
    }
    state_->move_to(HostState::kReady, "");
}

void QemuHost::mark_booting() {
    if (state_->state == HostState::kReady)
        state_->move_to(HostState::kBooting, "the guest's helper is gone");
}

void QemuHost::type(std::string bytes) {
    state_->typed += bytes;
    if (state_->typing || !state_->serial.is_open()) return;
    state_->typing = true;
    asio::co_spawn(state_->executor, state_->write_serial(), asio::detached);
}

asio::awaitable<Result<>> QemuHost::attach(HotplugDevice device) {
    auto state = state_;
    if (state->state == HostState::kStopped)
        co_return fail(ErrorCode::kUnavailable, fmt::format("host {} does not run", state->plan.name));
    auto place = port_place(state->plan, device.slot.switch_name.value, device.slot.vcs, device.slot.vppb);
    if (!place) co_return std::unexpected(place.error());
    auto attached = co_await state->slots->attach(*place, device);
    if (!attached && attached.error().code == ErrorCode::kTimeout && state->child) {
        // The caller gives the memory to others after an error, so this host must not get it later.
        log::error("QEMU does not answer, killing it", {{"host", state->plan.name}});
        static_cast<void>(state->child->kill());
    }
    co_return attached;
}

asio::awaitable<Result<>> QemuHost::detach(HotplugSlot slot, fmapi::UnbindOption option) {
    auto state = state_;
    if (state->state == HostState::kStopped) co_return Result<>{};
    auto place = port_place(state->plan, slot.switch_name.value, slot.vcs, slot.vppb);
    if (!place) co_return std::unexpected(place.error());
    if (state->state == HostState::kPanicked && option != fmapi::UnbindOption::kSurpriseHotRemove) {
        co_return fail(
            ErrorCode::kConflict,
            fmt::format("host {} has panicked and cannot let go of its devices; unbind it by surprise",
                        state->plan.name));
    }
    auto detached = co_await state->slots->detach(*place, option, state->helper);
    if (state->state == HostState::kStopped)
        co_return Result<>{};  // QEMU ended meanwhile, and its devices with it
    if (!detached)
        co_return std::unexpected(std::move(detached.error()).with_context("host " + state->plan.name));
    co_return detached;
}

asio::awaitable<Result<>> QemuHost::device_command(HotplugSlot slot, std::string name,
                                                   boost::json::object arguments) {
    auto state = state_;
    if (state->state == HostState::kStopped)
        co_return fail(ErrorCode::kUnavailable, fmt::format("host {} does not run", state->plan.name));
    auto place = port_place(state->plan, slot.switch_name.value, slot.vcs, slot.vppb);
    if (!place) co_return std::unexpected(place.error());
    co_return co_await state->slots->command(*place, std::move(name), std::move(arguments));
}

std::string QemuHost::waits_for(const HotplugSlot& slot) const {
    const auto place = port_place(state_->plan, slot.switch_name.value, slot.vcs, slot.vppb);
    return place && state_->slots ? state_->slots->waits_for(*place) : std::string();
}

HostState QemuHost::state() const { return state_->state; }
const std::string& QemuHost::detail() const { return state_->detail; }
const HostPlan& QemuHost::plan() const { return state_->plan; }
const std::string& QemuHost::folder() const { return state_->folder; }
std::optional<pid_t> QemuHost::pid() const {
    if (!state_->child || state_->state == HostState::kStopped) return std::nullopt;
    return state_->child->pid();
}
std::optional<std::chrono::milliseconds> QemuHost::boot_time() const { return state_->boot_time; }

}  // namespace memtide::emul
