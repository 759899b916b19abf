#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "tiering-agent/policy/exchange.h"
#include "tiering-agent/policy/thread_choice.h"

// Carries plans out.
namespace memtide::agent {

// Moves units of one process to one node. Thread safe.
class UnitMover {
  public:
    virtual ~UnitMover() = default;
    // For each of `pages` (page numbers; of a huge page the first) 0, or the errno with which the kernel kept
    // it where it was. kNotFound when the process is gone, kPermission when its cpuset or this process's
    // rights forbid it: then nothing was moved.
    virtual Result<std::vector<int>> move(int pid, std::span<const std::uint64_t> pages, int node) = 0;
};
std::unique_ptr<UnitMover> make_unit_mover();  // move_pages(2): obeys cpusets; pages of one process alone

// Where units of a tier can go.
struct NodeRoom {
    int node = 0;
    std::uint64_t free_pages = 0;
};

// Of all of them together.
std::uint64_t free_pages(const std::vector<NodeRoom>& rooms);

struct MoveJob {
    const ExchangePlan* plan = nullptr;
    std::map<std::uint64_t, int> pid_of_space{};
    std::vector<NodeRoom> fast{};
    std::vector<NodeRoom> slow{};
    std::uint64_t reserve = 0;          // pages of the faster tier that stay free
    std::uint64_t batch_pages = 2'048;  // that change places between two looks at the room
    ThreadChoice* threads = nullptr;    // none: this thread alone
};

struct MoveReport {
    std::uint64_t demoted_pages = 0;
    std::uint64_t promoted_pages = 0;
    std::map<int, std::uint64_t> failed_pages{};  // by errno
    std::vector<std::uint64_t> gone{};            // spaces whose process is not there any more
    std::chrono::microseconds helped{0};          // processor time of other threads
};

// Tells of each unit that was moved, or was not: errno is 0 then.
using MoveHeard = std::function<void(const Move& move, bool promoted, int error)>;

// Demotes and promotes in turns, so that each promotion has its room. Stops early when the room is used up,
// or when `may_go_on` says so.
MoveReport carry_out(const MoveJob& job, UnitMover& mover, const MoveHeard& heard,
                     const std::function<bool()>& may_go_on);

}  // namespace memtide::agent
