// The small parts below the planner: records, interruption, holders, kernel events, the thread that runs it
// all.
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/tiering-agent/hotplug/fake_kernel.h"
#include "tiering-agent/hotplug/controller.h"
#include "tiering-agent/hotplug/holders.h"
#include "tiering-agent/hotplug/interruption.h"
#include "tiering-agent/hotplug/records.h"
#include "tiering-agent/hotplug/uevents.h"

namespace memtide::agent {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

const RegionRecord kRecord{
    .region = "region0", .serials = {{0x4d54000100000001}}, .range = {0x3d0000000, 1ULL << 28}};

// --- Records ---

TEST(RegionRecords, SurviveTheAgentAndAreForgottenOnRequest) {
    ScratchFolder folder;
    {
        auto records = RegionRecords::open(folder.path() + "/a/b", "boot1");
        ASSERT_TRUE(records.has_value()) << records.error().message;
        ASSERT_TRUE(records->put(kRecord).has_value());
    }
    auto records = RegionRecords::open(folder.path() + "/a/b", "boot1");
    ASSERT_TRUE(records.has_value());
    EXPECT_EQ(records->all(), std::vector{kRecord});
    ASSERT_TRUE(records->forget("region0").has_value());
    ASSERT_TRUE(records->forget("region0").has_value());  // twice is fine
    EXPECT_TRUE(records->all().empty());
}

TEST(RegionRecords, OfAnotherBootDoNotCount) {
    ScratchFolder folder;
    ASSERT_TRUE(RegionRecords::open(folder.path(), "boot1")->put(kRecord).has_value());
    EXPECT_TRUE(RegionRecords::open(folder.path(), "boot2")->all().empty());
}

TEST(RegionRecords, SecondAgentIsRefused) {
    ScratchFolder folder;
    const auto first = RegionRecords::open(folder.path(), "boot1");
    const auto second = RegionRecords::open(folder.path(), "boot1");
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().code, ErrorCode::kAlreadyExists);
}

TEST(RegionRecords, RecordsOfTheFirstVersionAreRead) {
    const auto records = parse_records("memtide-regions 1 boot1\nregion0 0x7 0x1000 0x2000\n", "boot1");
    ASSERT_TRUE(records.has_value());
    EXPECT_EQ(
        records->records,
        (std::vector<RegionRecord>{{.region = "region0", .serials = {{7}}, .range = {0x1000, 0x2000}}}));
}

TEST(RegionRecords, InterleavedRegionKeepsItsMemdevsInOrder) {
    const std::vector<RegionRecord> records{
        {.region = "region3", .serials = {{9}, {2}, {5}, {1}}, .range = {0x1000, 0x2000}}};
    EXPECT_EQ(parse_records(format_records({records, {}, false}, "b"), "b")->records, records);
}

TEST(RegionRecords, OfTheSecondVersionWereNotReadBack) {
    const auto file = parse_records("memtide-regions 2 boot1\nregion0 0x1000 0x2000 0x7 0x8\n", "boot1");
    ASSERT_TRUE(file.has_value());
    ASSERT_EQ(file->records.size(), 1U);
    EXPECT_EQ(file->records[0].serials, (std::vector<SerialNumber>{{7}, {8}}));
    EXPECT_EQ(file->records[0].read_back, ReadBack{});
}

TEST(RegionRecords, KeepWhatReadingBackHasShownAndWhatWasUsed) {
    RegionRecord dirty = kRecord;
    dirty.read_back = {.pages = 17, .dirty = 0x8001, .offset = 0x123456789, .unreadable = true};
    const RecordFile file{{dirty}, {{CompositionId{"a name\nof two lines"}, 3}}, true};
    const auto read = parse_records(format_records(file, "b"), "b");
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(*read, file);
    EXPECT_FALSE(parse_records("memtide-regions 3 b\nregion0 1 2 3 4 5\n", "b").has_value());
    EXPECT_FALSE(parse_records("memtide-regions 3 b\nused 0x1 0x100\n", "b").has_value());
}

TEST(RegionRecords, GarbageIsPutAsideNotFatal) {
    for (const char* text :
         {"", "garbage", "memtide-regions 1 boot1\nregion0 0x1 nonsense\n",
          "memtide-regions 1 boot1\n../../etc/passwd 0x1 0x0 0x0\n", "memtide-regions 1 boot1\n\n"}) {
        ScratchFolder folder;
        put(folder.path() + "/regions", text);
        auto records = RegionRecords::open(folder.path(), "boot1");
        ASSERT_TRUE(records.has_value());
        EXPECT_TRUE(records->all().empty());
        EXPECT_TRUE(records->put(kRecord).has_value());
    }
}

