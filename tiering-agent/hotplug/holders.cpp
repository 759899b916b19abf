#include "tiering-agent/hotplug/holders.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <numaif.h>
#include <unistd.h>

namespace memtide::agent {
namespace {

using Clock = std::chrono::steady_clock;

const std::uint64_t kPageSize = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
constexpr std::uint64_t kPagesPerRead = 8192;

std::optional<int> parse_number(const std::string& name) {
    int pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size() || pid < 0) return std::nullopt;
    return pid;
}

std::string command_of(const Files& files, int pid) {
    return files.read(fmt::format("proc/{}/comm", pid)).value_or("?");
}

struct Mapping {
    std::uint64_t start = 0;
    std::uint64_t pages_on_node = 0;
};

// "7f12a000 default anon=9 dirty=9 N0=4 N1=5 kernelpagesize_kB=4" (proc(5)).
std::vector<Mapping> mappings_on_node(const std::string& numa_maps, int node) {
    const std::string key = fmt::format(" N{}=", node);
    std::vector<Mapping> mappings;
    std::istringstream lines(numa_maps);
    for (std::string line; std::getline(lines, line);) {
        const auto at = line.find(key);
        if (at == std::string::npos) continue;
        Mapping mapping;
        const char* const end = line.data() + line.size();
        std::from_chars(line.data(), end, mapping.start, 16);
        std::from_chars(line.data() + at + key.size(), end, mapping.pages_on_node);
        mappings.push_back(mapping);
    }
    return mappings;
}

// Start and end of each mapping, from /proc/PID/maps.
std::map<std::uint64_t, std::uint64_t> mapping_ends(const std::string& maps) {
    std::map<std::uint64_t, std::uint64_t> ends;
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line);) {
        std::uint64_t start = 0;
        std::uint64_t end = 0;
        const char* const last = line.data() + line.size();
        const auto parsed = std::from_chars(line.data(), last, start, 16);
        if (parsed.ec != std::errc{} || parsed.ptr == last || *parsed.ptr != '-') continue;
        if (std::from_chars(parsed.ptr + 1, last, end, 16).ec == std::errc{}) ends[start] = end;
    }
    return ends;
}

