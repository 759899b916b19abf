#include "tiering-agent/move/mover.h"

#include <algorithm>
#include <cerrno>
#include <set>

#include <numaif.h>

namespace memtide::agent {
namespace {

class SystemUnitMover final : public UnitMover {
  public:
    Result<std::vector<int>> move(int pid, std::span<const std::uint64_t> pages, int node) override {
        addresses_.clear();
        for (const std::uint64_t page : pages)
            addresses_.push_back(reinterpret_cast<void*>(page << kPageShift));
        const std::vector<int> nodes(pages.size(), node);
        std::vector<int> states(pages.size(), -EAGAIN);
        // A positive answer is how many pages failed for reasons of their own; then `states` has them.
        if (::move_pages(pid, pages.size(), addresses_.data(), nodes.data(), states.data(), MPOL_MF_MOVE) < 0)
            return errno == ESRCH ? fail(ErrorCode::kNotFound, "the process has ended")
                                  : fail_errno("move", "pages of a process", errno);
        for (int& state : states) state = state >= 0 ? (state == node ? 0 : EAGAIN) : -state;
        return states;
    }

  private:
    std::vector<void*> addresses_;
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
        const auto states = is_refused
                                ? Result<std::vector<int>>(fail(ErrorCode::kPermission, "refused before"))
                                : mover.move(pid->second, pages, node);
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