TEST(RegionRecords, FolderThatCannotBeMadeIsAnError) {
    ScratchFolder folder;
    put(folder.path() + "/file", "x");
    EXPECT_FALSE(RegionRecords::open(folder.path() + "/file/state", "boot1").has_value());
}

// --- Interruption ---

// Blocks in read(2) on a pipe that nobody writes to, as an offline that never succeeds would.
class BlockedRead {
  public:
    BlockedRead() { EXPECT_EQ(pipe(ends_), 0); }
    ~BlockedRead() {
        close(ends_[0]);
        close(ends_[1]);
    }
    BlockedRead(const BlockedRead&) = delete;
    BlockedRead& operator=(const BlockedRead&) = delete;
    int run() {
        char byte = 0;
        return read(ends_[0], &byte, 1) < 0 ? errno : 0;
    }

  private:
    int ends_[2] = {-1, -1};
};

TEST(Interruption, EndsABlockedCallAtTheDeadline) {
    Interruption interruption;
    BlockedRead blocked;
    for (int i = 0; i < 3; ++i) {
        const Interruption::Armed armed(interruption, Interruption::Clock::now() + 20ms);
        EXPECT_EQ(blocked.run(), EINTR);
    }
}

TEST(Interruption, EndsABlockedCallOnRequestFromAnotherThread) {
    Interruption interruption;
    BlockedRead blocked;
    std::promise<void> armed_now;
    std::thread other([&] {
        armed_now.get_future().wait();
        interruption.request();
    });
    {
        const Interruption::Armed armed(interruption, Interruption::Clock::now() + 1h);
        armed_now.set_value();
        EXPECT_EQ(blocked.run(), EINTR);
    }
    other.join();
    EXPECT_TRUE(interruption.requested());
    interruption.reset();
    EXPECT_FALSE(interruption.requested());
}

TEST(Interruption, RequestBeforeTheCallCountsToo) {
    Interruption interruption;
    BlockedRead blocked;
    interruption.request();
    const Interruption::Armed armed(interruption, Interruption::Clock::now() + 1h);
    EXPECT_EQ(blocked.run(), EINTR);
}

// --- Holders ---

std::string page_words(std::initializer_list<std::uint64_t> words) {
    std::string text;
    for (const std::uint64_t word : words) text.append(reinterpret_cast<const char*>(&word), sizeof word);
    return text;
}
constexpr std::uint64_t kPresent = 1ULL << 63;

// A /proc with process 7, whose mapping at page 16 of its address space has four pages: two in block 3, one
// in block 4, one that is not there. Blocks have 8 pages here.
class Holders : public testing::Test {
  protected:
    void SetUp() override {
        const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
        query.block_size = {8 * page};
        query.blocks = {3};
        query.node = 1;
        query.deadline = std::chrono::steady_clock::now() + 1h;
        const std::string proc = root.path() + "/proc/7/";
        put(proc + "comm", "redis-server\n");
        put(proc + "numa_maps", fmt_hex(16 * page) + " default anon=3 dirty=3 N1=3 kernelpagesize_kB=4\n" +
                                    fmt_hex(64 * page) + " default file=/x N0=1\nnonsense N1=\n");
        put(proc + "maps", fmt_hex(16 * page) + "-" + fmt_hex(20 * page) + " rw-p 00000000 00:00 0\n" +
                               fmt_hex(64 * page) + "-" + fmt_hex(65 * page) +
                               " r--s 00000000 00:05 9 /dev/dax0.0\n");
        put(proc + "pagemap",
            std::string(16 * 8, '\0') + page_words({kPresent | 24, 0, kPresent | 31, kPresent | 32}));
        put(root.path() + "/proc/self-not-a-pid/comm", "x");
        put(root.path() + "/proc/9/comm", "no maps at all");
        put(root.path() + "/proc/kpageflags",
            std::string(24 * 8, '\0') +
                page_words({1U << 12, 1U << 7, 1U << 7, 1U << 5, 1U << 10, 0, 1ULL << 32, 1U << 12}));
    }
    static std::string fmt_hex(std::uint64_t number) {
        char text[32];
        snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(number));
        return text;
    }
    ScratchFolder root;
    Files files{root.path()};
    BlockQuery query;
    Bytes page{static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))};
};

