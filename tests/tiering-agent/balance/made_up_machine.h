#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/tiering-agent/observe/fake_tree.h"
#include "tiering-agent/balance/balancer.h"

namespace memtide::agent {

// Processes with pages that are as they are told to be: in the first tier or the second, touched in every
// window or in none. Some of them are parts of huge pages.
class MadeUpPages final : public Tracker, public UnitMover, public PageShaper {
  public:
    static constexpr std::uint64_t kFirst = 0x7f0000000;
    struct Page {
        bool is_fast = false;
        bool is_hot = false;
    };

    [[nodiscard]] std::string_view name() const override { return "made-up"; }
    [[nodiscard]] std::string_view sees() const override { return "everything"; }
    Result<> refresh() override { return {}; }
    Result<> begin(int pid, const WindowWish&) override {
        if (!of.contains(pid)) return fail(ErrorCode::kNotFound, "it has ended");
        return {};
    }
    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        if (on_look) on_look();
        Look look;
        if (ranges.empty()) return look;
        std::vector<PageSeen> seen;
        for (const Page page : of.at(pid)) {
            seen.push_back({.tier = tiers.at(page.is_fast ? 0 : 1), .touched = page.is_hot});
            ++look.present_pages;
            look.touched_pages += page.is_hot ? 1 : 0;
            look.touched_slow_pages += page.is_hot && !page.is_fast ? 1 : 0;
        }
        for (const std::uint64_t group : huge[pid])
            if (const auto touched = make_huge(std::span(seen).subspan(group * kPagesPerHuge, kPagesPerHuge)))
                look.touched_in_huge.push_back(kFirst + group * kPagesPerHuge + *touched);
        visit(kFirst, seen);
        return look;
    }
    Result<std::vector<int>> move(int pid, std::span<const std::uint64_t> pages, int node) override {
        const std::lock_guard lock(moving);
        for (const std::uint64_t page : pages)
            for (std::uint64_t i = 0; error == 0 && i < pages_of_unit(pid, page); ++i)
                of.at(pid).at(page - kFirst + i).is_fast = node == 0;
        moved += pages.size();
        return std::vector<int>(pages.size(), error);
    }
    Result<> split(ProcessId process, std::uint64_t page) override {
        if (!can_split) return fail(ErrorCode::kPermission, "not allowed");
        return huge[process.pid].erase((page - kFirst) / kPagesPerHuge) == 1
                   ? Result<>{}
                   : fail(ErrorCode::kConflict, "it is none");
    }
    Result<> join(ProcessId process, std::uint64_t page) override {
        huge[process.pid].insert((page - kFirst) / kPagesPerHuge);
        return {};
    }
    // Of the process, `fast` pages are in the first tier, and `hot` ones behind the `cold`th are touched.
    void put(int pid, std::size_t pages, std::size_t fast, std::size_t cold, std::size_t hot) {
        std::vector<Page>& all = of[pid];
        all.assign(pages, {});
        for (std::size_t i = 0; i < pages; ++i) all[i] = {i < fast, i >= cold && i < cold + hot};
    }

    [[nodiscard]] std::size_t hot_and_fast(int pid) const {
        return static_cast<std::size_t>(
            std::ranges::count_if(of.at(pid), [](Page page) { return page.is_hot && page.is_fast; }));
    }

    bool can_split = true;
    std::map<int, std::set<std::uint64_t>> huge{};  // by pid: which groups of kPagesPerHuge
    std::mutex moving{};
    std::map<int, std::vector<Page>> of{};
    int error = 0;  // with which every move fails
    std::size_t moved = 0;
    std::function<void()> on_look{};

  private:
    // Of a huge page all parts look like the one that was touched. Answers which that was.
    static std::optional<std::size_t> make_huge(std::span<PageSeen> seen) {
        const auto hot = std::ranges::find_if(seen, [](PageSeen one) { return one.touched != 0; });
        const PageSeen whole{
            .tier = seen.front().tier, .touched = std::uint8_t{hot != seen.end()}, .huge = true};
        const auto touched = hot - seen.begin();
        const bool is_touched = hot != seen.end();
        std::ranges::fill(seen, whole);
        return is_touched ? std::optional(static_cast<std::size_t>(touched)) : std::nullopt;
    }
    std::uint64_t pages_of_unit(int pid, std::uint64_t page) {
        return huge[pid].contains((page - kFirst) / kPagesPerHuge) ? kPagesPerHuge : 1;
    }
};

