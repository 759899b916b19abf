#include "tiering-agent/track/trial_pages.h"

#include <algorithm>
#include <cerrno>

#include <sys/mman.h>
#include <unistd.h>

namespace memtide::agent {
namespace {

constexpr std::size_t kTrialSize = TrialPages::kCount << kPageShift;

template <typename Action>
std::chrono::nanoseconds timed(Action&& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    return std::chrono::steady_clock::now() - start;
}

}  // namespace

Result<TrialPages> TrialPages::map() {
    void* const mapped =
        ::mmap(nullptr, kTrialSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return fail_errno("map", "some pages", errno);
    ::madvise(mapped, kTrialSize, MADV_NOHUGEPAGE);
    return TrialPages(static_cast<volatile char*>(mapped));
}

TrialPages::~TrialPages() {
    if (memory_ != nullptr) ::munmap(const_cast<char*>(memory_), kTrialSize);
}

std::chrono::nanoseconds TrialPages::write_all() {
    return timed([&] {
        for (std::size_t i = 0; i < kCount; ++i) memory_[i << kPageShift] = 1;
    });
}

std::chrono::nanoseconds TrialPages::read_all() const {
    return timed([&] {
        for (std::size_t i = 0; i < kCount; ++i) static_cast<void>(memory_[i << kPageShift]);
    });
}

Result<std::size_t> TrialPages::count(const Files& files, bool (PageMapEntry::*is_so)() const) const {
    auto map = PageMap::open(files, ::getpid());
    if (!map) return std::unexpected(map.error());
    const auto words = map->read(range().begin >> kPageShift, kCount);
    if (!words) return std::unexpected(words.error());
    return static_cast<std::size_t>(std::ranges::count_if(*words, is_so));
}

}  // namespace memtide::agent
