#include "tiering-agent/move/mover.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <thread>

#include <numaif.h>

#include "tiering-agent/observe/processor_time.h"

namespace memtide::agent {
namespace {

class SystemUnitMover final : public UnitMover {
  public:
    Result<std::vector<int>> move(int pid, std::span<const std::uint64_t> pages, int node) override {
        std::vector<void*> addresses;
        addresses.reserve(pages.size());
        for (const std::uint64_t page : pages)
            addresses.push_back(reinterpret_cast<void*>(page << kPageShift));
        const std::vector<int> nodes(pages.size(), node);
        std::vector<int> states(pages.size(), -EAGAIN);
        // A positive answer is how many pages failed for reasons of their own; then `states` has them.
        if (::move_pages(pid, pages.size(), addresses.data(), nodes.data(), states.data(), MPOL_MF_MOVE) < 0)
            return errno == ESRCH ? fail(ErrorCode::kNotFound, "the process has ended")
                                  : fail_errno("move", "pages of a process", errno);
        for (int& state : states) state = state >= 0 ? (state == node ? 0 : EAGAIN) : -state;
        return states;
    }
};

// Parts of a batch, each moved by a thread of its own, the first by the one that asks.
class Crew {
  public:
    Crew(UnitMover& mover, int pid, int node) : mover_(mover), pid_(pid), node_(node) {}

    // With fewer than `threads` where there are fewer pages.
    Result<std::vector<int>> move(std::span<const std::uint64_t> pages, unsigned threads) {
        const std::size_t each = (pages.size() + threads - 1) / threads;
        std::vector<Part> parts;
        for (std::size_t at = 0; at < pages.size(); at += each)
            parts.push_back({.pages = pages.subspan(at, std::min(each, pages.size() - at))});
        std::vector<std::jthread> others;
        for (Part& part : std::span(parts).subspan(1)) {
            try {
                others.emplace_back([this, &part] {
                    const auto before = processor_time();
                    move(part);
                    part.time = processor_time() - before;
                });
            } catch (const std::system_error&) {  // no more threads for this process
                move(part);
            }
        }
        move(parts.front());
        others.clear();
        for (const Part& part : parts) helped_ += part.time;
        return join(parts);
    }
    [[nodiscard]] std::chrono::microseconds helped() const { return helped_; }

  private:
    struct Part {
        std::span<const std::uint64_t> pages;
        Result<std::vector<int>> states{};
        std::chrono::microseconds time{0};  // of another thread's processor
    };
    void move(Part& part) const { part.states = mover_.move(pid_, part.pages, node_); }

    // An error only when nothing was moved, or nothing is there any more.
    static Result<std::vector<int>> join(const std::vector<Part>& parts) {
        const auto failed = [](const Part& part) { return !part.states.has_value(); };
        for (const Part& part : parts)
            if (failed(part) && part.states.error().code == ErrorCode::kNotFound)
                return std::unexpected(part.states.error());
        if (std::ranges::all_of(parts, failed)) return std::unexpected(parts.front().states.error());
        std::vector<int> states;
        for (const Part& part : parts) {
            if (failed(part))
                states.insert(states.end(), part.pages.size(), EACCES);
            else
                states.insert(states.end(), part.states->begin(), part.states->end());
        }
        return states;
    }

    UnitMover& mover_;
    int pid_;
    int node_;
    std::chrono::microseconds helped_{0};
};

// The units of one direction, a batch at a time.
class Direction {
  public:
    Direction(const std::vector<Move>& moves, std::vector<NodeRoom> rooms, bool promotes)
        : moves_(moves), rooms_(std::move(rooms)), promotes_(promotes) {}

    [[nodiscard]] bool is_over() const { return next_ >= moves_.size(); }
    [[nodiscard]] std::uint64_t room() const { return free_pages(rooms_); }
    [[nodiscard]] std::size_t tried() const { return next_; }
    void add_room(std::uint64_t pages) {
        if (!rooms_.empty()) rooms_.front().free_pages += pages;
    }

    // Moves so many pages at most; answers how many were.
    std::uint64_t run(std::uint64_t most, const MoveJob& job, UnitMover& mover, const MoveHeard& heard,
                      MoveReport& report) {
        std::uint64_t moved = 0;
        while (!is_over() && most > 0) {
            const auto roomiest = std::ranges::max_element(rooms_, {}, &NodeRoom::free_pages);
            if (roomiest == rooms_.end()) break;
            const std::uint64_t limit = std::min(most, roomiest->free_pages);
            const std::size_t begin = next_;
            std::uint64_t pages = 0;
            while (!is_over() && moves_[next_].space == moves_[begin].space &&
                   pages + moves_[next_].pages <= limit)
                pages += moves_[next_++].pages;
            if (next_ == begin) break;  // no room for the next one
            const int node = roomiest->node;
            const std::uint64_t done =
                move_some(std::span(moves_).subspan(begin, next_ - begin), node, job, mover, heard, report);
            for (NodeRoom& room : rooms_)
                if (room.node == node) room.free_pages -= std::min(room.free_pages, done);
            moved += done;
            most -= pages;
        }
        return moved;
    }

