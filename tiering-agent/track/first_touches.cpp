#include "tiering-agent/track/first_touches.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include <unistd.h>

#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/track/memory_events.h"
#include "tiering-agent/track/trial_pages.h"

namespace memtide::agent {
namespace {

// Of each processor. When it is full the kernel drops what comes later, which is what matters least.
constexpr std::size_t kTouchRingBytes = 256 << 10;

perf_event_attr page_faults() {
    perf_event_attr attributes = page_fault_event().attributes;
    attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    attributes.use_clockid = 1;
    attributes.clockid = CLOCK_MONOTONIC;  // std::chrono::steady_clock's
    return attributes;
}

struct FaultRecord {
    int pid = 0;
    int thread = 0;
    std::uint64_t time = 0;  // ns
    std::uint64_t address = 0;
};

std::optional<FaultRecord> decode_fault(std::uint32_t type, std::span<const std::byte> body) {
    FaultRecord record;
    if (type != PERF_RECORD_SAMPLE || body.size() < sizeof record) return std::nullopt;
    std::memcpy(&record, body.data(), sizeof record);
    return record;
}

bool contains(std::span<const VirtualRange> ranges, std::uint64_t address) {
    const auto behind = std::ranges::upper_bound(ranges, address, {}, &VirtualRange::begin);
    return behind != ranges.begin() && address < std::prev(behind)->end;
}

}  // namespace

// Own pages that are touched for the first time tell whether their addresses come.
Result<FirstTouches> FirstTouches::open() {
    auto rings = open_on_each_processor([](int processor) {
        return PerfRing::open(page_faults(), {.thread = -1, .processor = processor}, kTouchRingBytes);
    });
    if (!rings) return std::unexpected(rings.error());
    FirstTouches touches(*std::move(rings));
    auto pages = TrialPages::map();
    if (!pages) return std::unexpected(pages.error());
    touches.begin(::getpid());
    pages->write_all();
    const std::array own{pages->range()};
    const Early early = touches.end(::getpid(), own, UINT64_MAX);
    const std::uint64_t first = own.front().begin >> kPageShift;
    for (std::size_t i = 0; i < TrialPages::kCount; ++i)
        if (!early.pages.contains(first + i))
            return fail(ErrorCode::kUnavailable,
                        "this kernel's page fault events do not tell their addresses");
    return touches;
}

void FirstTouches::begin(int pid) {
    if (!std::exchange(is_on_, true)) {
        windows_.clear();
        for (PerfRing& ring : rings_) {
            ring.drain([](std::uint32_t, std::span<const std::byte>) {});  // of a window that was not ended
            ring.enable();
        }
    }
    windows_[pid] = {.begun = Clock::now().time_since_epoch()};
}

void FirstTouches::collect() {
    for (const PerfRing& ring : rings_) ring.disable();
    for (PerfRing& ring : rings_)
        ring.drain([&](std::uint32_t type, std::span<const std::byte> body) {
            const auto fault = decode_fault(type, body);
            if (!fault) return;
            const auto found = windows_.find(fault->pid);
            if (found == windows_.end()) return;
            const std::chrono::nanoseconds at(static_cast<std::int64_t>(fault->time));
            if (at >= found->second.begun)
                found->second.touches.push_back({.at = at, .page = fault->address >> kPageShift});
        });
}

FirstTouches::Early FirstTouches::end(int pid, std::span<const VirtualRange> ranges, std::uint64_t most_pages,
                                      const std::unordered_set<std::uint64_t>& small) {
    if (std::exchange(is_on_, false)) collect();
    Early early;
    const auto found = windows_.find(pid);
    if (found == windows_.end()) return early;
    auto& touches = found->second.touches;
    std::ranges::stable_sort(touches, {}, &Touch::at);
    std::uint64_t taken = 0;
    bool is_full = false;  // later ones are seen only for what is first of their groups
    for (const Touch& touch : touches) {
        if (!contains(ranges, touch.page << kPageShift)) continue;
        const std::uint64_t group = touch.page / kPagesPerHuge;
        early.first_pages.try_emplace(group, touch.page);
        const bool is_small = small.contains(group);
        const bool is_in = is_small ? early.pages.contains(touch.page) : early.groups.contains(group);
        if (!is_in) {
            const std::uint64_t size = is_small ? 1 : kPagesPerHuge;
            is_full = is_full || (taken > 0 && taken + size > most_pages);
            if (is_full) continue;
            taken += size;
        }
        early.groups.insert(group);
        early.pages.insert(touch.page);
    }
    windows_.erase(found);
    return early;
}

}  // namespace memtide::agent
