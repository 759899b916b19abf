// On this machine's kernel, with page faults of this thread: an event that needs no hardware and no rights.
#include "tiering-agent/track/perf_ring.h"

#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace memtide::agent {
namespace {

constexpr std::size_t kPage = 4096;

perf_event_attr page_faults() {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
    attributes.sample_period = 1;
    attributes.sample_type = PERF_SAMPLE_ADDR;
    attributes.exclude_kernel = 1;
    return attributes;
}

// So many pages that nobody has touched.
class Pages {
  public:
    explicit Pages(std::size_t count) : size_(count * kPage) {
        memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory_, size_, MADV_NOHUGEPAGE);
    }
    ~Pages() { munmap(memory_, size_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    void touch(std::size_t page) const { static_cast<volatile char*>(memory_)[page * kPage] = 1; }
    [[nodiscard]] std::uint64_t begin() const { return reinterpret_cast<std::uint64_t>(memory_); }
    [[nodiscard]] bool contains(std::uint64_t address) const {
        return address >= begin() && address < begin() + size_;
    }

  private:
    std::size_t size_;
    void* memory_;
};

struct Seen {
    std::size_t faults = 0;  // in the pages
    std::size_t losses = 0;
};
Seen drain(PerfRing& ring, const Pages& pages) {
    Seen seen;
    ring.drain([&](std::uint32_t type, std::span<const std::byte> body) {
        std::uint64_t address = 0;
        if (type == PERF_RECORD_LOST) ++seen.losses;
        if (type != PERF_RECORD_SAMPLE || body.size() < sizeof address) return;
        std::memcpy(&address, body.data(), sizeof address);
        seen.faults += pages.contains(address) ? 1 : 0;
    });
    return seen;
}

#define OPEN_OR_SKIP(ring)                                             \
    auto opened = PerfRing::open(page_faults(), {.thread = 0}, kPage); \
    if (!opened) GTEST_SKIP() << opened.error().message;               \
    PerfRing ring = *std::move(opened)

TEST(PerfRing, TellsEachEventWithItsData) {
    const Pages pages(64);
    OPEN_OR_SKIP(ring);
    for (std::size_t i = 0; i < 5; ++i) pages.touch(i);
    EXPECT_EQ(drain(ring, pages).faults, 5U);
    EXPECT_EQ(drain(ring, pages).faults, 0U) << "each is told once";
    ring.disable();
    pages.touch(10);
    EXPECT_EQ(drain(ring, pages).faults, 0U);
    ring.enable();
    pages.touch(11);
    EXPECT_EQ(drain(ring, pages).faults, 1U);
}

TEST(PerfRing, WhatItHasNoRoomForIsSaidToBeLostAndItGoesOn) {
    const Pages pages(2'000);
    OPEN_OR_SKIP(ring);
    for (std::size_t i = 0; i < 1'000; ++i) pages.touch(i);
    const Seen full = drain(ring, pages);
    // A sanitizer has faults of its own, which take room, too.
    EXPECT_GT(full.faults, 10U);
    EXPECT_LT(full.faults, 300U);
    // Records of many lengths around the end of the ring.
    std::size_t faults = 0;
    std::size_t losses = full.losses;
    for (std::size_t i = 1'000; i < 2'000; ++i) {
        pages.touch(i);
        if (i % 7 != 0) continue;
        const Seen some = drain(ring, pages);
        faults += some.faults;
        losses += some.losses;
    }
    EXPECT_GE(faults, 990U);
    EXPECT_GE(losses, 1U);
}

TEST(PerfRing, AThreadThatIsNotThereIsSaidToBe) {
    const auto ring = PerfRing::open(page_faults(), {.thread = 0x3fffff}, kPage);
    ASSERT_FALSE(ring);
    EXPECT_NE(ring.error().message, "");
}

TEST(RawData, IsTheDataOfASampleAndNoMoreThanThereIs) {
    std::vector<std::byte> body(12);
    body[0] = std::byte{8};
    EXPECT_EQ(raw_data(PERF_RECORD_SAMPLE, body).size(), 8U);
    body[0] = std::byte{200};
    EXPECT_EQ(raw_data(PERF_RECORD_SAMPLE, body).size(), 8U);
    EXPECT_TRUE(raw_data(PERF_RECORD_LOST, body).empty());
    EXPECT_TRUE(raw_data(PERF_RECORD_SAMPLE, std::span(body).first(3)).empty());
}

}  // namespace
}  // namespace memtide::agent