  private:
    std::uint64_t move_some(std::span<const Move> moves, int node, const MoveJob& job, UnitMover& mover,
                            const MoveHeard& heard, MoveReport& report) {
        const auto pid = job.pid_of_space.find(moves.front().space);
        if (pid == job.pid_of_space.end() || gone_.contains(moves.front().space)) return 0;
        std::vector<std::uint64_t> pages;
        for (const Move& move : moves) pages.push_back(move.page);
        const bool is_refused = refused_.contains(moves.front().space);
        const auto states =
            is_refused ? Result<std::vector<int>>(fail(ErrorCode::kPermission, "refused before"))
                       : move_with_others(pages, pages_of(moves), pid->second, node, job, mover, report);
        if (!states && states.error().code == ErrorCode::kNotFound) {
            gone_.insert(moves.front().space);
            report.gone.push_back(moves.front().space);
            return 0;
        }
        // Its cpuset, or this process's rights: it is so for all of its pages.
        if (!states) refused_.insert(moves.front().space);
        std::uint64_t moved = 0;
        bool is_full = false;
        for (std::size_t i = 0; i < moves.size(); ++i) {
            const int error = states ? (*states)[i] : EACCES;
            is_full = is_full || error == ENOMEM;
            heard(moves[i], promotes_, error);
            if (error != 0)
                report.failed_pages[error] += moves[i].pages;
            else
                moved += moves[i].pages;
        }
        (promotes_ ? report.promoted_pages : report.demoted_pages) += moved;
        // Whatever the kernel said was free: others have it.
        if (is_full) std::erase_if(rooms_, [&](const NodeRoom& room) { return room.node == node; });
        return moved;
    }

    // `size`: pages of 4 KiB that these are.
    static Result<std::vector<int>> move_with_others(std::span<const std::uint64_t> pages, std::uint64_t size,
                                                     int pid, int node, const MoveJob& job, UnitMover& mover,
                                                     MoveReport& report) {
        const unsigned threads = job.threads != nullptr ? job.threads->threads(size) : 1;
        const auto begun = std::chrono::steady_clock::now();
        Crew crew(mover, pid, node);
        auto states = crew.move(pages, threads);
        report.helped += crew.helped();
        // What failed took no time that would be worth knowing.
        if (job.threads != nullptr && states && std::ranges::count(*states, 0) == std::ssize(pages))
            job.threads->note(threads, size, std::chrono::steady_clock::now() - begun);
        return states;
    }

    const std::vector<Move>& moves_;
    std::vector<NodeRoom> rooms_;
    bool promotes_;
    std::size_t next_ = 0;
    std::set<std::uint64_t> gone_;
    std::set<std::uint64_t> refused_;
};

}  // namespace

std::uint64_t free_pages(const std::vector<NodeRoom>& rooms) {
    std::uint64_t pages = 0;
    for (const NodeRoom& room : rooms) pages += room.free_pages;
    return pages;
}

std::unique_ptr<UnitMover> make_unit_mover() { return std::make_unique<SystemUnitMover>(); }

MoveReport carry_out(const MoveJob& job, UnitMover& mover, const MoveHeard& heard,
                     const std::function<bool()>& may_go_on) {
    MoveReport report;
    Direction down(job.plan->demotions, job.slow, false);
    Direction up(job.plan->promotions, job.fast, true);
    // What is demoted beyond the promotions makes the reserve. The rest only makes room for promotions: where
    // these fail, nothing else has to leave for them.
    const std::uint64_t planned_up = pages_of(job.plan->promotions);
    const std::uint64_t planned_down = pages_of(job.plan->demotions);
    const std::uint64_t for_reserve = planned_down - std::min(planned_down, planned_up);
    while (may_go_on() && !(down.is_over() && up.is_over())) {
        const std::uint64_t tried = down.tried() + up.tried();
        const std::uint64_t wanted = for_reserve + report.promoted_pages + job.batch_pages;
        const std::uint64_t due = wanted - std::min(wanted, report.demoted_pages);
        const std::uint64_t demoted = down.run(std::min(job.batch_pages, due), job, mover, heard, report);
        up.add_room(demoted);
        // What is free beyond the reserve, which the demotions have just made larger.
        const std::uint64_t room = up.room() - std::min(up.room(), job.reserve);
        down.add_room(up.run(std::min(job.batch_pages, room), job, mover, heard, report));
        if (down.tried() + up.tried() == tried) break;
        if (up.is_over() &&
            for_reserve <= report.demoted_pages - std::min(report.demoted_pages, report.promoted_pages))
            break;
    }
    return report;
}

}  // namespace memtide::agent
