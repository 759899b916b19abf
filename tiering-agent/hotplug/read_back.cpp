#include "tiering-agent/hotplug/read_back.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <random>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace memtide::agent {
namespace {

// What the child says after each page, in one write.
struct Progress {
    std::uint64_t pages = 0;   // read so far
    std::uint64_t offset = 0;  // of the first wrong byte
    std::uint32_t dirty = 0;   // bit for each target
    std::int32_t error = 0;    // errno of a failed mmap
};
static_assert(sizeof(Progress) <= 512, "POSIX's PIPE_BUF: a write of it is whole or not there");

std::uint32_t all_targets(const Interleave& interleave) {
    return interleave.ways >= 32 ? ~0U : (1U << interleave.ways) - 1;
}

// --- In the child: a copy of one thread of a process with many, so that nothing but system calls and loads
// is safe. No allocation, no lock, no destructor.

class Reader {
  public:
    Reader(const ReadBackJob& job, const volatile std::uint64_t* memory) : job_(job), memory_(memory) {}

    // Whole words of 8 bytes: what a device behind a slow link answers at a time.
    void read_page(std::uint64_t offset) {
        const volatile std::uint64_t* words = memory_ + offset / sizeof(std::uint64_t);
        for (std::uint64_t at = 0; at < kSampledPage; at += sizeof(std::uint64_t)) {
            const std::uint64_t word = words[at / sizeof(std::uint64_t)];
            if (job_.pattern == ErasedPattern::kUniform && !expecting_) expect(word);
            if (word != expected_) note(offset + at, word ^ expected_);
        }
        ++progress.pages;
    }

    Progress progress;

  private:
    // Every byte like the very first one.
    void expect(std::uint64_t word) {
        expected_ = (word & 0xff) * 0x0101010101010101ULL;
        expecting_ = true;
    }
    void note(std::uint64_t at, std::uint64_t difference) {
        if (progress.dirty == 0)
            progress.offset = at + static_cast<std::uint64_t>(std::countr_zero(difference)) / 8;
        progress.dirty |= 1U << job_.interleave.target_at(at);
    }

    const ReadBackJob& job_;
    const volatile std::uint64_t* memory_;
    std::uint64_t expected_ = 0;
    bool expecting_ = false;
};

[[noreturn]] void run_child(const ReadBackJob& job, int device, int out, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0);  // no core file with what a previous owner left
    if (getppid() != parent) _exit(1);
    std::signal(SIGBUS, SIG_DFL);
    void* const memory = mmap(nullptr, job.size.value, PROT_READ, MAP_SHARED, device, 0);
    if (memory == MAP_FAILED) {
        const Progress failed{.pages = 0, .offset = 0, .dirty = 0, .error = errno};
        (void)!write(out, &failed, sizeof failed);
        _exit(1);
    }
    Reader reader(job, static_cast<const volatile std::uint64_t*>(memory));
    for (const std::uint64_t offset : job.offsets) {
        reader.read_page(offset);
        if (write(out, &reader.progress, sizeof reader.progress) < 0) _exit(1);
        if (reader.progress.dirty == all_targets(job.interleave)) break;
    }
    _exit(0);
}

// --- In the agent ---

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() { reset(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int get() const { return fd_; }
    void reset() {
        if (fd_ >= 0) close(std::exchange(fd_, -1));
    }

  private:
    int fd_;
};

int wait_for_end(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// The child's last word before its end; killed when `cancelled`.
Result<Progress> follow(pid_t child, int pipe, const std::function<bool()>& cancelled) {
    constexpr int kTick = 50;
    Progress last;
    for (;;) {
        pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
        const int ready = poll(&waiting, 1, kTick);
        if (cancelled()) {
            kill(child, SIGKILL);
            return fail(ErrorCode::kCancelled, "reading back was interrupted");
        }
        if (ready <= 0) continue;
        Progress next;
        const ssize_t got = read(pipe, &next, sizeof next);
        if (got < 0 && errno == EINTR) continue;
        if (got != static_cast<ssize_t>(sizeof next)) return last;
        last = next;
    }
}

std::uint32_t targets_of_page(const Interleave& interleave, std::uint64_t page) {
    std::uint32_t targets = 0;
    for (std::uint64_t at = page; at < page + kSampledPage; at += 256)
        targets |= 1U << interleave.target_at(at);
    return targets;
}

Result<ReadBack> conclude(const ReadBackJob& job, const Progress& last, int status) {
    ReadBack result{
        .pages = static_cast<std::uint32_t>(last.pages), .dirty = last.dirty, .offset = last.offset};
    if (last.error != 0) return fail_errno("map", job.device, last.error);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return result;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS && last.pages < job.offsets.size()) {
        const std::uint64_t page = job.offsets[last.pages];
        if (result.dirty == 0) {
            result.offset = page;
            result.unreadable = true;
        }
        result.dirty |= targets_of_page(job.interleave, page);
        ++result.pages;
        return result;
    }
    return fail(ErrorCode::kIo,
                fmt::format("the process that reads {} back ended early (status {:#x})", job.device, status));
}

}  // namespace

std::vector<std::uint64_t> sample_offsets(Bytes size, std::uint64_t count, std::uint64_t seed) {
    const std::uint64_t pages = size.value / kSampledPage;
    count = std::min(std::max<std::uint64_t>(count, 2), pages);
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> offsets;
    offsets.reserve(count);
    // Stretches of equal length, the first pages % count of them one page longer.
    const std::uint64_t length = count == 0 ? 0 : pages / count;
    std::uint64_t begin = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t here = length + (i < pages % count ? 1 : 0);
        std::uint64_t page = begin + std::uniform_int_distribution<std::uint64_t>(0, here - 1)(random);
        if (i == 0) page = 0;
        if (i + 1 == count) page = pages - 1;
        offsets.push_back(page * kSampledPage);
        begin += here;
    }
    return offsets;
}

Result<ReadBack> read_back(const ReadBackJob& job, const std::function<bool()>& cancelled) {
    const Descriptor device(open(job.device.c_str(), O_RDONLY | O_CLOEXEC));
    if (device.get() < 0) return fail_errno("open", job.device, errno);
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("make a pipe for", job.device, errno);
    const Descriptor in(ends[0]);
    Descriptor out(ends[1]);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child < 0) return fail_errno("start a process to read", job.device, errno);
    if (child == 0) run_child(job, device.get(), out.get(), parent);
    out.reset();
    const Result<Progress> last = follow(child, in.get(), cancelled);
    const int status = wait_for_end(child);
    if (!last) return std::unexpected(last.error());
    return conclude(job, *last, status);
}

std::vector<SerialNumber> dirty_memdevs(const RegionRecord& record) {
    std::vector<SerialNumber> dirty;
    for (std::size_t i = 0; i < record.serials.size(); ++i)
        if ((record.read_back.dirty >> i & 1U) != 0) dirty.push_back(record.serials[i]);
    return dirty;
}

std::string describe(const RegionRecord& record) {
    std::string serials;
    for (const SerialNumber serial : dirty_memdevs(record))
        serials += (serials.empty() ? "" : ", ") + format_serial(serial);
    const ReadBack& found = record.read_back;
    return fmt::format(
        "the memory of {} was not erased: {} {:#x} of {} {}; {} pages were read, and it does not "
        "go online",
        serials, found.unreadable ? "the page at" : "byte", found.offset, record.region,
        found.unreadable ? "cannot be read (poison)" : "holds what an erase does not leave", found.pages);
}

}  // namespace memtide::agent
