#include "libmemtide/src/hints.h"

#include <cerrno>
#include <cstring>
#include <mutex>

#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/hints/hint_table.h"
#include "libmemtide/src/failure.h"

namespace memtide::library {
namespace {

constexpr unsigned kShift = 12;
constexpr std::uintptr_t kPage = std::uintptr_t{1} << kShift;
std::atomic<bool> has_hints{false};

// The mapping is private: a child of fork(2) gets a copy, and goes on with it as its own.
class Table {
  public:
    // 0, or errno.
    int open() {
        if (header_ != nullptr) return 0;
        const int file = ::memfd_create(hint_table::kMemfdName, MFD_CLOEXEC);
        if (file < 0) return errno;
        int error = ::ftruncate(file, hint_table::kSize) == 0 ? 0 : errno;
        void* const mapped =
            error == 0 ? ::mmap(nullptr, hint_table::kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0)
                       : MAP_FAILED;
        if (error == 0 && mapped == MAP_FAILED) error = errno;
        ::close(file);
        if (error != 0) return error;
        header_ = static_cast<hint_table::Header*>(mapped);
        std::memcpy(header_->magic, hint_table::kMagic, sizeof header_->magic);
        return 0;
    }
    // Others read it meanwhile: they look at the sequence before and after.
    void write(std::span<const HintRange> ranges) {
        auto* const entries = reinterpret_cast<hint_table::Entry*>(header_ + 1);
        const std::atomic_ref sequence(header_->sequence);
        const std::uint32_t before = sequence.load(std::memory_order_relaxed);
        sequence.store(before + 1, std::memory_order_seq_cst);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        for (std::size_t i = 0; i < ranges.size(); ++i)
            entries[i] = {
                .begin_and_hint = ranges[i].first << kShift | static_cast<std::uint64_t>(ranges[i].hint),
                .end = ranges[i].end << kShift};
        header_->entries = static_cast<std::uint32_t>(ranges.size());
        std::atomic_thread_fence(std::memory_order_seq_cst);
        sequence.store(before + 2, std::memory_order_release);
    }

  private:
    hint_table::Header* header_ = nullptr;
};

struct State {
    std::mutex mutex;
    Table table;
    HintRanges ranges;
};
State& state() {
    static auto* const kState = [] {
        auto* const made = new State;
        // Nobody is amid a change in the child.
        ::pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); },
                         [] { state().mutex.unlock(); });
        return made;
    }();
    return *kState;
}

int set(HintRange range) {
    State& of = state();
    const std::lock_guard lock(of.mutex);
    if (const int error = of.table.open(); error != 0) {
        set_failure(error, fmt::format("no room for hints can be had: {}", ::strerrordesc_np(error)));
        return error;
    }
    if (!of.ranges.set(range, hint_table::kMostEntries)) {
        set_failure(ENOSPC, fmt::format("{} separate ranges have hints: that is all there can be",
                                        of.ranges.ranges().size()));
        return ENOSPC;
    }
    of.table.write(of.ranges.ranges());
    has_hints = !of.ranges.is_empty();
    return 0;
}

}  // namespace

int give_hint(std::uintptr_t address, std::size_t length, Hint hint) {
    std::uintptr_t end = 0;
    if (__builtin_add_overflow(address, length, &end) || end > UINTPTR_MAX - kPage) {
        set_failure(EINVAL, "the range is beyond the last address");
        return EINVAL;
    }
    if (length == 0) return 0;
    const bool is_cold = hint == Hint::kCold;
    const std::uint64_t first = (address + (is_cold ? kPage - 1 : 0)) >> kShift;
    const std::uint64_t behind = (end + (is_cold ? 0 : kPage - 1)) >> kShift;
    if (hint == Hint::kNone && !there_are_hints()) return 0;
    return set({first, behind, hint});
}

void take_hints_back(std::uintptr_t address, std::size_t length) {
    if (!there_are_hints()) return;
    const HintRange range{(address + kPage - 1) >> kShift, (address + length) >> kShift, Hint::kNone};
    if (range.first < range.end) set(range);
}

bool there_are_hints() noexcept { return has_hints.load(std::memory_order_relaxed); }

}  // namespace memtide::library