// Two tiers, 16 MiB and 64 MiB, and processes of 8 MiB at the same addresses.
class MadeUpMachine {
  public:
    static constexpr std::uint64_t kBegin = MadeUpPages::kFirst << kPageShift;
    static constexpr std::size_t kPages = 2'048;
    static constexpr int kPid = 100;  // of whoever tests put there first

    MadeUpMachine() : files_(tree_.files().absolute("")) {
        tree_.put_node(
            {.number = 0, .cpus = "0-1", .mebibytes = 16, .free_mebibytes = 0, .distances = "10 20"});
        tree_.put_node(
            {.number = 1, .cpus = "", .mebibytes = 64, .free_mebibytes = 32, .distances = "20 10"});
        tree_.put("proc/zoneinfo",
                  "Node 0, zone Normal\n  pages free 40\n        high 0\n"
                  "Node 1, zone Normal\n  pages free 8000\n        high 0\n");
        tree_.put("sys/devices/system/memory/block_size_bytes", "8000000\n");
        tree_.put("sys/devices/system/node/node0/memory0/state", "online\n");
        tree_.put("sys/devices/system/node/node1/memory1/state", "online\n");
        options_.config.mode = TieringMode::kMove;
        options_.config.targets = {{.name = "all"}};
        options_.least_rss = {};
        options_.refresh_every = std::chrono::milliseconds(0);
        options_.pace.shortest_window = options_.pace.longest_window = std::chrono::milliseconds(1);
    }
    // With `fast` of its pages in the faster tier; those from `cold` on are touched, `hot` of them.
    void put_process(int pid, const std::string& comm = "worker", std::size_t fast = 500,
                     std::size_t cold = 1'000, std::size_t hot = 200) {
        tree_.put_process({.pid = pid, .start_time = 5, .comm = comm, .exe = "/usr/bin/" + comm});
        const std::string folder = fmt::format("proc/{}/", pid);
        tree_.put(folder + "maps", "7f0000000000-7f0000800000 rw-p 00000000 00:00 0 \n");
        tree_.put(folder + "numa_maps", "7f0000000000 default anon=2048 N0=500\n");
        tree_.put(folder + "status", "Name:\tworker\nVmLck:\t0 kB\nHugetlbPages:\t0 kB\n");
        pages_.put(pid, kPages, fast, cold, hot);
        names_[pid] = comm;
    }
    void end_process(int pid) {
        tree_.remove(fmt::format("proc/{}", pid));
        pages_.of.erase(pid);
        names_.erase(pid);
    }
    Balancer& balancer() {
        if (!balancer_)
            balancer_.emplace(
                Balancer::Parts{.files = files_, .tracker = pages_, .mover = pages_, .shaper = &pages_},
                options_);
        return *balancer_;
    }
    // All processes use processor time in each.
    BalanceStatus run(int rounds) {
        for (int i = 0; i < rounds; ++i) {
            ++ticks_;
            for (const auto& [pid, comm] : names_)
                tree_.put(
                    fmt::format("proc/{}/stat", pid),
                    fmt::format("{} ({}) S 1 0 0 0 -1 0 99 0 0 0 {} 0 0 0 20 0 1 0 5 3133440 2048 184467 "
                                "4096 93926 140726 0\n",
                                pid, comm, ticks_));
            balancer().round({});
        }
        return balancer().status();
    }

    FakeTree tree_{};
    Files files_;
    MadeUpPages pages_{};
    BalanceOptions options_{};

  private:
    std::map<int, std::string> names_{};
    std::optional<Balancer> balancer_{};
    int ticks_ = 0;
};

}  // namespace memtide::agent
