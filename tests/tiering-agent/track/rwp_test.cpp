// Processes that consent, and such that lie. Most of it needs Linux 7.3: tests/tiering-agent/tiering_qemu
// runs this program in a guest that has it.
#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <set>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/consent/consent_table.h"
#include "common/consent/userfault.h"
#include "common/consent/userfault_abi.h"
#include "tests/tiering-agent/track/toucher.h"
#include "tiering-agent/track/consents.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Vma> maps_of(const Files& files, int pid) {
    return parse_maps(files.read(fmt::format("proc/{}/maps", pid)).value_or(""));
}

// A process that does as it is told, then waits. It is forked without the handlers of the library, so that it
// has not consented to anything by itself.
class Stranger {
  public:
    explicit Stranger(const std::function<void()>& act) {
        std::array<int, 2> ready{};
        if (pipe(ready.data()) != 0) throw std::runtime_error("no pipe");
        pid_ = static_cast<int>(syscall(SYS_fork));
        if (pid_ == 0) {
            act();
            [[maybe_unused]] const auto told = write(ready[1], "r", 1);
            for (;;) pause();
        }
        char byte = 0;
        EXPECT_EQ(read(ready[0], &byte, 1), 1);
        for (const int end : ready) close(end);
    }
    ~Stranger() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;
    [[nodiscard]] int pid() const { return pid_; }

  private:
    int pid_ = 0;
};

void write_table(int descriptor, std::string_view magic = consent_table::kMagic) {
    const int file = static_cast<int>(syscall(SYS_memfd_create, consent_table::kMemfdName, 0U));
    void* mapped = MAP_FAILED;
    if (ftruncate(file, consent_table::kSize) == 0)
        mapped = mmap(nullptr, consent_table::kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    auto* const table = static_cast<consent_table::Table*>(mapped);
    table->descriptor = descriptor;
    std::memcpy(table->magic, magic.data(), std::min(magic.size(), sizeof table->magic));
}

// Features 0: without asynchronous protection.
int open_userfault(std::uint64_t features = userfault_abi::kFeatures) {
    const int opened =
        static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | userfault_abi::kUserModeOnly));
    userfault_abi::Api api{.features = features};
    EXPECT_EQ(ioctl(opened, userfault_abi::kApi, &api), 0);
    return opened;
}

class RwpConsents : public testing::Test {
  protected:
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "needs root: it takes descriptors of other processes";
    }
    Error refusal_of(int pid) {
        auto found = consents_.find(pid, maps_of(files_, pid));
        EXPECT_FALSE(found);
        return found ? Error{} : found.error();
    }
    Files files_;
    Consents consents_{files_};
};

TEST_F(RwpConsents, WhoHasNoTableHasNotConsented) {
    const Stranger stranger([] {});
    EXPECT_EQ(refusal_of(stranger.pid()).message, "it has not consented");
}

TEST_F(RwpConsents, WhoHasNotConsentedIsAskedTheMoreSeldomTheOftenerHeHasNot) {
    const Stranger stranger([] {});
    for (const int pause : {1, 2, 4, 8, 16, 16}) {
        EXPECT_FALSE(consents_.rests(stranger.pid()));
        (void)refusal_of(stranger.pid());
        for (int i = 0; i < pause; ++i) EXPECT_TRUE(consents_.rests(stranger.pid())) << pause;
    }
}

TEST_F(RwpConsents, WhoIsGoneIsNoConsenter) {
    int pid = 0;
    {
        const Stranger stranger([] {});
        pid = stranger.pid();
    }
    EXPECT_EQ(refusal_of(pid).code, ErrorCode::kUnavailable);
}

