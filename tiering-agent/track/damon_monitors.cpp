#include "tiering-agent/track/damon_monitors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr std::string_view kDaemons = "sys/kernel/mm/damon/admin/kdamonds";
constexpr std::string_view kEvent = "events/damon/damon_aggregated";

constexpr std::size_t kEventBytes = 64;  // of a perf record
// The interval at which the kernel would look for new mappings: never in a window. By this number the
// monitors of an agent are told from those of others.
constexpr std::string_view kOurMark = "3600000077";
// That the kernel's thread may take to go over its regions, beside the windows themselves.
constexpr milliseconds kPatience{2'000};

std::string daemon(std::size_t number, std::string_view file) {
    return fmt::format("{}/{}/{}", kDaemons, number, file);
}
std::string context(std::size_t number, std::string_view file) {
    return daemon(number, fmt::format("contexts/0/{}", file));
}
std::string number_of_daemons() { return fmt::format("{}/nr_kdamonds", kDaemons); }

Result<std::string> find_event(const Files& files) {
    for (const std::string_view root : {"sys/kernel/tracing", "sys/kernel/debug/tracing"})
        if (std::string event = fmt::format("{}/{}", root, kEvent); files.exists(event + "/format"))
            return event;
    return fail(ErrorCode::kUnavailable,
                "there is no trace event damon:damon_aggregated: the kernel has no DAMON, or tracefs is not "
                "mounted (mount -t tracefs tracefs /sys/kernel/tracing)");
}

// A monitor that somebody else has set up.
std::optional<std::string> find_stranger(const Files& files) {
    for (const std::string& name : files.list(std::string(kDaemons))) {
        if (name == "nr_kdamonds") continue;
        const std::string folder = fmt::format("{}/{}", kDaemons, name);
        const auto contexts = files.read(folder + "/contexts/nr_contexts");
        if (contexts && *contexts == "0") continue;
        const auto mark = files.read(folder + "/contexts/0/monitoring_attrs/intervals/update_us");
        if (!mark || *mark != kOurMark) return name;
    }
    return std::nullopt;
}

Result<> turn_off_all(Files& files) {
    for (const std::string& name : files.list(std::string(kDaemons))) {
        const std::string state = fmt::format("{}/{}/state", kDaemons, name);
        if (const auto is = files.read(state); is && *is == "on")
            if (auto off = files.write(state, "off"); !off) return off;
    }
    return {};
}

Result<> write_all(Files& files, std::span<const std::pair<std::string, std::string>> settings) {
    for (const auto& [file, value] : settings)
        if (auto set = files.write(file, value); !set) return set;
    return {};
}

Result<> take_all(Files& files) {
    if (!files.exists(number_of_daemons()))
        return fail(ErrorCode::kUnavailable, "this kernel has no DAMON (CONFIG_DAMON_SYSFS)");
    if (const auto stranger = find_stranger(files))
        return fail(ErrorCode::kUnavailable, fmt::format("somebody else uses DAMON (kdamond {})", *stranger));
    if (auto off = turn_off_all(files); !off) return off;
    if (auto made = files.write(number_of_daemons(), std::to_string(DamonMonitors::kMost)); !made)
        return made;
    for (unsigned i = 0; i < DamonMonitors::kMost; ++i) {
        const std::array<std::pair<std::string, std::string>, 4> settings{
            {{daemon(i, "contexts/nr_contexts"), "1"},
             {context(i, "operations"), "vaddr"},
             {context(i, "monitoring_attrs/intervals/update_us"), std::string(kOurMark)},
             {context(i, "targets/nr_targets"), "1"}}};
        if (auto set = write_all(files, settings); !set) return set;
    }
    return {};
}

// Waits for the end of a pipe, whatever signals say, and turns off what is on.
constexpr std::string_view kGuard =
    "trap '' HUP INT TERM; cat >/dev/null; for state in \"$0\"/*/state; do echo off >\"$state\"; done";

Result<process::Child> spawn_guard(const Files& files, int input) {
    process::Command command;
    command.argv = {"/bin/sh", "-c", std::string(kGuard), files.absolute(std::string(kDaemons))};
    command.standard_input = process::Stream::from_fd(input);
    command.standard_output = command.standard_error = process::Stream::null();
    command.death_signal = 0;
    command.new_session = true;
    return process::Child::spawn(command);
}

}  // namespace

Result<DamonMonitors> DamonMonitors::claim(Files& files) {
    const auto event = find_event(files);
    if (!event) return std::unexpected(event.error());
    const auto format = files.read(*event + "/format");
    if (!format) return std::unexpected(format.error());
    const auto layout = DamonEventLayout::parse(*format);
    if (!layout) return std::unexpected(layout.error());
    const auto id = files.read_number(*event + "/id");
    if (!id) return std::unexpected(id.error());
    if (auto ours = take_all(files); !ours) return std::unexpected(ours.error());
    DamonMonitors monitors(files, *layout, *id);
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("make", "a pipe", errno);
    monitors.guarded_ = ends[1];
    auto guard = spawn_guard(files, ends[0]);
    ::close(ends[0]);
    if (!guard) return std::unexpected(guard.error());
    monitors.guard_.emplace(*std::move(guard));
    return monitors;
}

DamonMonitors::~DamonMonitors() {
    if (files_ == nullptr) return;
    (void)turn_off_all(*files_);
    (void)files_->write(number_of_daemons(), "0");
    if (guarded_ >= 0) ::close(guarded_);
}

