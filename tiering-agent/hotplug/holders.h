#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/sysfs/files.h"
#include "tiering-agent/hotplug/state.h"

// Who uses the pages of memory blocks, from /proc/PID/{numa_maps,maps,pagemap} and /proc/kpageflags.
namespace memtide::agent {

// One process and its virtual addresses of pages in the blocks asked about.
struct PageUser {
    int pid = 0;
    std::string command{};
    std::map<std::uint64_t, std::vector<std::uint64_t>> pages{};  // by block index
};

struct BlockQuery {
    std::vector<std::uint64_t> blocks{};
    Bytes block_size{};
    int node = 0;  // which the blocks belong to: mappings without pages there are not looked at
    // The scan ends there with what it has; a huge process costs no more than this.
    std::chrono::steady_clock::time_point deadline{};
};

// Needs root to see page frame numbers; without, nothing is found.
std::vector<PageUser> find_page_users(const Files& files, const BlockQuery& query);

// For the report: what the processes hold of each block, and what is left over for the kernel and page cache.
// At most `limit` entries, the largest first.
std::vector<Holder> describe_holders(const Files& files, const BlockQuery& query,
                                     const std::vector<PageUser>& users, std::size_t limit = 32);

// Processes that map /dev/NAME of a device-dax.
std::vector<Holder> find_dax_users(const Files& files, const std::string& dax, Bytes size);

// The nearest other node with memory, by the kernel's distance table; none when there is no other.
std::optional<int> nearest_other_node(const Files& files, int node);

// Moves single pages of processes; obeys cpusets (the kernel refuses), never touches other pages.
class PageMover {
  public:
    virtual ~PageMover() = default;
    // How many of the pages are on `node` afterwards.
    virtual std::size_t move(int pid, const std::vector<std::uint64_t>& addresses, int node) = 0;
};
std::unique_ptr<PageMover> make_page_mover();  // move_pages(2)

}  // namespace memtide::agent
