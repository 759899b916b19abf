// Hints as the agent finds them: in /proc/self/maps, and through /proc/self/mem.
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memtide/memtide.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/hints/hint_ranges.h"
#include "common/hints/hint_table.h"

namespace {

using memtide::Hint;
using memtide::HintRange;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

std::vector<HintRange> read_table(const std::string& process) {
    std::ifstream maps("/proc/" + process + "/maps");
    std::string line;
    while (std::getline(maps, line) && line.find(memtide::hint_table::kMappingName) == std::string::npos) {
    }
    std::vector<HintRange> ranges;
    if (!maps) return ranges;
    const int file = ::open(("/proc/" + process + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
    const auto address = static_cast<off_t>(std::stoull(line, nullptr, 16));
    memtide::hint_table::Header header;
    EXPECT_EQ(::pread(file, &header, sizeof header, address), ssize_t{sizeof header});
    EXPECT_EQ(std::memcmp(header.magic, memtide::hint_table::kMagic, sizeof header.magic), 0);
    EXPECT_EQ(header.sequence % 2, 0U);
    std::vector<memtide::hint_table::Entry> entries(header.entries);
    const std::size_t size = entries.size() * sizeof entries[0];
    EXPECT_EQ(::pread(file, entries.data(), size, address + static_cast<off_t>(sizeof header)),
              static_cast<ssize_t>(size));
    ::close(file);
    for (const auto& entry : entries)
        ranges.push_back(
            {entry.begin_and_hint >> 12, entry.end >> 12, static_cast<Hint>(entry.begin_and_hint & 4095)});
    return ranges;
}

class Hints : public testing::Test {
  protected:
    Hints() {
        memory_ = static_cast<char*>(
            ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    }
    ~Hints() override {
        memtide_hint(memory_, kSize, MEMTIDE_NORMAL);
        ::munmap(memory_, kSize);
    }
    [[nodiscard]] std::uint64_t page(std::size_t number) const {
        return (reinterpret_cast<std::uintptr_t>(memory_) >> 12) + number;
    }

    static constexpr std::size_t kSize = std::size_t{1} << 20;
    char* memory_;
};

TEST_F(Hints, AnotherProcessCanReadThem) {
    ASSERT_EQ(memtide_hint(memory_, 8192, MEMTIDE_HOT), 0) << memtide_error();
    ASSERT_EQ(memtide_hint(memory_ + 40960, 4096, MEMTIDE_PIN), 0);
    EXPECT_THAT(read_table("self"), ElementsAre(HintRange{page(0), page(2), Hint::kHot},
                                                HintRange{page(10), page(11), Hint::kPin}));
    ASSERT_EQ(memtide_hint(memory_, kSize, MEMTIDE_NORMAL), 0);
    EXPECT_THAT(read_table("self"), IsEmpty());
}

TEST_F(Hints, PartsOfPagesAreHotButNotCold) {
    ASSERT_EQ(memtide_hint(memory_ + 4095, 2, MEMTIDE_HOT), 0);
    ASSERT_EQ(memtide_hint(memory_ + 8193, 8192, MEMTIDE_COLD), 0);
    EXPECT_THAT(read_table("self"), ElementsAre(HintRange{page(0), page(2), Hint::kHot},
                                                HintRange{page(3), page(4), Hint::kCold}));
    ASSERT_EQ(memtide_hint(memory_, 0, MEMTIDE_PIN), 0) << "of nothing";
    EXPECT_EQ(read_table("self").size(), 2U);
}

TEST_F(Hints, MistakesAreTold) {
    EXPECT_EQ(memtide_hint(memory_, 4096, 4), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(memtide_hint(memory_, SIZE_MAX, MEMTIDE_HOT), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_THAT(memtide_error(), testing::HasSubstr("beyond the last address"));
}

TEST_F(Hints, ThereIsAnEndToThem) {
    auto* const at = reinterpret_cast<char*>(std::uintptr_t{1} << 40);  // need not be there
    // Each call writes the table: as many as it has would take long with sanitizers.
    for (std::size_t i = 0; i < 300; ++i) ASSERT_EQ(memtide_hint(at + i * 8192, 4096, MEMTIDE_HOT), 0);
    EXPECT_EQ(read_table("self").size(), 300U);
    ASSERT_EQ(memtide_hint(at, 300 * 8192, MEMTIDE_NORMAL), 0);
}

TEST_F(Hints, FreedMemoryHasNone) {
    for (const char* heap : {"any", "slow"}) {
        void* const memory = memtide_malloc(heap, 256 * 1024);
        ASSERT_NE(memory, nullptr);
        ASSERT_EQ(memtide_hint(memory, 256 * 1024, MEMTIDE_COLD), 0);
        EXPECT_EQ(read_table("self").size(), 1U);
        memtide_free(memory);
        EXPECT_THAT(read_table("self"), IsEmpty());
    }
}

TEST_F(Hints, ABlockThatGrowsElsewhereLeavesNoneBehind) {
    auto* memory = static_cast<char*>(memtide_malloc("any", 256 * 1024));
    ASSERT_EQ(memtide_hint(memory, 256 * 1024, MEMTIDE_COLD), 0);
    std::strcpy(memory, "contents");
    memory = static_cast<char*>(memtide_realloc(nullptr, memory, 4 << 20));
    EXPECT_STREQ(memory, "contents");
    EXPECT_THAT(read_table("self"), IsEmpty());
    memtide_free(memory);
}

TEST_F(Hints, AChildOfForkGoesOnWithACopy) {
    ASSERT_EQ(memtide_hint(memory_, 4096, MEMTIDE_HOT), 0);
    std::array<int, 2> asked{};
    std::array<int, 2> answered{};
    ASSERT_EQ(::pipe(asked.data()), 0);
    ASSERT_EQ(::pipe(answered.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        char c = 0;
        const bool good = memtide_hint(memory_ + 4096 * 5, 4096, MEMTIDE_COLD) == 0;
        if (::write(answered[1], &c, 1) != 1 || ::read(asked[0], &c, 1) != 1) ::_exit(2);
        ::_exit(good ? 0 : 1);
    }
    char c = 0;
    ASSERT_EQ(::read(answered[0], &c, 1), 1);
    EXPECT_THAT(read_table(std::to_string(child)), ElementsAre(HintRange{page(0), page(1), Hint::kHot},
                                                               HintRange{page(5), page(6), Hint::kCold}));
    EXPECT_THAT(read_table("self"), ElementsAre(HintRange{page(0), page(1), Hint::kHot}));
    ASSERT_EQ(::write(asked[1], &c, 1), 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (const int file : {asked[0], asked[1], answered[0], answered[1]}) ::close(file);
}

}  // namespace
