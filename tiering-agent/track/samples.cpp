#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tiering-agent/track/memory_events.h"
#include "tiering-agent/track/page_looker.h"
#include "tiering-agent/track/perf_ring.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kRingBytes = 128 << 10;  // of each processor
constexpr std::uint64_t kEndOfUserSpace = std::uint64_t{1} << 63;

struct Sample {
    int pid = 0;
    std::uint64_t address = 0;
};

// Of PERF_SAMPLE_TID | PERF_SAMPLE_ADDR.
std::optional<Sample> decode_sample(std::uint32_t type, std::span<const std::byte> body) {
    Sample sample;
    if (type != PERF_RECORD_SAMPLE || body.size() < 16) return std::nullopt;
    std::memcpy(&sample.pid, body.data(), sizeof sample.pid);
    std::memcpy(&sample.address, body.data() + 8, sizeof sample.address);
    // IBS samples operations without an address, and the kernel's, too.
    if (sample.address == 0 || sample.address >= kEndOfUserSpace) return std::nullopt;
    return sample;
}

// The events on one processor, or of one thread: all into the ring of the first.
class Sampler {
  public:
    static Result<Sampler> open(const std::vector<MemoryEvent>& events, PerfRing::Where where) {
        Sampler sampler;
        for (const MemoryEvent& event : events) {
            where.group = -1;
            if (event.leader) {
                auto leader = PerfRing::open(*event.leader, where, 0);
                if (!leader) return std::unexpected(std::move(leader.error()).with_context(event.name));
                where.group = leader->file();
                sampler.rings_.push_back(*std::move(leader));
            }
            auto ring = PerfRing::open(event.attributes, where, sampler.has_ring_ ? 0 : kRingBytes);
            if (!ring) return std::unexpected(std::move(ring.error()).with_context(event.name));
            if (sampler.has_ring_) {
                if (auto joined = ring->join(sampler.rings_[sampler.ring_]); !joined)
                    return std::unexpected(joined.error());
            } else {
                sampler.has_ring_ = true;
                sampler.ring_ = sampler.rings_.size();
            }
            sampler.rings_.push_back(*std::move(ring));
        }
        return sampler;
    }
    void enable() const {
        for (const PerfRing& ring : rings_) ring.enable();
    }
    void disable() const {
        for (const PerfRing& ring : rings_) ring.disable();
    }
    template <typename Take>
    void drain(Take take) {
        rings_[ring_].drain([&](std::uint32_t type, std::span<const std::byte> body) {
            if (const auto sample = decode_sample(type, body)) take(*sample);
        });
    }

  private:
    std::vector<PerfRing> rings_;
    std::size_t ring_ = 0;
    bool has_ring_ = false;
};

class SampleTracker final : public Tracker {
  public:
    SampleTracker(std::vector<Sampler> samplers, PageLooker looker, std::string name,
                  std::unique_ptr<Tracker> glancer)
        : samplers_(std::move(samplers)),
          looker_(std::move(looker)),
          name_(std::move(name)),
          glancer_(std::move(glancer)) {}

    [[nodiscard]] std::string_view name() const override { return name_; }
    [[nodiscard]] std::string_view sees() const override { return "samples of reads and writes"; }
    [[nodiscard]] bool is_sharp() const override { return true; }
    [[nodiscard]] Sentinel* sentinel() override { return glancer_ ? glancer_->sentinel() : nullptr; }
    microseconds take_kernel_time() override {
        return glancer_ ? glancer_->take_kernel_time() : microseconds(0);
    }
    Result<> refresh() override { return looker_.refresh(); }