TEST_F(Holders, ProcessIsFoundByThePagesItHasInTheBlock) {
    const auto users = find_page_users(files, query);
    ASSERT_EQ(users.size(), 1U);
    EXPECT_EQ(users[0].pid, 7);
    EXPECT_EQ(users[0].command, "redis-server");
    EXPECT_EQ(users[0].pages.at(3), (std::vector<std::uint64_t>{16 * page.value, 18 * page.value}));
    EXPECT_FALSE(users[0].pages.contains(4)) << "not a block that was asked about";
}

TEST_F(Holders, AreDescribedProcessesFirstThenTheKernelByKind) {
    const auto holders = describe_holders(files, query, find_page_users(files, query));
    ASSERT_EQ(holders.size(), 3U);
    EXPECT_EQ(holders[0],
              (Holder{.block = "memory3", .pid = 7, .command = "redis-server", .bytes = page * 2}));
    EXPECT_EQ(holders[1],
              (Holder{.block = "memory3", .pid = {}, .command = "kernel slab", .bytes = page * 2}));
    EXPECT_EQ(holders[2], (Holder{.block = "memory3", .pid = {}, .command = "page cache", .bytes = page}));
    EXPECT_EQ(describe_holders(files, query, {}, 1).size(), 1U);
}

TEST_F(Holders, ScanStopsAtItsDeadline) {
    query.deadline = std::chrono::steady_clock::now() - 1s;
    EXPECT_TRUE(find_page_users(files, query).empty());
}

TEST_F(Holders, ProcessThatMapsADaxDeviceIsNamed) {
    const auto holders = find_dax_users(files, "dax0.0", mebibytes(256));
    ASSERT_EQ(holders.size(), 1U);
    EXPECT_EQ(holders[0].pid, 7);
    EXPECT_TRUE(find_dax_users(files, "dax1.0", mebibytes(256)).empty());
}

TEST_F(Holders, PagesGoToTheNearestNodeThatHasMemory) {
    const std::string nodes = root.path() + "/sys/devices/system/node/";
    put(nodes + "online", "0-1,3-4\n");
    put(nodes + "has_memory", "0-1,4\n");
    put(nodes + "node1/distance", "20 10 12 15\n");
    EXPECT_EQ(nearest_other_node(files, 1), 4);
    put(nodes + "has_memory", "1\n");
    EXPECT_EQ(nearest_other_node(files, 1), std::nullopt);
    put(nodes + "online", "0-99999999\n");
    EXPECT_EQ(nearest_other_node(files, 1), std::nullopt);
    EXPECT_EQ(nearest_other_node(files, 7), std::nullopt);
}

TEST(PageMover, MovesPagesOfThisProcessToANodeThatThereIs) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    *static_cast<char*>(memory) = 1;
    const auto mover = make_page_mover();
    EXPECT_LE(mover->move(getpid(), {reinterpret_cast<std::uint64_t>(memory)}, 0), 1U);
    EXPECT_EQ(mover->move(getpid(), {reinterpret_cast<std::uint64_t>(memory)}, 1023), 0U) << "no such node";
    EXPECT_EQ(mover->move(-5, {0}, 0), 0U);
    munmap(memory, page);
}

// --- Kernel events ---

TEST(Uevents, OnlyCxlDaxAndMemoryConcernTheAgent) {
    using namespace std::string_view_literals;
    EXPECT_TRUE(uevent_concerns_memory("add@/devices/x\0ACTION=add\0SUBSYSTEM=cxl\0DEVTYPE=cxl_memdev\0"sv));
    EXPECT_TRUE(uevent_concerns_memory("online@/x\0SUBSYSTEM=memory"sv));
    EXPECT_TRUE(uevent_concerns_memory("bind@/x\0SUBSYSTEM=dax\0SEQNUM=1\0"sv));
    EXPECT_FALSE(uevent_concerns_memory("add@/x\0SUBSYSTEM=net\0"sv));
    EXPECT_FALSE(uevent_concerns_memory("add@/x\0DEVPATH=SUBSYSTEM=cxl\0"sv));
    EXPECT_FALSE(uevent_concerns_memory(""sv));
    EXPECT_FALSE(uevent_concerns_memory("\0\0\0"sv));
}

// --- Files ---