TEST_F(RwpConsents, DescriptorsOfAnotherKindAreNotTaken) {
    const Stranger closed([] { write_table(777); });
    EXPECT_THAT(refusal_of(closed.pid()).message, HasSubstr("descriptor 777 cannot be had"));
    const Stranger negative([] { write_table(-1); });
    EXPECT_THAT(refusal_of(negative.pid()).message, HasSubstr("descriptor -1 cannot be had"));
    const Stranger file([] { write_table(open("/dev/null", O_RDWR)); });
    EXPECT_THAT(refusal_of(file.pid()).message, HasSubstr("no userfaultfd for asynchronous"));
    const Stranger garbage([] { write_table(0, "something else!!"); });
    EXPECT_EQ(refusal_of(garbage.pid()).message, "its consent table is not written");
}

TEST_F(RwpConsents, AUserfaultfdThatWouldStopItsProcessIsNotTaken) {
    const Stranger stranger([] { write_table(open_userfault(0)); });
    EXPECT_THAT(refusal_of(stranger.pid()).message, HasSubstr("no userfaultfd for asynchronous"));
}

// What needs the kernel.
class RwpTracking : public RwpConsents {
  protected:
    void SetUp() override {
        RwpConsents::SetUp();
        if (IsSkipped()) return;
        if (const auto tried = Userfault::open(); !tried) GTEST_SKIP() << tried.error().message;
        // From now on whoever is forked consents.
        ASSERT_NE(dlopen(MEMTIDE_CONSENT_LIBRARY, RTLD_NOW), nullptr) << dlerror();
        auto made = make_rwp_tracker(files_);
        ASSERT_TRUE(made) << made.error().message;
        tracker_ = *std::move(made);
    }
    // Pages, from the range's first one on, that were touched in a window in which `act` was done.
    std::set<std::uint64_t> touched(int pid, VirtualRange range, const std::function<void()>& act,
                                    const WindowWish& wish = {}) {
        const auto begun = tracker_->begin(pid, wish);
        EXPECT_TRUE(begun) << begun.error().message;
        act();
        std::set<std::uint64_t> pages;
        present_ = 0;
        const std::array ranges{range};
        const auto look = tracker_->look(pid, ranges, TierOfNode(64, 0),
                                         [&](std::uint64_t page, std::span<const PageSeen> seen) {
                                             for (const PageSeen& one : seen) {
                                                 if (one.tier != PageHeat::kNowhere) ++present_;
                                                 if (one.touched != 0)
                                                     pages.insert(page - (range.begin >> kPageShift));
                                                 ++page;
                                             }
                                         });
        EXPECT_TRUE(look) << look.error().message;
        return pages;
    }
    std::unique_ptr<Tracker> tracker_;
    std::uint64_t present_ = 0;
};

TEST_F(RwpTracking, ReadsAndWritesAreSeenPageByPage) {
    const Toucher toucher(600);
    for (std::uint64_t page = 0; page < 500; ++page) toucher.touch(page);
    for (int i = 0; i < 3; ++i)
        EXPECT_THAT(touched(toucher.pid(), toucher.memory(),
                            [&] {
                                toucher.look_at(3);
                                toucher.touch(9);
                                toucher.look_at(499);
                                toucher.touch(550);  // for the first time
                            }),
                    ElementsAre(3, 9, 499, 550));
    EXPECT_EQ(present_, 501U);
}

