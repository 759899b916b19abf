#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "tiering-agent/balance/decision_log.h"
#include "tiering-agent/balance/lookout.h"
#include "tiering-agent/balance/questions.h"
#include "tiering-agent/balance/restraint.h"
#include "tiering-agent/balance/watch.h"
#include "tiering-agent/far/far_keeper.h"
#include "tiering-agent/move/mover.h"
#include "tiering-agent/move/page_shaper.h"
#include "tiering-agent/observe/memory_latency.h"
#include "tiering-agent/observe/processes.h"
#include "tiering-agent/observe/tiers.h"
#include "tiering-agent/policy/move_log.h"
#include "tiering-agent/policy/pace.h"
#include "tiering-agent/policy/spread.h"
#include "tiering-agent/policy/targets.h"
#include "tiering-agent/policy/thread_choice.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {

struct BalanceOptions {
    TieringConfig config{};
    Pace::Options pace{};
    int agent_pid = 0;
    Bytes least_rss = mebibytes(8);                  // of a process, to be watched
    std::chrono::milliseconds refresh_every{2'000};  // nodes and processes
    std::chrono::milliseconds glance_every{2'000};   // while it rests
    std::chrono::milliseconds longest_move{2'000};   // then it is time to look again
    std::function<void(const Tiers&)> on_tiers{};    // called when they have changed
    std::chrono::milliseconds probe_every{3'000};    // the latency of tiers is measured
    std::chrono::milliseconds far_every{5'000};      // then cold pages go to the far tier
    double reserve = 0.01;                           // of the faster tier, for what processes allocate next
};

// What it has come to, since its start.
struct BalanceStatus {
    struct OfTarget {
        std::string name{};
        std::size_t processes = 0;
        std::vector<std::uint64_t> pages_by_tier{};
        std::uint64_t promoted_pages = 0;
        std::uint64_t demoted_pages = 0;
        // Of its processes, those that have most of its memory; no more than kMostCgroups.
        std::vector<std::string> cgroups{};
        static constexpr std::size_t kMostCgroups = 8;
        double pace = 1;                // of the full one, at which its pages move
        bool is_pressure = false;       // its processes wait for memory: that is why
        std::uint64_t split_huge = 0;   // huge pages, ever
        std::uint64_t joined_huge = 0;  // made whole again
        std::uint64_t hot_pages = 0;    // of which its processes say so, there or not
        std::uint64_t cold_pages = 0;
        std::uint64_t pinned_pages = 0;

        friend bool operator==(const OfTarget&, const OfTarget&) = default;
    };
    std::string tracker{};             // and what it sees
    std::vector<std::string> notes{};  // what fights it, what is hardly meant
    TieringMode mode = TieringMode::kOff;
    std::vector<Tier> tiers{};
    std::vector<OfTarget> targets{};
    std::uint64_t rounds = 0;
    std::uint64_t promoted_pages = 0;
    std::uint64_t demoted_pages = 0;
    std::uint64_t wasted_pages = 0;
    std::map<int, std::uint64_t> failed_pages{};  // by errno
    double hit = 1;        // share of the touches that fall on the fastest tier, as far as the heat tells
    bool is_even = false;  // no page is surely warmer than others
    // Of a load from the two fastest tiers, ns; 0: not measured. And how much of all touches should fall on
    // the fastest at most, since it is the bottleneck; 1: it is not.
    double fast_ns = 0;
    double slow_ns = 0;
    double most_fast = 1;
    unsigned move_threads = 1;  // with which pages are moved now
    std::chrono::milliseconds window{};
    std::chrono::milliseconds rest{};
    std::chrono::microseconds processor_time{};
    std::uint64_t heat_bytes = 0;  // that it takes to remember how warm pages are
    FarStatus far{};
};

// Looks at the processes of its targets in windows, plans exchanges between neighbouring tiers, and carries
// them out. One thread calls run().
class Balancer {
  public:
    struct Parts {
        Files& files;
        Tracker& tracker;
        UnitMover& mover;
        FarTier* far = nullptr;            // none: nothing leaves, whatever targets allow
        MemoryLatency* latency = nullptr;  // none: the fastest tier is never seen to be the bottleneck
        PageShaper* shaper = nullptr;      // none: huge pages are never split, whatever targets want
    };
    Balancer(const Parts& parts, BalanceOptions options);

    // Until it is asked to stop; what is under way then ends within a batch of moves.
    void run(const std::stop_token& stop);
    // One window, plan and exchange, without the rest after it.
    void round(const std::stop_token& stop);

    // Nodes whose memory is about to be taken away: nothing is moved there. Thread safe.
    void set_leaving(std::set<int> nodes);

    // What tiering shall do from the next round on, which begins as soon as the one under way is over. Heat
    // of processes that stay watched is kept, and so are the counts of targets that keep their names.
    // `applied` is called then, on the balancing thread. Thread safe.
    void set_config(TieringConfig config, std::function<void()> applied = {});

    // At once, also while a round takes long: what the last one came to. Thread safe.
    [[nodiscard]] BalanceStatus status() const;
    // Everything else that is to be known of it is asked on the thread that balances: see Inspector.
    [[nodiscard]] Questions& questions() { return questions_; }

  private:
    friend class Inspector;
    using Time = std::chrono::steady_clock::time_point;
    // What an exchange between two neighbouring tiers starts from.
    struct Prepared {
        MoveJob job;
        Pair pair;
        ExchangeOptions options;
    };
    struct NewConfig {
        TieringConfig config;
        std::vector<std::function<void()>> applied;
    };
    // --- refresh.cpp ---
    static BalanceOptions with_costs(BalanceOptions options);
    static unsigned most_move_threads(const TieringConfig& config);
    bool refresh();
    void refresh_tiers();
    bool refresh_watches();
    bool take_new_config();
    [[nodiscard]] bool has_new_config() const;
    std::vector<std::uint64_t> move_to_targets(const std::vector<TieringTarget>& before);
    [[nodiscard]] std::vector<std::vector<std::string>> cgroups_of_targets() const;
    void drop(std::uint64_t space, const Error& why);
    // --- reshape.cpp ---
    [[nodiscard]] bool may_shape(const std::stop_token& stop) const;
    std::uint64_t split_huge_pages(std::uint8_t fast, const std::stop_token& stop);
    void join_huge_pages(const std::stop_token& stop);
    struct Splits {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> pages;  // space and page
        std::uint64_t undecided = 0;  // huge pages that a few windows more may show to be worth it
    };
    Splits pages_to_split(std::uint8_t fast, Time now);
    bool shape(Watch& watch, std::uint64_t page, bool split, Time now);
    // --- balancer.cpp ---
    void for_each_due(const std::function<Result<>(Watch&)>& visit);
    // Until the next round; shorter when something begins to change.
    void rest(const std::stop_token& stop);
    bool glance(Sentinel& sentinel, const std::stop_token& stop);
    void begin_window();
    Look end_window();
    std::uint64_t exchange_all(const std::stop_token& stop);
    // Both answer how many pages moved; the processor time of moving goes to moving_.
    std::uint64_t exchange(std::uint8_t fast, const std::stop_token& stop);
    // Nothing when it cannot be known what room there is.
    std::optional<Prepared> prepare(std::uint8_t fast, Time now);
    void look_around(Time now);
    void probe();
    [[nodiscard]] std::set<int> leaving() const;
    [[nodiscard]] bool takes_part(const TieringTarget& target, std::uint8_t fast) const;
    [[nodiscard]] std::vector<Space> spaces(std::uint8_t fast) const;
    void send_far(const std::stop_token& stop);
    void publish(const Pace::Round& round);
    [[nodiscard]] TieringMode mode_of(std::size_t target) const;
    // Those whose turn it is: idle processes are looked at in one window of kIdleWindows.
    [[nodiscard]] bool is_due(const Watch& watch) const;

    Parts parts_;
    BalanceOptions options_;
    ProcessTable processes_;
    Pace pace_;
    MoveLog log_;
    std::optional<FarKeeper> far_;
    std::vector<Membership> memberships_;
    Tiers tiers_;
    TierOfNode tier_of_node_;
    std::map<std::uint64_t, Watch> watches_;  // by space
    std::map<ProcessId, std::uint64_t> space_of_;
    std::uint64_t next_space_ = 1;
    std::uint64_t rounds_ = 0;
    std::uint64_t turns_ = 1;                   // that those who are watched are divided into
    std::chrono::microseconds disturbance_{0};  // of who was watched, by the window before this one
    std::uint64_t look_at_all_in_ = 0;          // the round in which all are due: what tiers are has changed
    Time refresh_at_{};
    Restraint restraint_;
    ThreadChoice threads_;
    bool can_shape_ = true;  // huge pages; until the kernel has said that it cannot be done
    Spread spread_;
    Spread::Probe probed_;
    Time probe_at_{};
    std::chrono::microseconds moving_{0};
    std::chrono::microseconds helped_{0};  // likewise, of other threads that move
    Lookout lookout_;
    std::chrono::microseconds glances_{0};  // processor time of those since the last round
    std::uint64_t fast_pages_ = 0;          // that the fastest tier has for what is watched
    double hit_ = 1;                        // of the last plan between the two fastest tiers, as the next
    bool is_even_ = false;
    Questions questions_;
    DecisionLog decisions_;

    mutable std::mutex mutex_;
    BalanceStatus status_;  // of `mutex_`, as the next
    std::set<int> leaving_;
    std::optional<NewConfig> new_config_;
};

}  // namespace memtide::agent
