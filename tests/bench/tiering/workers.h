#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/tiering/btree.h"
#include "tests/bench/tiering/distribution.h"
#include "tests/bench/tiering/placement.h"
#include "tests/bench/tiering/stalls.h"

namespace memtide::bench {

// Accesses timed together: a stall is how long so many took, from the end of those before.
inline constexpr unsigned kAccessesPerBatch = 64;
inline constexpr unsigned kMostThreads = 62;

// Threads that access pages as a distribution says. The first word of a page names it; each thread has a
// counter of its own in every page, on a cache line of its own. An update adds one to it; a read only looks.
// Every access checks the page's name, and check() at the end that no update is missing: a page that was
// moved and came back as another, or as it was earlier, is found.
class Workers {
  public:
    // Touches pages [first, first + count) for the first time.
    static void name_pages(const Mapping& mapping, PageSpan span);

    Workers(const Mapping& mapping, unsigned threads, bool reads);
    // Accesses are lookups in the tree from now on, and updates of its records; it has to outlive the
    // threads. Before start().
    void use_tree(const Btree& tree) { tree_ = &tree; }
    ~Workers();  // stops them
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    void start(const Distribution& first);
    // The distribution has to outlive the threads.
    void use(const Distribution& next) { current_.store(&next, std::memory_order_release); }
    void stop();

    [[nodiscard]] std::uint64_t accesses() const;
    [[nodiscard]] bool found_wrong_page() const { return wrong_.load(std::memory_order_relaxed); }
    // All stalls so far.
    [[nodiscard]] StallCounts stalls() const;
    // Nanoseconds of the longest one of any thread since the last call.
    std::uint64_t take_longest_stall();

    // After stop(): says what is wrong with the data, or nothing.
    [[nodiscard]] std::string check() const;

  private:
    struct One {
        std::thread thread;
        StallRecorder stalls;
        std::atomic<std::uint64_t> accesses{0};
    };
    void run(One& one, unsigned number);
    // One batch each; false when a page had another one's data.
    bool access_pages(const Distribution& distribution, Random& random, std::size_t& position,
                      unsigned number) const;
    bool look_up(const Distribution& distribution, Random& random, std::size_t& position,
                 unsigned number) const;

    const Mapping& mapping_;
    bool reads_;
    const Btree* tree_ = nullptr;
    std::atomic<const Distribution*> current_{nullptr};
    std::atomic<bool> stopping_{false};
    std::atomic<bool> wrong_{false};
    std::vector<std::unique_ptr<One>> all_;
};

}  // namespace memtide::bench
