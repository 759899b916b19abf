// fm-store: what the journal alone can do. 256 writers each take compositions through 12 entries, one after
// the other as the engine does: the next entry of a composition is handed in when the one before is durable.
// With 1,000 and with 100,000 compositions in the database; on the disk that holds /tmp.
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "tests/bench/figure.h"
#include "tests/bench/store_life.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

constexpr std::size_t kWriters = 256;
constexpr int kEntries = 12;  // of a composition's life
constexpr std::uint64_t kKeepEvents = 100'000;
constexpr std::chrono::seconds kRun{3};
constexpr int kRuns = 3;

class Load {
  public:
    explicit Load(fm::Store& store) : store_(store) {}

    // Until there are so many compositions.
    void fill(std::uint64_t count) {
        while (sequence_ <= count) {
            fm::Mutation many;
            for (int i = 0; i < 200 && sequence_ <= count; ++i)
                many.compositions.push_back({composition(sequence_++, 1), false});
            submit(std::move(many), [] {});
            wait(4);
        }
        wait(0);
    }

    // Entries a second.
    double run() {
        const auto began = std::chrono::steady_clock::now();
        const std::uint64_t before = entries_;
        const auto until = began + kRun;
        for (std::size_t i = 0; i < kWriters; ++i) next(sequence_++, 1, until);
        wait(0);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        return static_cast<double>(entries_ - before) / took.count();
    }

  private:
    void submit(fm::Mutation mutation, std::function<void()> then) {
        const std::lock_guard lock(mutex_);
        ++under_way_;
        ++entries_;
        store_.apply(std::move(mutation), [this, then = std::move(then)](Result<> done) {
            if (!done) throw std::runtime_error(done.error().message);
            then();
            const std::lock_guard lock_done(mutex_);
            if (--under_way_ == enough_) less_.notify_one();
        });
    }
    void next(std::uint64_t sequence, int revision, std::chrono::steady_clock::time_point until) {
        fm::Mutation mutation;
        {
            const std::lock_guard lock(mutex_);
            mutation = entry(sequence, revision, event_);
            if (event_ % 1024 == 0 && event_ > kKeepEvents)
                mutation.forget_events_up_to = event_ - kKeepEvents;
            // Ended ones are forgotten, so that the database keeps its size.
            if (revision == kEntries) mutation.compositions.push_back({composition(sequence, 1), true});
        }
        submit(std::move(mutation), [this, sequence, revision, until] {
            if (std::chrono::steady_clock::now() >= until && revision == kEntries) return;
            if (revision < kEntries) return next(sequence, revision + 1, until);
            std::uint64_t fresh = 0;
            {
                const std::lock_guard lock(mutex_);
                fresh = sequence_++;
            }
            next(fresh, 1, until);
        });
    }
    void wait(int most) {
        std::unique_lock lock(mutex_);
        enough_ = most;
        less_.wait(lock, [&] { return under_way_ <= most; });
    }

    fm::Store& store_;
    std::mutex mutex_;
    std::condition_variable less_;
    int under_way_ = 0;
    int enough_ = 0;  // under way, for who waits
    std::uint64_t entries_ = 0;
    std::uint64_t sequence_ = 1;
    std::uint64_t event_ = 1;
};

int run() {
    const test::TempFolder folder;
    auto store = fm::open_sqlite_store({.path = folder.file("state.db")});
    if (!store) {
        std::fprintf(stderr, "bench: %s\n", store.error().message.c_str());
        return EXIT_FAILURE;
    }
    Load load(**store);
    std::array<std::vector<double>, 2> rates;
    for (std::size_t size = 0; size < rates.size(); ++size) {
        load.fill(size == 0 ? 1'000 : 100'000);
        (void)load.run();  // warms up
        for (int i = 0; i < kRuns; ++i) rates[size].push_back(load.run());
    }
    print_figure("fm-store", "entries_per_second_1k", "1/s", rates[0]);
    print_figure("fm-store", "entries_per_second_100k", "1/s", rates[1]);
    std::vector<double> ratios;
    for (int i = 0; i < kRuns; ++i) ratios.push_back(rates[0][i] / rates[1][i]);
    print_figure("fm-store", "entry_cost_ratio_100k_to_1k", "", ratios);
    return EXIT_SUCCESS;
}

}  // namespace
}  // namespace memtide::bench

int main() { return memtide::bench::run(); }
