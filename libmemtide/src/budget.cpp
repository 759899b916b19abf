#include "libmemtide/src/budget.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "libmemtide/src/slow_path.h"

namespace memtide::library {
namespace {

constexpr std::int64_t kMostAtOnce = std::int64_t{64} << 20;

// What this thread has drawn and not used, or used before it drew (less than nothing).
struct OfThread {
    std::array<std::int64_t, Budget::kMostHeaps> bytes{};
    std::array<Budget*, Budget::kMostHeaps> of{};
    ~OfThread() {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if (of[i] != nullptr && bytes[i] > 0) of[i]->give(0);
    }
};
thread_local OfThread of_thread;

}  // namespace

bool Budget::take(std::int64_t bytes) {
    std::int64_t& mine = of_thread.bytes[index_];
    of_thread.of[index_] = this;
    if (mine < bytes) {
        const std::int64_t lacking = bytes - mine;
        if (draw(lacking + kOfThread / 4))
            mine += lacking + kOfThread / 4;
        else if (draw(lacking))
            mine += lacking;
        else
            return false;
    }
    mine -= bytes;
    return true;
}

void Budget::take_more(std::int64_t bytes) { of_thread.bytes[index_] -= bytes; }

void Budget::give(std::int64_t bytes) {
    std::int64_t& mine = of_thread.bytes[index_];
    mine += bytes;
    if (bytes != 0 && mine <= kOfThread) return;
    left_ += mine;
    mine = 0;
}

bool Budget::draw(std::int64_t bytes) {
    std::int64_t left = left_.load();
    while (true) {
        while (left >= bytes)
            if (left_.compare_exchange_weak(left, left - bytes)) return true;
        if (!grant(bytes)) return false;
        left = left_.load();
    }
}

bool Budget::grant(std::int64_t bytes) {
    const std::lock_guard lock(slow_path());
    const std::int64_t left = left_.load();
    if (left >= bytes) return true;  // by somebody else meanwhile
    const Room room = room_();
    // What is left of grants may be without pages yet; what was freed and kept has them.
    const std::int64_t most =
        std::min(room.free - std::min(left, kMostAtOnce), room.capacity - granted_.load());
    const std::int64_t lacking = bytes - left;
    if (lacking > most) return false;
    const std::int64_t more = std::clamp(std::min(kMostAtOnce, room.free / 16), lacking, most);
    granted_ += more;
    left_ += more;
    return true;
}

}  // namespace memtide::library