    Result<> begin(int pid, const WindowWish&) override {
        if (!std::exchange(is_on_, true)) {
            pages_.clear();
            for (Sampler& sampler : samplers_) {
                sampler.drain([](const Sample&) {});  // of a window that was not looked at
                sampler.enable();
            }
        }
        pages_[pid].clear();
        return {};
    }

    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        if (std::exchange(is_on_, false)) collect();
        const auto found = pages_.find(pid);
        if (found == pages_.end()) return fail(ErrorCode::kNotFound, "no window was begun");
        auto next = found->second.cbegin();
        const auto end = found->second.cend();
        std::vector<std::uint64_t> in_huge;
        const PageLooker::Ask is_sampled = [&](std::uint64_t first, std::uint64_t count, PageMapEntry) {
            while (next != end && *next < first) ++next;
            const bool touched = next != end && *next < first + count;
            if (count > 1)
                while (next != end && *next < first + count) in_huge.push_back(*next++);
            return Touches{.touched = touched, .windows = 1};
        };
        auto look = looker_.look(pid, ranges, tiers, is_sampled, visit);
        if (look) look->touched_in_huge = std::move(in_huge);
        return look;
    }

  private:
    void collect() {
        for (const Sampler& sampler : samplers_) sampler.disable();
        for (Sampler& sampler : samplers_)
            sampler.drain([&](const Sample& sample) {
                if (const auto wanted = pages_.find(sample.pid); wanted != pages_.end())
                    wanted->second.push_back(sample.address >> kPageShift);
            });
        for (auto& [pid, pages] : pages_) std::ranges::sort(pages);
    }

    std::vector<Sampler> samplers_;
    PageLooker looker_;
    std::string name_;
    std::unique_ptr<Tracker> glancer_;
    std::map<int, std::vector<std::uint64_t>> pages_;  // by pid: those sampled
    bool is_on_ = false;
};

// Loads of this thread are sampled, and their addresses are those of what it reads.
Result<> try_sampling(const std::vector<MemoryEvent>& events) {
    constexpr std::size_t kSize = 1 << 20;
    constexpr milliseconds kLongest{200};
    auto sampler = Sampler::open(events, {.thread = 0});
    if (!sampler) return std::unexpected(sampler.error());
    const std::vector<char> memory(kSize);
    const auto begin = reinterpret_cast<std::uint64_t>(memory.data());
    sampler->enable();
    std::size_t hits = 0;
    for (const auto until = std::chrono::steady_clock::now() + kLongest;
         hits == 0 && std::chrono::steady_clock::now() < until;) {
        for (std::size_t at = 0; at < kSize; at += 64)
            (void)*static_cast<const volatile char*>(memory.data() + at);
        sampler->drain([&](const Sample& sample) {
            hits += sample.address >= begin && sample.address < begin + kSize ? 1 : 0;
        });
    }
    sampler->disable();
    if (hits == 0)
        return fail(ErrorCode::kUnavailable, "this processor's samples have no addresses of memory");
    return {};
}

}  // namespace

Result<std::unique_ptr<Tracker>> make_sample_tracker(Files& files, const std::vector<MemoryEvent>& events,
                                                     std::unique_ptr<Tracker> glancer) {
    auto looker = PageLooker::make(files);
    if (!looker) return std::unexpected(looker.error());
    auto samplers = open_on_each_processor(
        [&](int processor) { return Sampler::open(events, {.thread = -1, .processor = processor}); });
    if (!samplers) return std::unexpected(samplers.error());
    return std::make_unique<SampleTracker>(*std::move(samplers), *std::move(looker), events.front().name,
                                           std::move(glancer));
}

Result<std::unique_ptr<Tracker>> make_hint_fault_tracker(Files& files) {
    const auto balancing = files.read("proc/sys/kernel/numa_balancing");
    if (!balancing) return fail(ErrorCode::kUnavailable, "this kernel has no NUMA balancing");
    if (*balancing == "0")
        return fail(
            ErrorCode::kUnavailable,
            "the kernel's NUMA balancing is off: there are no hint faults (sysctl kernel.numa_balancing)");
    return make_sample_tracker(files, {page_fault_event()}, nullptr);
}

Result<std::vector<MemoryEvent>> try_memory_events(const Files& files) {
    constexpr unsigned kFrequency = 1'000;
    auto events = find_memory_events(files, kFrequency);
    if (!events) return events;
    if (auto works = try_sampling(*events); !works) return std::unexpected(works.error());
    return events;
}

}  // namespace memtide::agent
