#include "cxl-emul/rack/guest_helper.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/reboot.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/log/log.h"
#include "common/process/child.h"
#include "cxl-emul/qemu/command_line.h"
#include "cxl-emul/rack/agent_keeper.h"
#include "cxl-emul/rack/frame_link.h"
#include "cxl-emul/rack/guest_cxl.h"
#include "cxl-emul/rack/guest_program.h"
#include "cxl-emul/rack/messages.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;
namespace fs = std::filesystem;
using std::chrono::steady_clock;

namespace {

constexpr const char* kSysfs = "/sys";
constexpr auto kEnumerationTime = std::chrono::seconds(60);
constexpr auto kSlotPowerTime = std::chrono::seconds(20);

asio::awaitable<void> pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

// Opens the virtio-serial port that has our name.
Result<int> open_port() {
    std::error_code error;
    for (fs::directory_iterator it("/sys/class/virtio-ports", error), end; !error && it != end;
         it.increment(error)) {
        std::ifstream in(it->path() / "name");
        std::string name;
        std::getline(in, name);
        if (name != kGuestPortName) continue;
        const auto device = "/dev/" + it->path().filename().string();
        const int fd = ::open(device.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0) return fail_errno("open", device, errno);
        return fd;
    }
    return fail(ErrorCode::kNotFound, fmt::format("no virtio-serial port named {}", kGuestPortName));
}

json::array memdevs_json() {
    json::array list;
    for (const auto& memdev : guest_memdevs(kSysfs)) {
        json::object entry;
        entry["name"] = memdev.name;
        entry["serial"] = memdev.serial;
        entry["size"] = memdev.size;
        list.push_back(std::move(entry));
    }
    return list;
}

class Helper {
  public:
    Helper(asio::any_io_executor executor, std::shared_ptr<FrameLink> link)
        : executor_(std::move(executor)), link_(std::move(link)) {}

    asio::awaitable<void> run() {
        link_->send_raw(hello_marker());
        for (;;) {
            auto frame = co_await link_->receive();
            if (!frame) co_return;
            take(*frame);
        }
    }

  private:
    void take(const Frame& frame);
    asio::awaitable<void> serve(std::uint32_t stream, json::object request);
    asio::awaitable<Result<json::object>> answer(const std::string& op, const json::object& request);
    asio::awaitable<Result<json::object>> configure(const json::object& request);
    asio::awaitable<Result<json::object>> release_slot(unsigned slot);
    void start_program(std::uint32_t stream, const json::object& request);