// By their one entry in the page table; and the order in which they are touched is known where there are perf
// events: of those that are all touched in a window the first ones count.
TEST_F(RwpTracking, HugePagesStayWholeAndTheFirstOnesCount) {
    constexpr std::size_t kGroups = 8;
    constexpr std::size_t kHugeSize = kPagesPerHuge << kPageShift;
    void* const mapped =
        mmap(nullptr, (kGroups + 1) * kHugeSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const std::uint64_t first =
        (reinterpret_cast<std::uint64_t>(mapped) + kHugeSize - 1) / kHugeSize * kHugeSize;
    auto* const bytes = reinterpret_cast<volatile char*>(first);
    if (madvise(reinterpret_cast<void*>(first), kGroups * kHugeSize, MADV_HUGEPAGE) != 0)
        GTEST_SKIP() << "no huge pages here";
    std::array<int, 2> go{};
    std::array<int, 2> done{};
    ASSERT_EQ(pipe(go.data()) + pipe(done.data()), 0);
    const int pid = fork();
    if (pid == 0) {
        for (std::size_t group = 0; group < kGroups; ++group) bytes[group * kHugeSize] = 1;
        for (char group = 0; write(done[1], &group, 1) == 1 && read(go[0], &group, 1) == 1;)
            static_cast<void>(bytes[static_cast<std::size_t>(group) * kHugeSize + kHugeSize / 2]);
        _exit(0);
    }
    char byte = 0;
    ASSERT_EQ(read(done[0], &byte, 1), 1);
    const auto look_at = [&](char group) {
        EXPECT_EQ(write(go[1], &group, 1), 1);
        EXPECT_EQ(read(done[0], &byte, 1), 1);
    };
    const auto all = [&] {
        for (const char group : std::array<char, kGroups>{5, 2, 0, 1, 3, 4, 6, 7}) look_at(group);
    };
    const VirtualRange range{first, first + kGroups * kHugeSize};
    const auto groups = [](const std::set<std::uint64_t>& pages) {
        std::set<std::uint64_t> found;
        for (const std::uint64_t page : pages) found.insert(page / kPagesPerHuge);
        return found;
    };
    const auto some = touched(pid, range, [&] { look_at(3); });
    EXPECT_THAT(groups(some), ElementsAre(3));
    EXPECT_EQ(some.size(), kPagesPerHuge) << "one entry tells of all its pages";
    ASSERT_TRUE(tracker_->ranks_huge_pages());
    const WindowWish wish{.mostly_huge = true, .most_pages = 2 * kPagesPerHuge};
    EXPECT_THAT(groups(touched(pid, range, all, wish)), ElementsAre(2, 5));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    for (const int end : {go[0], go[1], done[0], done[1]}) close(end);
    munmap(mapped, (kGroups + 1) * kHugeSize);
}

// What it gets rid of, protects itself or moves within its memory does not end the window.
TEST_F(RwpTracking, MappingsThatChangeInAWindowAreNoMistake) {
    constexpr std::size_t kSize = 16 << kPageShift;
    void* const kept = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto address = reinterpret_cast<std::uint64_t>(kept);
    std::array<int, 2> go{};
    std::array<int, 2> done{};
    ASSERT_EQ(pipe(go.data()) + pipe(done.data()), 0);
    const int pid = fork();
    if (pid == 0) {
        auto* const bytes = static_cast<volatile char*>(kept);
        char byte = 0;
        const auto wait = [&] {
            if (write(done[1], "d", 1) != 1 || read(go[0], &byte, 1) != 1) _exit(0);
        };
        std::memset(kept, 1, kSize);
        void* const other = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::memset(other, 1, kSize);
        wait();
        mprotect(kept, 4 << kPageShift, PROT_READ);
        mprotect(static_cast<char*>(kept) + (4 << kPageShift), 4 << kPageShift, PROT_NONE);
        void* const moved = mremap(other, kSize, 4 * kSize, MREMAP_MAYMOVE);
        for (std::size_t page = 0; page < 16; ++page) byte ^= static_cast<char*>(moved)[page << kPageShift];
        byte ^= bytes[1 << kPageShift];
        wait();
        munmap(moved, 4 * kSize);
        wait();
    }
    char byte = 0;
    ASSERT_EQ(read(done[0], &byte, 1), 1);
    const auto go_on = [&] {
        EXPECT_EQ(write(go[1], "g", 1), 1);
        EXPECT_EQ(read(done[0], &byte, 1), 1);
    };
    EXPECT_THAT(touched(pid, {address, address + kSize}, go_on), ElementsAre(1));
    EXPECT_EQ(present_, 16U);
    EXPECT_THAT(touched(pid, {address, address + kSize}, go_on), ElementsAre());
    EXPECT_EQ(present_, 12U) << "what nobody may touch is not looked at";
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    for (const int end : {go[0], go[1], done[0], done[1]}) close(end);
    munmap(kept, kSize);
}

// As when another process has its pid: what was taken is for memory that is no more.
TEST_F(RwpTracking, WhoRunsAnotherProgramIsNotTakenForTheOldOne) {
    std::array<int, 2> go{};
    ASSERT_EQ(pipe(go.data()), 0);
    const int pid = fork();
    if (pid == 0) {
        char byte = 0;
        if (read(go[0], &byte, 1) == 1) execl("/bin/sleep", "sleep", "1000", nullptr);
        _exit(1);
    }
    Result<> begun = fail(ErrorCode::kUnavailable, "");
    for (int i = 0; i < 300 && !begun; ++i) {
        usleep(10'000);
        begun = tracker_->begin(pid, {});
    }
    EXPECT_TRUE(begun) << "it consented when it was forked";
    EXPECT_EQ(write(go[1], "g", 1), 1);
    for (int i = 0; i < 300 && begun; ++i) {
        usleep(10'000);
        begun = tracker_->begin(pid, {});
    }
    ASSERT_FALSE(begun);
    EXPECT_EQ(begun.error().code, ErrorCode::kUnavailable);
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    EXPECT_EQ(tracker_->begin(pid, {}).error().code, ErrorCode::kNotFound);
    for (const int end : go) close(end);
}

// It would have the agent watch, and protect the pages of, somebody else.
TEST_F(RwpTracking, WhatIsForTheMemoryOfAnotherProcessIsNotTaken) {
    const int own = open_userfault();
    const Stranger liar([own] { write_table(own); });
    EXPECT_THAT(refusal_of(liar.pid()).code, ErrorCode::kUnavailable);
    close(own);
}

TEST_F(RwpTracking, WhatTheProgramWatchesItselfIsLeftAlone) {
    constexpr std::size_t kSize = 16 << kPageShift;
    const auto map = [] {
        void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        std::memset(memory, 1, kSize);
        const auto address = reinterpret_cast<std::uint64_t>(memory);
        return VirtualRange{address, address + kSize};
    };
    const VirtualRange its_own = map();
    const VirtualRange other = map();
    const Stranger stranger([&] {
        auto own = Userfault::open();
        if (!own || !own->cover(its_own.begin, its_own.end)) _exit(1);
        new Userfault(*std::move(own));
        write_table(open_userfault());
        for (const VirtualRange range : {its_own, other})
            std::memset(reinterpret_cast<void*>(range.begin), 2, kSize);
    });
    EXPECT_THAT(touched(stranger.pid(), its_own, [] {}), ElementsAre());
    EXPECT_EQ(present_, 0U) << "nothing is known of it";
    EXPECT_THAT(touched(stranger.pid(), other, [] {}), ElementsAre());
    EXPECT_EQ(present_, 16U);
    for (const VirtualRange range : {its_own, other}) munmap(reinterpret_cast<void*>(range.begin), kSize);
}

// Whoever holds the descriptor, and however he ends: nobody waits for him.
TEST_F(RwpTracking, WhoIsWatchedGoesOnWhenTheWatcherIsKilled) {
    const Toucher toucher(256);
    for (std::uint64_t page = 0; page < 256; ++page) toucher.touch(page);
    {
        const Stranger agent([&] {
            if (!tracker_->begin(toucher.pid(), {})) _exit(1);
        });
    }
    for (std::uint64_t page = 0; page < 256; ++page) toucher.look_at(page);
    // And the next one finds the consent there.
    EXPECT_THAT(touched(toucher.pid(), toucher.memory(), [&] { toucher.look_at(7); }), ElementsAre(7));
}

}  // namespace
}  // namespace memtide::agent