DamonMonitors::DamonMonitors(DamonMonitors&& other) noexcept
    : files_(std::exchange(other.files_, nullptr)),
      layout_(other.layout_),
      event_(other.event_),
      monitors_(std::move(other.monitors_)),
      region_cost_(other.region_cost_),
      guard_(std::move(other.guard_)),
      guarded_(std::exchange(other.guarded_, -1)) {}

Result<> DamonMonitors::begin(int pid, const Wish& wish) {
    if (const auto old = monitors_.find(pid); old != monitors_.end()) {
        turn_off(old->second);
        monitors_.erase(old);
    }
    std::array<bool, kMost> used{};
    for (const auto& [other, monitor] : monitors_) used.at(monitor.number) = true;
    const auto number = static_cast<std::size_t>(std::ranges::find(used, false) - used.begin());
    if (number == kMost)
        return fail(ErrorCode::kExhausted, fmt::format("more than {} processes are watched at once", kMost));
    if (auto ready = set_up(number, pid, wish); !ready) return ready;
    if (auto on = files_->write(daemon(number, "state"), "on"); !on) {
        if (on.error().code == ErrorCode::kInvalidArgument)
            return fail(ErrorCode::kNotFound, "DAMON says that it has ended");
        return on;
    }
    const auto thread = files_->read_number(daemon(number, "pid"));
    auto ring = thread ? PerfRing::open(trace_event(event_), {.thread = static_cast<int>(*thread)},
                                        2 * kEventBytes * wish.regions)
                       : Result<PerfRing>(std::unexpected(thread.error()));
    if (!ring) {
        (void)files_->write(daemon(number, "state"), "off");
        return std::unexpected(ring.error());
    }
    monitors_.emplace(pid,
                      Monitor{.number = number,
                              .thread = static_cast<int>(*thread),
                              .wish = wish,
                              .ring = *std::move(ring),
                              .aggregation = {},
                              .deadline = steady_clock::now() + 2 * wish.windows * wish.window + kPatience});
    return {};
}

// In this order: a least number of regions above the most is refused.
Result<> DamonMonitors::set_up(std::size_t number, int pid, const Wish& wish) {
    const std::string intervals = context(number, "monitoring_attrs/intervals");
    const std::string regions = context(number, "monitoring_attrs/nr_regions");
    const std::array<std::pair<std::string, std::string>, 6> settings{
        {{intervals + "/sample_us", std::to_string(microseconds(wish.window).count())},
         {intervals + "/aggr_us", std::to_string(microseconds(wish.windows * wish.window).count())},
         {regions + "/min", "3"},
         {regions + "/max", std::to_string(wish.regions)},
         {regions + "/min", std::to_string(wish.regions)},
         {context(number, "targets/0/pid_target"), std::to_string(pid)}}};
    return write_all(*files_, settings);
}

Result<DamonMonitors::Seen> DamonMonitors::end(int pid) {
    const auto found = monitors_.find(pid);
    if (found == monitors_.end()) return fail(ErrorCode::kNotFound, "no window was begun");
    Monitor monitor = std::move(found->second);
    monitors_.erase(found);
    collect(monitor);
    Seen seen{.regions = {}, .windows = monitor.wish.windows, .kernel_time = turn_off(monitor)};
    if (!monitor.aggregation.is_complete()) return seen;
    learn_cost(monitor, seen.kernel_time);
    seen.regions = monitor.aggregation.regions();
    return seen;
}

void DamonMonitors::collect(Monitor& monitor) const {
    constexpr milliseconds kStep{5};
    const auto take = [&](std::uint32_t type, std::span<const std::byte> body) {
        if (type == PERF_RECORD_LOST && !monitor.aggregation.is_complete()) monitor.aggregation.clear();
        if (const auto event = layout_.decode(raw_data(type, body))) monitor.aggregation.add(*event);
    };
    while (true) {
        monitor.ring.drain(take);
        if (monitor.aggregation.is_complete() || steady_clock::now() >= monitor.deadline) return;
        monitor.ring.wait(kStep);
    }
}

// The thread ends with the pass that it is at. Nobody tells how long that takes it but this waiting for it,
// in which others may have had the processor.
microseconds DamonMonitors::turn_off(const Monitor& monitor) {
    const auto used = files_->read(fmt::format("proc/{}/schedstat", monitor.thread));
    std::int64_t count = 0;
    if (used) (void)std::from_chars(used->data(), used->data() + used->size(), count);
    const auto before = steady_clock::now();
    (void)files_->write(daemon(monitor.number, "state"), "off");
    const nanoseconds of_a_pass(count / (2 * monitor.wish.windows));
    const nanoseconds waited = steady_clock::now() - before;
    return std::chrono::duration_cast<microseconds>(nanoseconds(count) + std::min(waited, of_a_pass));
}

// In each window it prepares all regions and checks them, and has prepared them once more before it ends.
void DamonMonitors::learn_cost(const Monitor& monitor, microseconds time) {
    constexpr double kWeight = 0.25;  // of the newest measurement
    const double passes = double(monitor.wish.regions) * (2 * monitor.wish.windows + 1);
    region_cost_ += kWeight * (double(nanoseconds(time).count()) / passes - region_cost_);
}

milliseconds DamonMonitors::duration() const {
    milliseconds longest{0};
    for (const auto& [pid, monitor] : monitors_)
        longest = std::max(longest, monitor.wish.windows * monitor.wish.window);
    return longest;
}

}  // namespace memtide::agent