TEST(Files, ErrorsSayWhatWasTriedOnWhat) {
    ScratchFolder folder;
    Files files(folder.path());
    EXPECT_EQ(files.read("nothing").error().code, ErrorCode::kNotFound);
    EXPECT_EQ(files.write("nothing", "1").error().code, ErrorCode::kNotFound);
    put(folder.path() + "/number", "0x1g\n");
    EXPECT_EQ(files.read_number("number").error().code, ErrorCode::kProtocol);
    put(folder.path() + "/number", " 0x10 \n");
    EXPECT_EQ(files.read_number("number"), 16U);
    EXPECT_TRUE(files.list("nowhere").empty());
    EXPECT_NE(files.read("nothing").error().message.find(folder.path() + "/nothing"), std::string::npos);
}

// --- The thread ---

// A host whose offline blocks until it is interrupted.
class StubbornHost final : public Host {
  public:
    explicit StubbornHost(Interruption& interruption) : interruption_(interruption) {}

    Result<Seen> look(const std::vector<SerialNumber>&) override {
        if (blind) return fail(ErrorCode::kUnavailable, "no sysfs");
        Seen seen{
            .memdevs = {{.name = "mem0", .serial = {1}, .ram_size = mebibytes(256), .has_endpoint = true}},
            .block_size = mebibytes(128)};
        seen.regions = {{.name = "region0",
                         .window = "decoder0.0",
                         .range = {0, mebibytes(256).value},
                         .committed = true,
                         .enabled = true,
                         .targets = {{"decoder1.0", "mem0"}},
                         .dax = {{.name = "dax0.0", .driver = "kmem", .range = {0, mebibytes(256).value}}},
                         .blocks = {{.index = 0, .state = BlockState::kOnline, .movable = true, .node = 1},
                                    {.index = 1, .state = BlockState::kOnline, .movable = true, .node = 1}}}};
        return seen;
    }
    ActionResult perform(const Action&) override {
        ++offlining;
        BlockedRead blocked;
        const Interruption::Armed armed(interruption_, Interruption::Clock::now() + 1h);
        blocked.run();
        return {.error = Finding{"still-held", "interrupted"}};
    }
    std::atomic<int> offlining{0};
    std::atomic<bool> blind{false};

  private:
    Interruption& interruption_;
};

class ControllerThread : public testing::Test {
  protected:
    static Desired wanting(Want want) {
        return {
            .revision = want == Want::kOnline ? 1U : 2U,
            .regions = {
                {.id = {CompositionId{"c-1"}, 0}, .serials = {{1}}, .size = mebibytes(256), .want = want}}};
    }
    bool reported(const std::function<bool(const Observed&)>& matches) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, 30s, [&] { return last_ && matches(*last_); });
    }
    bool reported(RegionStatus status) {
        return reported([&](const Observed& observed) {
            return !observed.regions.empty() && observed.regions[0].status == status;
        });
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Observed> last_;
    Interruption interruption_;
    StubbornHost host_{interruption_};
    ControllerTiming timing_{.retry = {}, .poll = 50ms, .blind_poll = 50ms};
    Controller controller_{host_, interruption_, timing_, [this](const Observed& observed) {
                               const std::lock_guard lock(mutex_);
                               last_ = observed;
                               changed_.notify_all();
                           }};
};

TEST_F(ControllerThread, ReportsWhatItSeesBeforeAnythingIsWanted) {
    controller_.start();
    EXPECT_TRUE(reported([](const Observed& observed) { return observed.memdevs.size() == 1; }));
    EXPECT_EQ(host_.offlining, 0);
}

TEST_F(ControllerThread, CancelledReleaseEndsTheBlockedOffline) {
    controller_.start();
    controller_.set_desired(wanting(Want::kOffline));
    ASSERT_TRUE(reported(RegionStatus::kDraining));
    while (host_.offlining == 0) std::this_thread::yield();
    controller_.set_desired(wanting(Want::kOnline));
    EXPECT_TRUE(reported(RegionStatus::kOnline));
}

TEST_F(ControllerThread, StopEndsTheBlockedOffline) {
    controller_.start();
    controller_.set_desired(wanting(Want::kOffline));
    while (host_.offlining == 0) std::this_thread::yield();
    controller_.stop();
}

TEST_F(ControllerThread, HostThatCannotBeLookedAtIsReportedAndLookedAtAgain) {
    host_.blind = true;
    controller_.set_desired(wanting(Want::kOnline));
    controller_.start();
    EXPECT_TRUE(reported([](const Observed& observed) {
        return !observed.warnings.empty() && observed.warnings[0].code == "cannot-look";
    }));
    host_.blind = false;
    EXPECT_TRUE(reported(RegionStatus::kOnline));
}

}  // namespace
}  // namespace memtide::agent
