#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace memtide::agent {

// With how many threads pages are moved: each thread more has to be worth it. Copying 4 KiB pages is mostly
// unmapping and flushing, which gains from more threads until their locks are the bottleneck; where that is
// depends on the machine, so it is measured on the moves themselves. Not thread safe.
class ThreadChoice {
  public:
    // Of 1, 2, 4, ... threads, up to `most`.
    explicit ThreadChoice(unsigned most);

    // For a batch of so many pages of 4 KiB.
    [[nodiscard]] unsigned threads(std::uint64_t pages) const;
    // So many pages moved within that time.
    void note(unsigned threads, std::uint64_t pages, std::chrono::nanoseconds time);

    // Without the trials, which go on: one batch in a while is moved in another way.
    [[nodiscard]] unsigned chosen() const;

    // Smaller batches are over before other threads have begun.
    static constexpr std::uint64_t kLeastPages = 512;

  private:
    struct Way {
        unsigned threads = 1;
        unsigned batches = 0;
        double rate = 0;  // pages a ns, a moving average
    };
    [[nodiscard]] const Way& best() const;
    [[nodiscard]] const Way* on_trial() const;

    std::vector<Way> ways_;
    std::uint64_t batches_ = 0;
};

}  // namespace memtide::agent