// A file of 64-bit words indexed by page: pagemap, kpageflags.
class PageWords {
  public:
    explicit PageWords(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~PageWords() {
        if (fd_ >= 0) close(fd_);
    }
    PageWords(const PageWords&) = delete;
    PageWords& operator=(const PageWords&) = delete;

    // Calls visit(page, word) for each page of the range; visit returns false to stop.
    template <typename Visit>
    void scan(std::uint64_t first, std::uint64_t last, Visit visit) const {
        std::vector<std::uint64_t> words(kPagesPerRead);
        while (fd_ >= 0 && first < last) {
            const std::uint64_t count = std::min(kPagesPerRead, last - first);
            const ssize_t got = pread(fd_, words.data(), count * sizeof(std::uint64_t),
                                      static_cast<off_t>(first * sizeof(std::uint64_t)));
            const auto pages = got <= 0 ? 0 : static_cast<std::uint64_t>(got) / sizeof(std::uint64_t);
            for (std::uint64_t i = 0; i < pages; ++i)
                if (!visit(first + i, words[i])) return;
            if (pages == 0) return;
            first += pages;
        }
    }

  private:
    int fd_;
};

// pagemap: bit 63 present, bits 0-54 page frame number (Documentation/admin-guide/mm/pagemap.rst).
std::optional<std::uint64_t> frame_of(std::uint64_t word) {
    if ((word >> 63) == 0) return std::nullopt;
    const std::uint64_t frame = word & ((1ULL << 55) - 1);
    return frame == 0 ? std::nullopt : std::optional(frame);
}

void scan_mapping(const PageWords& pagemap, const BlockQuery& query, const std::set<std::uint64_t>& wanted,
                  Mapping mapping, std::uint64_t end, PageUser& user) {
    std::uint64_t to_see = mapping.pages_on_node;
    const std::uint64_t pages_per_block = query.block_size.value / kPageSize;
    pagemap.scan(mapping.start / kPageSize, end / kPageSize, [&](std::uint64_t page, std::uint64_t word) {
        if (page % kPagesPerRead == 0 && Clock::now() >= query.deadline) return false;
        const auto frame = frame_of(word);
        if (!frame) return true;
        const std::uint64_t block = *frame / pages_per_block;
        if (!wanted.contains(block)) return true;
        user.pages[block].push_back(page * kPageSize);
        return --to_see > 0;
    });
}

std::optional<PageUser> scan_process(const Files& files, const BlockQuery& query,
                                     const std::set<std::uint64_t>& wanted, int pid) {
    const auto numa_maps = files.read(fmt::format("proc/{}/numa_maps", pid));
    if (!numa_maps) return std::nullopt;
    const auto mappings = mappings_on_node(*numa_maps, query.node);
    if (mappings.empty()) return std::nullopt;
    const auto maps = files.read(fmt::format("proc/{}/maps", pid));
    if (!maps) return std::nullopt;
    const auto ends = mapping_ends(*maps);
    const PageWords pagemap(files.absolute(fmt::format("proc/{}/pagemap", pid)));
    PageUser user{.pid = pid, .command = {}, .pages = {}};
    for (const Mapping mapping : mappings) {
        const auto end = ends.find(mapping.start);
        if (end == ends.end() || Clock::now() >= query.deadline) continue;
        scan_mapping(pagemap, query, wanted, mapping, end->second, user);
    }
    if (user.pages.empty()) return std::nullopt;
    user.command = command_of(files, pid);
    return user;
}

// Bits of /proc/kpageflags (include/uapi/linux/kernel-page-flags.h; 32: reserved, kernel-internal but
// stable).
enum KernelPageFlag : unsigned {
    kLru = 5,
    kSlab = 7,
    kBuddy = 10,
    kAnon = 12,
    kNoPage = 20,
    kOfflinePage = 23,
    kPageTable = 26,
    kReserved = 32
};
bool has(std::uint64_t flags, KernelPageFlag flag) { return ((flags >> flag) & 1) != 0; }

// What is in use of a block beyond what processes map, by kind.
std::vector<Holder> kernel_holders(const PageWords& kpageflags, std::uint64_t block,
                                   std::uint64_t pages_per_block, std::uint64_t pages_of_processes) {
    std::uint64_t anonymous = 0;
    std::map<std::string, std::uint64_t> pages;
    kpageflags.scan(block * pages_per_block, (block + 1) * pages_per_block,
                    [&](std::uint64_t, std::uint64_t flags) {
                        if (flags == 0 || has(flags, kBuddy) || has(flags, kNoPage) ||
                            has(flags, kOfflinePage) || has(flags, kReserved))
                            return true;
                        if (has(flags, kAnon))
                            ++anonymous;
                        else if (has(flags, kSlab))
                            ++pages["kernel slab"];
                        else if (has(flags, kPageTable))
                            ++pages["page tables"];
                        else if (has(flags, kLru))
                            ++pages["page cache"];
                        else
                            ++pages["kernel"];
                        return true;
                    });
    if (anonymous > pages_of_processes)
        pages["memory of no process (pinned or in swap cache)"] = anonymous - pages_of_processes;
    std::vector<Holder> holders;
    for (const auto& [kind, count] : pages)
        holders.push_back({.block = fmt::format("memory{}", block),
                           .pid = {},
                           .command = kind,
                           .bytes = {count * kPageSize}});
    return holders;
}

// "0-1,3" -> 0 1 3
std::vector<int> parse_node_list(const std::string& text) {
    constexpr int kMostNodes = 1024;
    std::vector<int> nodes;
    std::istringstream ranges(text);
    for (std::string range; std::getline(ranges, range, ',');) {
        const auto dash = range.find('-');
        const auto first = parse_number(range.substr(0, dash));
        const auto last = dash == std::string::npos ? first : parse_number(range.substr(dash + 1));
        if (!first || !last || *last >= kMostNodes) return nodes;
        for (int node = *first; node <= *last; ++node) nodes.push_back(node);
    }
    return nodes;
}

}  // namespace

