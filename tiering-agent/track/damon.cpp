#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tiering-agent/track/damon_events.h"
#include "tiering-agent/track/page_looker.h"
#include "tiering-agent/track/trace_ring.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kDaemons = "sys/kernel/mm/damon/admin/kdamonds";
constexpr std::string_view kEvent = "events/damon/damon_aggregated";

constexpr unsigned kMostProcesses = 32;
// Of all processes that are watched at once. The kernel takes some 100 bytes for each, and 64 for its event.
constexpr std::uint64_t kMostRegions = 1 << 16;
constexpr std::uint64_t kLeastRegions = 64;
constexpr std::size_t kEventBytes = 64;
// What a start and an end cost is shared by so many windows.
constexpr unsigned kSamples = 4;
constexpr unsigned kPasses = 2 * kSamples + 1;  // over all regions; the last one is for nothing
// The interval at which the kernel would look for new mappings: never in a window. By this number the monitors
// of an agent are told from those of others.
constexpr std::string_view kOurMark = "3600000077";
// Half a huge page: its middle is then in a region that is all its own.
constexpr std::uint64_t kPagesPerRegionOfHuge = kPagesPerHuge / 2;
constexpr double kWeight = 0.25;  // of the newest measurement
// That the kernel's thread takes to go over its regions, beside the windows themselves.
constexpr milliseconds kMostPatience{2'000};

std::string daemon(std::size_t number, std::string_view file) {
    return fmt::format("{}/{}/{}", kDaemons, number, file);
}
std::string context(std::size_t number, std::string_view file) {
    return daemon(number, fmt::format("contexts/0/{}", file));
}

Result<std::string> find_event(const Files& files) {
    for (const std::string_view root : {"sys/kernel/tracing", "sys/kernel/debug/tracing"})
        if (std::string event = fmt::format("{}/{}", root, kEvent); files.exists(event + "/format"))
            return event;
    return fail(ErrorCode::kUnavailable,
                "the trace event damon:damon_aggregated is not there: this kernel has no DAMON, or tracefs is not "
                "mounted (mount -t tracefs tracefs /sys/kernel/tracing)");
}

// A monitor that is on, or has been set up, and is not an agent's.
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

Result<> claim(Files& files) {
    if (!files.exists(fmt::format("{}/nr_kdamonds", kDaemons)))
        return fail(ErrorCode::kUnavailable, "this kernel has no DAMON (CONFIG_DAMON_SYSFS)");
    if (const auto stranger = find_stranger(files))
        return fail(ErrorCode::kUnavailable, fmt::format("somebody else uses DAMON (kdamond {})", *stranger));
    if (auto off = turn_off_all(files); !off) return off;
    if (auto made = files.write(fmt::format("{}/nr_kdamonds", kDaemons), std::to_string(kMostProcesses)); !made)
        return made;
    for (unsigned i = 0; i < kMostProcesses; ++i) {
        const std::array<std::pair<std::string, std::string_view>, 5> settings{
            {{daemon(i, "contexts/nr_contexts"), "1"},
             {context(i, "operations"), "vaddr"},
             {context(i, "monitoring_attrs/intervals/update_us"), kOurMark},
             {context(i, "targets/nr_targets"), "1"},
             {context(i, "monitoring_attrs/nr_regions/min"), "3"}}};
        for (const auto& [file, value] : settings)
            if (auto set = files.write(file, value); !set) return set;
    }
    return {};
}

// The kernel's monitor of one process while a window lasts.
struct Monitor {
    std::size_t number;
    int thread = 0;  // of the kernel
    std::uint64_t regions = 0;
    TraceRing ring;
    DamonAggregation aggregation;
    steady_clock::time_point deadline;
};

class DamonTracker final : public Tracker {
  public:
    DamonTracker(Files& files, PageLooker looker, DamonEventLayout layout, std::uint64_t event)
        : files_(files), looker_(std::move(looker)), layout_(layout), event_(event) {}
    ~DamonTracker() override {
        (void)turn_off_all(files_);
        (void)files_.write(fmt::format("{}/nr_kdamonds", kDaemons), "0");
    }

    [[nodiscard]] std::string_view name() const override { return "damon"; }
    [[nodiscard]] std::string_view sees() const override { return "reads and writes"; }
    [[nodiscard]] std::chrono::nanoseconds touch_cost() const override { return {}; }
    microseconds take_kernel_time() override {
        return std::chrono::duration_cast<microseconds>(std::exchange(kernel_time_, {}));
    }
    // Each region is checked as long after it was begun as any other.
    [[nodiscard]] bool is_sharp() const override { return true; }
    Result<> refresh() override { return looker_.refresh(); }
    [[nodiscard]] std::size_t most_at_once() const override { return kMostProcesses; }
    [[nodiscard]] milliseconds duration(milliseconds window) const override { return kSamples * window; }

    Result<> begin(int pid, const WindowWish& wish) override {
        monitors_.erase(pid);
        std::size_t number = 0;
        while (number < kMostProcesses && std::ranges::any_of(monitors_, [&](const auto& used) {
                   return used.second.number == number;
               }))
            ++number;
        if (number == kMostProcesses)
            return fail(ErrorCode::kExhausted, "more processes at once than there are monitors for");
        const std::uint64_t regions = regions_for(wish);
        if (auto ready = set_up(number, pid, wish.length, regions); !ready) return ready;
        if (auto on = files_.write(daemon(number, "state"), "on"); !on) {
            // The process is gone, or somebody else has it all.
            if (on.error().code == ErrorCode::kInvalidArgument)
                return fail(ErrorCode::kNotFound, "it has ended");
            return on;
        }
        const auto thread = files_.read_number(daemon(number, "pid"));
        if (!thread) return std::unexpected(thread.error());
        auto ring = TraceRing::open(event_, static_cast<int>(*thread), 2 * kEventBytes * regions);
        if (!ring) {
            (void)files_.write(daemon(number, "state"), "off");
            return std::unexpected(ring.error());
        }
        monitors_.emplace(pid, Monitor{.number = number,
                                       .thread = static_cast<int>(*thread),
                                       .regions = regions,
                                       .ring = *std::move(ring),
                                       .aggregation = {},
                                       .deadline = steady_clock::now() + 2 * duration(wish.length) + kMostPatience});
        return {};
    }

    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        const auto found = monitors_.find(pid);
        if (found == monitors_.end()) return fail(ErrorCode::kNotFound, "no window was begun");
        auto monitor = std::move(found->second);
        monitors_.erase(found);
        collect(monitor);
        end(monitor);
        std::span<const DamonRegion> regions;
        if (monitor.aggregation.is_complete()) regions = monitor.aggregation.regions();
        RegionCursor cursor(regions);
        const PageLooker::Ask ask = [&](std::uint64_t page, PageMapEntry) {
            const DamonRegion* const region = cursor.find(page);
            if (region == nullptr) return Touches{.touched = 0, .windows = 0};
            return Touches{.touched = static_cast<std::uint8_t>(std::min(region->accesses, kSamples)),
                           .windows = kSamples};
        };
        return looker_.look(pid, ranges, tiers, ask, visit);
    }

  private:
    Result<> set_up(std::size_t number, int pid, milliseconds window, std::uint64_t regions) {
        const std::string intervals = context(number, "monitoring_attrs/intervals");
        const std::string count = context(number, "monitoring_attrs/nr_regions");
        const auto sample = std::to_string(microseconds(window).count());
        const auto all = std::to_string(microseconds(kSamples * window).count());
        const auto most = std::to_string(regions);
        // In this order: a least number above the most one is refused.
        const std::array<std::pair<std::string, std::string_view>, 6> settings{{
            {intervals + "/sample_us", sample},
            {intervals + "/aggr_us", all},
            {count + "/min", "3"},
            {count + "/max", most},
            {count + "/min", most},
            {context(number, "targets/0/pid_target"), ""},
        }};
        for (const auto& [file, value] : settings)
            if (auto set = files_.write(file, value.empty() ? std::to_string(pid) : std::string(value)); !set)
                return set;
        return {};
    }

    void collect(Monitor& monitor) const {
        constexpr milliseconds kStep{5};
        while (true) {
            monitor.ring.drain(
                [&](std::span<const std::byte> raw) {
                    if (const auto event = layout_.decode(raw)) monitor.aggregation.add(*event);
                },
                [&] {
                    if (!monitor.aggregation.is_complete()) monitor.aggregation.note_loss();
                });
            if (monitor.aggregation.is_complete() || steady_clock::now() >= monitor.deadline) return;
            monitor.ring.wait(kStep);
        }
    }

    // The thread's last pass ends with it, and is told by nobody: this waits for it.
    void end(const Monitor& monitor) {
        const auto used = files_.read(fmt::format("proc/{}/schedstat", monitor.thread));
        std::int64_t nanoseconds = 0;
        if (used) (void)std::from_chars(used->data(), used->data() + used->size(), nanoseconds);
        const auto before = steady_clock::now();
        (void)files_.write(daemon(monitor.number, "state"), "off");
        const std::chrono::nanoseconds all =
            std::chrono::nanoseconds(nanoseconds) + (steady_clock::now() - before);
        kernel_time_ += all;
        if (!monitor.aggregation.is_complete()) return;
        const auto passes = double(monitor.regions) * kPasses;
        region_cost_ += kWeight * (double(all.count()) / passes - region_cost_);
    }

    // One for each page or half of a huge one, but no more than are gone over in the time that a window lasts,
    // and with the budget there is. Their borders lie elsewhere each time, so that what is warm in a large
    // region and what is not comes out in the end.
    std::uint64_t regions_for(const WindowWish& wish) {
        constexpr unsigned kJitter = 8;
        const std::uint64_t wanted =
            wish.mostly_huge ? wish.area_pages / kPagesPerRegionOfHuge : wish.area_pages;
        const auto in_time = [&](std::chrono::nanoseconds time, unsigned passes) {
            return static_cast<std::uint64_t>(double(time.count()) / (region_cost_ * passes));
        };
        const std::uint64_t most =
            std::min({kMostRegions, in_time(wish.length, 1), in_time(wish.budget, kPasses)});
        if (most >= wanted) return std::max(wanted, kLeastRegions);
        return std::max(most - most * (windows_++ % kJitter) / (4 * kJitter), kLeastRegions);
    }

    Files& files_;
    PageLooker looker_;
    DamonEventLayout layout_;
    std::uint64_t event_;
    std::map<int, Monitor> monitors_;  // by pid
    double region_cost_ = 4'000;       // nanoseconds that a pass takes for each, as measured so far
    unsigned windows_ = 0;
    std::chrono::nanoseconds kernel_time_{0};
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_damon_tracker(Files& files) {
    const auto event = find_event(files);
    if (!event) return std::unexpected(event.error());
    const auto format = files.read(*event + "/format");
    if (!format) return std::unexpected(format.error());
    const auto layout = DamonEventLayout::parse(*format);
    if (!layout) return std::unexpected(layout.error());
    const auto id = files.read_number(*event + "/id");
    if (!id) return std::unexpected(id.error());
    auto looker = PageLooker::make(files);
    if (!looker) return std::unexpected(looker.error());
    if (auto ours = claim(files); !ours) return std::unexpected(ours.error());
    return std::make_unique<DamonTracker>(files, *std::move(looker), *layout, *id);
}

}  // namespace memtide::agent
