#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/error.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/track/page_map.h"

namespace memtide::agent {

// Some small pages of this process on which a way of looking is tried before it is used on others. Nobody has
// touched them yet.
class TrialPages {
  public:
    static constexpr std::size_t kCount = 64;

    static Result<TrialPages> map();
    ~TrialPages();
    TrialPages(TrialPages&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
    TrialPages& operator=(TrialPages&&) = delete;

    [[nodiscard]] VirtualRange range() const {
        const auto begin = reinterpret_cast<std::uint64_t>(memory_);
        return {begin, begin + (kCount << kPageShift)};
    }
    // Both answer how long that took for all of them.
    std::chrono::nanoseconds write_all();
    std::chrono::nanoseconds read_all() const;
    // Of how many the page map of this process says so.
    [[nodiscard]] Result<std::size_t> count(const Files& files, bool (PageMapEntry::*is_so)() const) const;

  private:
    explicit TrialPages(volatile char* memory) : memory_(memory) {}
    volatile char* memory_;
};

}  // namespace memtide::agent
