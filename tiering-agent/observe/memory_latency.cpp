#include "tiering-agent/observe/memory_latency.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <numaif.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace memtide::agent {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kPages = 64;
constexpr std::size_t kLines =
    256;  // of a chase: so many on each page that neighbours are not fetched with them
constexpr int kChases = 3;

// Memory on one node, of which some lines are a ring of pointers in random order.
class Ring {
  public:
    static std::optional<Ring> make(int node) {
        constexpr std::size_t kMostNodes = 1024;
        if (node < 0 || static_cast<std::size_t>(node) >= kMostNodes) return std::nullopt;
        void* const mapped =
            ::mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return std::nullopt;
        Ring ring(static_cast<std::byte*>(mapped));
        constexpr std::size_t kBits = 8 * sizeof(unsigned long);
        std::array<unsigned long, kMostNodes / kBits> nodes{};
        nodes[static_cast<std::size_t>(node) / kBits] |= 1UL << static_cast<std::size_t>(node) % kBits;
        if (::mbind(mapped, kPages * kPageBytes, MPOL_BIND, nodes.data(), kMostNodes + 1, 0) != 0)
            return std::nullopt;
        ring.link();
        return ring;
    }
    ~Ring() {
        if (memory_ != nullptr) ::munmap(memory_, kPages * kPageBytes);
    }
    Ring(Ring&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), first_(std::exchange(other.first_, nullptr)) {}
    Ring& operator=(Ring&&) = delete;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    // Where the pages are the kernel decides in the end.
    [[nodiscard]] bool is_on(int node) const {
        int now = -1;
        return ::get_mempolicy(&now, nullptr, 0, memory_, MPOL_F_NODE | MPOL_F_ADDR) == 0 && now == node;
    }
    [[nodiscard]] double chase() const {
        flush();
        const auto start = std::chrono::steady_clock::now();
        const volatile void* at = first_;
        for (std::size_t i = 0; i < kLines; ++i)
            at = *static_cast<void* const volatile*>(const_cast<const void*>(at));
        const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
        return time.count() / kLines;
    }

  private:
    explicit Ring(std::byte* memory) : memory_(memory) {}
    void link() {
        std::vector<std::byte*> lines;
        for (std::size_t i = 0; i < kLines; ++i) {
            const std::size_t page = i % kPages;
            const std::size_t line = (i / kPages * 16 + page * 5) % (kPageBytes / kLine);
            lines.push_back(memory_ + page * kPageBytes + line * kLine);
        }
        std::ranges::shuffle(lines, std::mt19937(1));
        for (std::size_t i = 0; i < kLines; ++i)
            *reinterpret_cast<void**>(lines[i]) = lines[(i + 1) % kLines];
        first_ = lines.front();
    }
    void flush() const {
#if defined(__x86_64__)
        for (std::size_t at = 0; at < kPages * kPageBytes; at += kLine) _mm_clflush(memory_ + at);
        _mm_mfence();
#endif
    }

    std::byte* memory_;
    void* first_ = nullptr;
};

class SystemMemoryLatency final : public MemoryLatency {
  public:
    std::optional<double> measure(int node) override {
#if !defined(__x86_64__)
        return std::nullopt;
#endif
        auto found = rings_.find(node);
        if (found == rings_.end()) {
            auto ring = Ring::make(node);
            if (!ring) return std::nullopt;
            found = rings_.emplace(node, *std::move(ring)).first;
        }
        if (!found->second.is_on(node)) return std::nullopt;
        double shortest = found->second.chase();
        for (int i = 1; i < kChases; ++i) shortest = std::min(shortest, found->second.chase());
        return shortest;
    }
    void keep_only(const std::set<int>& nodes) override {
        std::erase_if(rings_, [&](const auto& entry) { return !nodes.contains(entry.first); });
    }

  private:
    std::map<int, Ring> rings_;
};

}  // namespace

std::unique_ptr<MemoryLatency> make_memory_latency() { return std::make_unique<SystemMemoryLatency>(); }

}  // namespace memtide::agent