    asio::any_io_executor executor_;
    std::shared_ptr<FrameLink> link_;
    std::map<std::uint32_t, std::shared_ptr<GuestProgram>> programs_;
    std::shared_ptr<AgentKeeper> agent_;
};

void Helper::take(const Frame& frame) {
    if (frame.type == FrameType::kRequest) {
        auto request = parse_message(frame);
        if (!request) {
            link_->send(error_reply(frame.stream, request.error()));
        } else if (text_of(*request, "op") == "exec") {
            start_program(frame.stream, *request);
        } else {
            asio::co_spawn(executor_, serve(frame.stream, std::move(*request)), asio::detached);
        }
        return;
    }
    const auto program = programs_.find(frame.stream);
    if (program == programs_.end()) return;
    if (frame.type == FrameType::kReply) {  // the supervisor's way to say that nobody listens any more
        auto gone = program->second;
        programs_.erase(program);
        gone->abandon();
    } else {
        program->second->take(frame);
    }
}

void Helper::start_program(std::uint32_t stream, const json::object& request) {
    ProgramRequest program;
    program.argv = texts_of(request, "argv");
    program.working_directory = text_of(request, "cwd");
    if (const auto* variables = request.if_contains("env"); variables && variables->is_object()) {
        for (const auto& [name, value] : variables->get_object()) {
            if (value.is_string()) program.environment[std::string(name)] = std::string(value.get_string());
        }
    }
    if (program.argv.empty()) {
        link_->send(error_reply(stream, {ErrorCode::kInvalidArgument, "exec: no command"}));
        return;
    }
    programs_[stream] = GuestProgram::start(
        executor_, stream, std::move(program), [link = link_](const Frame& frame) { link->send(frame); },
        [this, stream] { programs_.erase(stream); });
}

asio::awaitable<void> Helper::serve(std::uint32_t stream, json::object request) {
    auto answered = co_await answer(text_of(request, "op"), request);
    link_->send(answered ? reply(stream, std::move(*answered)) : error_reply(stream, answered.error()));
}

asio::awaitable<Result<json::object>> Helper::answer(const std::string& op, const json::object& request) {
    json::object done;
    if (op == "configure") co_return co_await configure(request);
    if (op == "memdevs") {
        done["memdevs"] = memdevs_json();
        co_return done;
    }
    if (op == "check-slot" || op == "release-slot") {
        const auto slot = static_cast<unsigned>(number_of(request, "slot"));
        auto unused = check_slot_unused(kSysfs, slot);
        if (!unused) co_return std::unexpected(unused.error());
        if (op == "check-slot") co_return done;
        co_return co_await release_slot(slot);
    }
    if (op == "power-off") {
        if (agent_) agent_->stop();
        for (auto& [stream, program] : programs_) program->abandon();
        co_await pause(std::chrono::milliseconds(50));
        ::sync();
        ::reboot(RB_POWER_OFF);
        co_return fail(ErrorCode::kPermission, "cannot power the guest off");
    }
    co_return fail(ErrorCode::kInvalidArgument, "the helper does not know " + op);
}

asio::awaitable<Result<json::object>> Helper::configure(const json::object& request) {
    const auto slots = static_cast<unsigned>(number_of(request, "slots"));
    const auto* cxl = request.if_contains("cxl");
    const auto deadline = steady_clock::now() + kEnumerationTime;
    while (cxl && cxl->is_bool() && cxl->get_bool() && !cxl_bus_is_enumerated(kSysfs, slots)) {
        if (steady_clock::now() >= deadline) {
            co_return fail(ErrorCode::kTimeout,
                           fmt::format("the guest has no CXL root with {} hot-plug slots after {} s", slots,
                                       kEnumerationTime.count()));
        }
        co_await pause(std::chrono::milliseconds(50));
    }
    if (auto argv = texts_of(request, "agent"); !argv.empty() && !agent_)
        agent_ = AgentKeeper::start(executor_, std::move(argv), link_);
    json::object done;
    utsname kernel{};
    ::uname(&kernel);
    done["kernel"] = kernel.release;
    double uptime = 0;
    std::ifstream("/proc/uptime") >> uptime;
    done["uptime_seconds"] = uptime;
    done["memdevs"] = memdevs_json();
    co_return done;
}

// In a process of its own: the write sleeps for as long as the kernel takes, and could hang in it for good.
asio::awaitable<Result<json::object>> Helper::release_slot(unsigned slot) {
    process::Command command;
    command.argv = {"/run/memtide/busybox", "sh", "-c",
                    fmt::format("echo 0 >/sys/bus/pci/slots/{}/power", slot)};
    command.standard_output = process::Stream::null();
    command.standard_error = process::Stream::null();
    auto child = process::Child::spawn(command);
    if (!child) co_return std::unexpected(child.error());
    const auto deadline = steady_clock::now() + kSlotPowerTime;
    while (!child->try_wait()) {
        if (steady_clock::now() >= deadline)
            co_return fail(ErrorCode::kTimeout,
                           fmt::format("the guest's kernel hangs powering slot {} off", slot));
        co_await pause(std::chrono::milliseconds(10));
    }
    if (!child->try_wait()->succeeded())
        co_return fail(ErrorCode::kIo, fmt::format("the guest's kernel refused to power slot {} off", slot));
    co_return json::object();
}

}  // namespace

int run_guest_helper() {
    std::signal(SIGPIPE, SIG_IGN);
    auto port = open_port();
    if (!port) {
        log::error("guest helper", {{"error", port.error()}});
        return 1;
    }
    asio::io_context context(1);
    auto link = FrameLink::open(context.get_executor(), *port, FrameLink::OnGarbage::kResynchronise);
    auto helper = std::make_shared<Helper>(context.get_executor(), link);
    asio::co_spawn(
        context, [](std::shared_ptr<Helper> h) -> asio::awaitable<void> { co_await h->run(); }(helper),
        [&context](const std::exception_ptr&) { context.stop(); });
    context.run();
    return 1;
}

}  // namespace memtide::emul
