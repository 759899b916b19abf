#include "tiering-agent/track/page_map.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/types.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {
namespace {

// Of linux/fs.h from 6.7 on (Documentation/admin-guide/mm/pagemap.rst); Debian 12 has older headers.
struct ScannedRegion {
    __u64 start;
    __u64 end;
    __u64 categories;
};
struct ScanArguments {
    __u64 size;
    __u64 flags;
    __u64 start;
    __u64 end;
    __u64 walk_end;
    __u64 regions;
    __u64 region_count;
    __u64 most_pages;
    __u64 inverted_mask;
    __u64 all_of_mask;
    __u64 any_of_mask;
    __u64 return_mask;
};
constexpr unsigned long kPageMapScan = _IOWR('f', 16, ScanArguments);
constexpr __u64 kPresent = 1 << 3;
constexpr __u64 kZeroPage = 1 << 5;
constexpr __u64 kHuge = 1 << 6;

constexpr std::size_t kRegionsAtOnce = 256;
constexpr std::uint64_t kPageSize = std::uint64_t{1} << kPageShift;

Result<std::uint64_t> parse_hex_number(std::string_view text) {
    std::uint64_t value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (failed != std::errc{} || end != text.data() + text.size() || value == 0)
        return fail(ErrorCode::kProtocol, fmt::format("\"{}\" is no hexadecimal number", text));
    return value;
}

}  // namespace

Result<PageMap> PageMap::open(const Files& files, int pid) {
    const std::string path = files.absolute(fmt::format("proc/{}/pagemap", pid));
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return fail_errno("open", path, errno);
    return PageMap(file);
}

PageMap::~PageMap() {
    if (file_ >= 0) ::close(file_);
}

PageMap::PageMap(PageMap&& other) noexcept
    : file_(std::exchange(other.file_, -1)), can_scan_(other.can_scan_), words_(std::move(other.words_)) {}

Result<std::vector<PageRun>> PageMap::populated(VirtualRange range) {
    std::vector<PageRun> runs;
    std::array<ScannedRegion, kRegionsAtOnce> regions{};
    ScanArguments scan{.size = sizeof scan,
                       .flags = 0,
                       .start = range.begin,
                       .end = range.end,
                       .walk_end = 0,
                       .regions = reinterpret_cast<__u64>(regions.data()),
                       .region_count = regions.size(),
                       .most_pages = 0,
                       .inverted_mask = kZeroPage,
                       .all_of_mask = kPresent | kZeroPage,
                       .any_of_mask = 0,
                       .return_mask = kPresent | kHuge};
    while (can_scan_ && scan.start < scan.end) {
        const int found = ::ioctl(file_, kPageMapScan, &scan);
        if (found < 0 && (errno == ENOTTY || errno == EINVAL) && runs.empty()) {
            can_scan_ = false;
            break;
        }
        if (found < 0) return fail_errno("scan", "pages", errno);
        for (const ScannedRegion& region : std::span(regions).first(static_cast<std::size_t>(found))) {
            const PageRun run{region.start >> kPageShift, region.end >> kPageShift,
                              (region.categories & kHuge) != 0};
            if (!runs.empty() && runs.back().end == run.begin && runs.back().huge == run.huge)
                runs.back().end = run.end;
            else
                runs.push_back(run);
        }
        if (scan.walk_end <= scan.start) break;
        scan.start = scan.walk_end;
    }
    if (!can_scan_)
        runs.push_back({range.begin >> kPageShift, (range.end + kPageSize - 1) >> kPageShift, false});
    return runs;
}

Result<std::span<const PageMapEntry>> PageMap::read(std::uint64_t page, std::size_t count) {
    words_.resize(std::max(words_.size(), count));
    ssize_t got = 0;
    do {
        got = ::pread(file_, words_.data(), count * sizeof(PageMapEntry),
                      static_cast<off_t>(page * sizeof(PageMapEntry)));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return fail_errno("read", "the page map of a process", errno);
    return std::span<const PageMapEntry>(words_).first(static_cast<std::size_t>(got) / sizeof(PageMapEntry));
}

Result<FrameNodes> FrameNodes::read(const Files& files) {
    const auto size_text = files.read("sys/devices/system/memory/block_size_bytes");
    if (!size_text)
        return fail(ErrorCode::kUnavailable, "which memory is of which NUMA node the kernel does not say: " +
                                                 size_text.error().message);
    const auto block_size = parse_hex_number(*size_text);
    if (!block_size) return std::unexpected(block_size.error());
    constexpr std::uint64_t kMostBlocks = 1 << 24;
    FrameNodes nodes;
    // A power of two, of 128 MiB or more.
    nodes.block_shift_ =
        static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(*block_size >> kPageShift, 1)) - 1);
    for (const std::string& node : files.list("sys/devices/system/node")) {
        int number = 0;
        if (!node.starts_with("node") ||
            std::from_chars(node.data() + 4, node.data() + node.size(), number).ptr !=
                node.data() + node.size())
            continue;
        for (const std::string& block : files.list("sys/devices/system/node/" + node)) {
            std::uint64_t index = 0;
            const char* const end = block.data() + block.size();
            if (!block.starts_with("memory") || std::from_chars(block.data() + 6, end, index).ptr != end ||
                index >= kMostBlocks)
                continue;
            if (index >= nodes.nodes_.size()) nodes.nodes_.resize(index + 1, -1);
            nodes.nodes_[index] = static_cast<std::int16_t>(number);
        }
    }
    if (nodes.nodes_.empty())
        return fail(ErrorCode::kUnavailable, "the kernel shows no memory blocks of NUMA nodes");
    return nodes;
}

int FrameNodes::node_of(std::uint64_t frame) const {
    const std::uint64_t block = frame >> block_shift_;
    return block < nodes_.size() ? nodes_[block] : -1;
}

}  // namespace memtide::agent
