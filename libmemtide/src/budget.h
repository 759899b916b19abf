#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace memtide::library {

// How much a heap that is bound to its tier may still hand out. The kernel answers a bound page that finds no
// room with its OOM killer, so that allocating has to ask before: not each time, but whenever what was
// granted is used up. What was freed and kept for the next allocation is granted already. Bytes. It outlives
// every thread that has asked it. Thread safe.
class Budget {
  public:
    struct Room {
        std::int64_t capacity = 0;  // of the tier: one heap never gets more
        std::int64_t free = 0;
    };

    // `index` tells heaps apart: each thread keeps a little of each heap's grant for itself.
    Budget(std::size_t index, std::function<Room()> room) : index_(index), room_(std::move(room)) {}

    // False: there is no room.
    bool take(std::int64_t bytes);
    // What turned out to be used beyond what was taken: it is handed out already.
    void take_more(std::int64_t bytes);
    // Freed, and kept by the heap.
    void give(std::int64_t bytes);
    // Freed, and given back to the system.
    void give_back(std::int64_t bytes) { granted_ -= bytes; }

    static constexpr std::size_t kMostHeaps = 32;
    // What a thread keeps at most, per heap.
    static constexpr std::int64_t kOfThread = std::int64_t{1} << 20;

  private:
    bool draw(std::int64_t bytes);
    bool grant(std::int64_t bytes);

    const std::size_t index_;
    const std::function<Room()> room_;
    std::atomic<std::int64_t> left_{0};
    std::atomic<std::int64_t> granted_{0};
};

}  // namespace memtide::library
