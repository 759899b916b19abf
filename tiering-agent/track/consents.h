#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/base/error.h"
#include "common/consent/userfault.h"
#include "common/sysfs/files.h"
#include "tiering-agent/observe/address_space.h"

namespace memtide::agent {

// The processes that let themselves be watched by userfaultfd(2): what each has put into its consent table
// (common/consent/consent_table.h), taken and tried. Nothing that a process says is trusted: a descriptor is
// taken only if whoever touches a page never waits for it, and if it is for the memory of this very process.
// Needs root. Not thread safe.
class Consents {
  public:
    explicit Consents(Files& files) : files_(files) {}

    // Whether it had not consented when it was asked last, a few calls of this ago: then it is not worth
    // while to read its mappings for find().
    bool rests(int pid);
    // Of the process that has this pid now, until the next call. kUnavailable: it has not consented;
    // kNotFound: it is gone.
    Result<Userfault*> find(int pid, const std::vector<Vma>& vmas);
    // It is not good any more: another process has the pid, or it runs another program.
    void forget(int pid) { known_.erase(pid); }

  private:
    using Time = std::chrono::steady_clock::time_point;
    struct Known {
        std::optional<Userfault> userfault;  // none: it has not consented
        unsigned pause = 0;                  // calls of rests() until it is asked again
        unsigned next_pause = 1;
        Time asked_for{};
    };
    Result<Userfault> take(int pid, const std::vector<Vma>& vmas);
    [[nodiscard]] Result<> try_on(Userfault& userfault, int pid, std::uint64_t table);
    void forget_old(Time now);

    Files& files_;
    std::map<int, Known> known_;  // by pid
    Time old_forgotten_{};
};

}  // namespace memtide::agent
