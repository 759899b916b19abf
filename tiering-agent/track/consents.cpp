#include "tiering-agent/track/consents.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/consent/consent_table.h"
#include "common/log/log.h"
#include "common/process/pidfd.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/track/page_map.h"

namespace memtide::agent {
namespace {

using consent_table::Table;

constexpr unsigned kLongestPause = 16;       // windows
constexpr std::chrono::minutes kKeptFor{5};  // without being asked for

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int number() const { return number_; }

  private:
    int number_;
};

Result<Table> read_table(const Files& files, int pid, std::uint64_t address) {
    const std::string path = files.absolute(fmt::format("proc/{}/mem", pid));
    const Descriptor memory(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (memory.number() < 0) return fail_errno("open", path, errno);
    Table table;
    if (::pread(memory.number(), &table, sizeof table, static_cast<off_t>(address)) != sizeof table)
        return fail_errno("read", path, errno);
    if (std::memcmp(table.magic, consent_table::kMagic, sizeof table.magic) != 0)
        return fail(ErrorCode::kUnavailable, "its consent table is not written");
    return table;
}

}  // namespace

bool Consents::rests(int pid) {
    const auto known = known_.find(pid);
    if (known == known_.end() || known->second.pause == 0) return false;
    known->second.asked_for = std::chrono::steady_clock::now();
    --known->second.pause;
    return true;
}

Result<Userfault*> Consents::find(int pid, const std::vector<Vma>& vmas) {
    const Time now = std::chrono::steady_clock::now();
    forget_old(now);
    Known& known = known_[pid];
    known.asked_for = now;
    if (known.userfault) return &*known.userfault;
    auto taken = take(pid, vmas);
    if (!taken) {
        known.pause = std::exchange(known.next_pause, std::min(2 * known.next_pause, kLongestPause));
        return std::unexpected(taken.error());
    }
    known.userfault = *std::move(taken);
    log::info("a process lets itself be watched by userfaultfd", {{"pid", pid}});
    return &*known.userfault;
}

Result<Userfault> Consents::take(int pid, const std::vector<Vma>& vmas) {
    const auto found = std::ranges::find_if(vmas, [](const Vma& vma) {
        return vma.name == consent_table::kMappingName && !vma.is_private &&
               vma.range.size().value == consent_table::kSize;
    });
    if (found == vmas.end()) return fail(ErrorCode::kUnavailable, "it has not consented");
    const Descriptor process(process::open_pidfd(pid));
    if (process.number() < 0) return fail(ErrorCode::kNotFound, "the process is gone");
    const auto table = read_table(files_, pid, found->range.begin);
    if (!table) return std::unexpected(table.error());
    const int copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process.number(), table->descriptor, 0U));
    if (copy < 0)
        return fail(ErrorCode::kUnavailable, fmt::format("its descriptor {} cannot be had: {}",
                                                         table->descriptor, std::strerror(errno)));
    auto userfault = Userfault::adopt(copy);
    Result<> tried = userfault ? try_on(*userfault, pid, found->range.begin)
                               : std::unexpected(std::move(userfault.error()));
    if (tried) return userfault;
    log::warning("what a process has consented with is not taken",
                 {{"pid", pid}, {"descriptor", table->descriptor}, {"why", tried.error()}});
    return fail(ErrorCode::kUnavailable, tried.error().message);
}

// Protecting a page by it has to show in the page map of this process. Nobody else touches the table's.
Result<> Consents::try_on(Userfault& userfault, int pid, std::uint64_t table) {
    const std::uint64_t end = table + consent_table::kSize;
    auto map = PageMap::open(files_, pid);
    if (!map) return std::unexpected(map.error());
    const auto is_protected = [&] {
        const auto words = map->read(table >> kPageShift, 1);
        return words && !words->empty() && words->front().is_present() && words->front().is_protected();
    };
    if (auto covered = userfault.cover(table, end); !covered) return covered;
    if (auto done = userfault.protect(table, end); !done) return done;
    const bool on = is_protected();
    if (auto done = userfault.unprotect(table, end); !done) return done;
    if (on && !is_protected()) return {};
    return fail(ErrorCode::kPermission, "it is not for the memory of this process");
}

void Consents::forget_old(Time now) {
    if (now < old_forgotten_ + kKeptFor) return;
    old_forgotten_ = now;
    std::erase_if(known_, [&](const auto& one) { return one.second.asked_for + kKeptFor < now; });
}

}  // namespace memtide::agent