std::vector<PageUser> find_page_users(const Files& files, const BlockQuery& query) {
    std::vector<PageUser> users;
    if (query.block_size.value < kPageSize) return users;
    const std::set<std::uint64_t> wanted(query.blocks.begin(), query.blocks.end());
    for (const std::string& name : files.list("proc")) {
        if (Clock::now() >= query.deadline) break;
        const auto pid = parse_number(name);
        if (!pid) continue;
        if (auto user = scan_process(files, query, wanted, *pid)) users.push_back(std::move(*user));
    }
    return users;
}

std::vector<Holder> describe_holders(const Files& files, const BlockQuery& query,
                                     const std::vector<PageUser>& users, std::size_t limit) {
    std::vector<Holder> holders;
    std::map<std::uint64_t, std::uint64_t> pages_of_processes;
    for (const PageUser& user : users)
        for (const auto& [block, addresses] : user.pages) {
            pages_of_processes[block] += addresses.size();
            holders.push_back({.block = fmt::format("memory{}", block),
                               .pid = user.pid,
                               .command = user.command,
                               .bytes = {addresses.size() * kPageSize}});
        }
    if (query.block_size.value >= kPageSize) {
        const PageWords kpageflags(files.absolute("proc/kpageflags"));
        for (const std::uint64_t block : query.blocks) {
            if (Clock::now() >= query.deadline) break;
            std::ranges::move(kernel_holders(kpageflags, block, query.block_size.value / kPageSize,
                                             pages_of_processes[block]),
                              std::back_inserter(holders));
        }
    }
    std::ranges::stable_sort(holders, [](const Holder& a, const Holder& b) {
        return std::pair(a.pid.has_value(), a.bytes) > std::pair(b.pid.has_value(), b.bytes);
    });
    if (holders.size() > limit) holders.resize(limit);
    return holders;
}

std::vector<Holder> find_dax_users(const Files& files, const std::string& dax, Bytes size) {
    std::vector<Holder> holders;
    const std::string device = "/dev/" + dax;
    for (const std::string& name : files.list("proc")) {
        const auto pid = parse_number(name);
        if (!pid) continue;
        const auto maps = files.read(fmt::format("proc/{}/maps", *pid));
        if (!maps) continue;
        std::istringstream lines(*maps);
        for (std::string line; std::getline(lines, line);) {
            if (!line.ends_with(device)) continue;
            holders.push_back({.block = dax, .pid = *pid, .command = command_of(files, *pid), .bytes = size});
            break;
        }
    }
    return holders;
}

std::optional<int> nearest_other_node(const Files& files, int node) {
    const std::string nodes = "sys/devices/system/node/";
    const auto online = parse_node_list(files.read(nodes + "online").value_or(""));
    const auto with_memory = parse_node_list(files.read(nodes + "has_memory").value_or(""));
    // One distance for each online node, in their order.
    std::istringstream distances(files.read(fmt::format("{}node{}/distance", nodes, node)).value_or(""));
    std::optional<int> nearest;
    int shortest = 0;
    for (const int other : online) {
        int distance = 0;
        if (!(distances >> distance)) break;
        if (other == node || std::ranges::find(with_memory, other) == with_memory.end()) continue;
        if (nearest && distance >= shortest) continue;
        nearest = other;
        shortest = distance;
    }
    return nearest;
}

namespace {
class SystemPageMover final : public PageMover {
  public:
    std::size_t move(int pid, const std::vector<std::uint64_t>& addresses, int node) override {
        std::vector<void*> pages;
        for (const std::uint64_t address : addresses) pages.push_back(reinterpret_cast<void*>(address));
        const std::vector<int> nodes(pages.size(), node);
        std::vector<int> where(pages.size(), -1);
        if (move_pages(pid, pages.size(), pages.data(), nodes.data(), where.data(), MPOL_MF_MOVE_ALL) < 0)
            return 0;
        return static_cast<std::size_t>(std::ranges::count(where, node));
    }
};
}  // namespace

std::unique_ptr<PageMover> make_page_mover() { return std::make_unique<SystemPageMover>(); }

}  // namespace memtide::agent
