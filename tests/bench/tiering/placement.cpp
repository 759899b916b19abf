#include "tests/bench/tiering/placement.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <numaif.h>
#include <sys/mman.h>
#include <unistd.h>

namespace memtide::bench {
namespace {

constexpr std::size_t kHugeBytes = std::size_t{2} << 20;
constexpr std::size_t kBatch = 4096;  // pages of a system call
constexpr double kUndoneWithinSeconds = 60;

Result<> move_all(const Mapping& mapping, int node) {
    std::vector<void*> pages;
    pages.reserve(mapping.pages());
    for (std::size_t i = 0; i < mapping.pages(); ++i) pages.push_back(mapping.start() + i * kPageBytes);
    const std::vector<int> targets(pages.size(), node);
    std::vector<int> status(pages.size());
    if (move_pages(0, pages.size(), pages.data(), targets.data(), status.data(), MPOL_MF_MOVE) != 0)
        return fail_errno("move_pages", fmt::format("to node {}", node), errno);
    if (std::ranges::count(status, node) != std::ssize(status))
        return fail(ErrorCode::kExhausted,
                    fmt::format("node {} has no room for {} pages", node, pages.size()));
    return {};
}

}  // namespace

Result<Mapping> Mapping::make(std::size_t pages, bool huge) {
    const std::size_t bytes = (pages * kPageBytes + kHugeBytes - 1) / kHugeBytes * kHugeBytes;
    const std::size_t reserved = bytes + kHugeBytes;
    void* const at =
        mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return fail_errno("mmap", fmt::format("{} bytes", reserved), errno);
    auto* const start = static_cast<char*>(at);
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    char* const aligned = start + (kHugeBytes - address % kHugeBytes) % kHugeBytes;
    Mapping mapping(start, reserved, aligned, pages);
    if (madvise(aligned, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0)
        return fail_errno("madvise", huge ? "MADV_HUGEPAGE" : "MADV_NOHUGEPAGE", errno);
    return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : reserved_(std::exchange(other.reserved_, nullptr)),
      reserved_bytes_(other.reserved_bytes_),
      start_(other.start_),
      pages_(other.pages_) {}

Mapping::~Mapping() {
    if (reserved_ != nullptr) munmap(reserved_, reserved_bytes_);
}

PreferNode::PreferNode(int node) {
    const unsigned long mask = 1UL << node;
    static_cast<void>(set_mempolicy(MPOL_PREFERRED, &mask, sizeof mask * 8));
}
PreferNode::~PreferNode() { static_cast<void>(set_mempolicy(MPOL_DEFAULT, nullptr, 0)); }

Result<> check_no_policy(const Mapping& mapping) {
    std::ifstream file("/proc/self/numa_maps");
    const auto begin = reinterpret_cast<std::uintptr_t>(mapping.start());
    const auto end = begin + mapping.pages() * kPageBytes;
    std::string line;
    std::size_t found = 0;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::uintptr_t address = 0;
        std::string policy;
        if (!(words >> std::hex >> address >> policy) || address < begin || address >= end) continue;
        ++found;
        if (policy != "default")
            return fail(ErrorCode::kConflict,
                        fmt::format("the memory at {:#x} has policy {}", address, policy));
    }
    if (found == 0) return fail(ErrorCode::kNotFound, "/proc/self/numa_maps does not show the memory");
    return {};
}

ZoneInfo read_zones(std::string_view zoneinfo) {
    ZoneInfo info;
    std::istringstream text{std::string(zoneinfo)};
    int node = -1;
    std::size_t free = 0;
    std::uint64_t spanned = 0;
    std::string line;
    while (std::getline(text, line)) {
        std::istringstream words(line);
        std::string name;
        std::uint64_t value = 0;
        words >> name;
        if (name == "Node") {
            words >> node;  // "Node 0, zone   Normal": one of these begins each zone
            free = 0;
            spanned = 0;
        } else if (name == "pages") {
            words >> name >> free;
        } else if (name == "high" && words >> value) {  // "high:" is that of per-processor lists
            info.free_pages[node] += free - std::min<std::size_t>(free, value);
        } else if (name == "spanned") {
            words >> spanned;
        } else if (name == "start_pfn:" && words >> value && spanned > 0) {
            info.spans.push_back({node, value, value + spanned});
        }
    }
    std::ranges::sort(info.spans, {}, &FrameSpan::first);
    return info;
}

namespace {

constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;  // Documentation/admin-guide/mm/pagemap.rst
constexpr std::uint64_t kFrame = (std::uint64_t{1} << 55) - 1;

Result<ZoneInfo> zones_now() {
    std::ifstream file("/proc/zoneinfo");
    if (!file) return fail_errno("open", "/proc/zoneinfo", errno);
    return read_zones(std::string(std::istreambuf_iterator<char>(file), {}));
}

int node_of_frame(const std::vector<FrameSpan>& spans, std::uint64_t frame) {
    for (const FrameSpan& span : spans)
        if (frame >= span.first && frame < span.last) return span.node;
    return -1;
}

}  // namespace

NodeFinder::NodeFinder(const Mapping& mapping)
    : mapping_(mapping), pagemap_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    if (auto zones = zones_now()) spans_ = std::move(zones->spans);
}

NodeFinder::~NodeFinder() {
    if (pagemap_ >= 0) close(pagemap_);
}

Result<> NodeFinder::find(std::vector<int>& nodes) {
    if (by_frames_) return by_frames(nodes);
    if (auto asked = ask(nodes); !asked || compared_) return asked;
    compared_ = true;
    std::vector<int> found;
    by_frames_ = by_frames(found).has_value() && found == nodes;
    return {};
}

Result<> NodeFinder::ask(std::vector<int>& nodes) const {
    nodes.resize(mapping_.pages());
    std::vector<void*> batch(kBatch);
    for (std::size_t first = 0; first < nodes.size(); first += kBatch) {
        const std::size_t count = std::min(kBatch, nodes.size() - first);
        for (std::size_t i = 0; i < count; ++i) batch[i] = mapping_.start() + (first + i) * kPageBytes;
        if (move_pages(0, count, batch.data(), nullptr, nodes.data() + first, 0) != 0)
            return fail_errno("move_pages", "to find the nodes of pages", errno);
    }
    // Errors differ for a page that was never touched and one that is gone: as by_frames() has it.
    for (int& node : nodes) node = std::max(node, -1);
    return {};
}

Result<> NodeFinder::by_frames(std::vector<int>& nodes) {
    nodes.resize(mapping_.pages());
    entries_.resize(kBatch);
    const std::uintptr_t first_page = reinterpret_cast<std::uintptr_t>(mapping_.start()) / kPageBytes;
    for (std::size_t first = 0; first < nodes.size(); first += kBatch) {
        const std::size_t count = std::min(kBatch, nodes.size() - first);
        const std::size_t bytes = count * sizeof entries_[0];
        if (pread(pagemap_, entries_.data(), bytes,
                  static_cast<off_t>((first_page + first) * sizeof entries_[0])) !=
            static_cast<ssize_t>(bytes))
            return fail_errno("read", "/proc/self/pagemap", errno);
        for (std::size_t i = 0; i < count; ++i)
            nodes[first + i] =
                (entries_[i] & kPresent) == 0 ? -1 : node_of_frame(spans_, entries_[i] & kFrame);
    }
    return {};
}

Result<std::size_t> free_pages(int node) {
    const auto zones = zones_now();
    if (!zones) return std::unexpected(zones.error());
    const auto found = zones->free_pages.find(node);
    if (found == zones->free_pages.end())
        return fail(ErrorCode::kNotFound, fmt::format("there is no node {} with memory", node));
    return found->second;
}

Result<double> measure_copy(int from, int to) {
    auto scratch = Mapping::make((std::size_t{16} << 20) / kPageBytes, false);
    if (!scratch) return std::unexpected(scratch.error());
    {
        const PreferNode prefer(from);
        for (std::size_t i = 0; i < scratch->pages(); ++i) scratch->page(i)[0] = i;
    }
    double best = 0;
    for (int round = 0; round < 3; ++round) {
        const auto began = std::chrono::steady_clock::now();
        if (auto there = move_all(*scratch, to); !there) return std::unexpected(there.error());
        if (auto back = move_all(*scratch, from); !back) return std::unexpected(back.error());
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        best = std::max(best, 2.0 * static_cast<double>(scratch->pages() * kPageBytes) / took.count());
    }
    return best;
}

void MoveCounter::look(const std::vector<int>& nodes, double seconds) {
    if (last_.empty()) {
        last_ = nodes;
        moved_at_.assign(nodes.size(), -2 * kUndoneWithinSeconds);
        return;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i] < 0 || nodes[i] == last_[i]) continue;
        if (last_[i] >= 0) {
            ++moved_;
            if (seconds - moved_at_[i] <= kUndoneWithinSeconds) ++undone_;
            moved_at_[i] = seconds;
        }
        last_[i] = nodes[i];
    }
}

}  // namespace memtide::bench
