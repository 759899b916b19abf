#include "tiering-agent/move/page_shaper.h"

#include <cstring>
#include <span>

#include <fmt/format.h>
#include <sys/mman.h>

#include "tiering-agent/observe/process_advice.h"
#include "tiering-agent/policy/heat_map.h"
#include "tiering-agent/track/page_map.h"

namespace memtide::agent {
namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE: glibc 2.36 does not have it

class SystemPageShaper final : public PageShaper {
  public:
    explicit SystemPageShaper(const Files& files) : files_(files) {}

    Result<> split(ProcessId process, std::uint64_t page) override {
        // Any part will do; the last is seldom what its process begins to read first.
        return advise(process, {page + kPagesPerHuge - 1, page + kPagesPerHuge}, MADV_COLD, page, false);
    }
    Result<> join(ProcessId process, std::uint64_t page) override {
        return advise(process, {page, page + kPagesPerHuge}, kCollapse, page, true);
    }

  private:
    // Of the pages, [begin, end); then the one at `page` has to be huge, or not.
    Result<> advise(ProcessId process, PageRun pages, int advice, std::uint64_t page, bool huge) {
        auto adviser = ProcessAdvice::open(files_, process);
        if (!adviser) return std::unexpected(adviser.error());
        const iovec range{reinterpret_cast<void*>(pages.begin << kPageShift), (pages.end - pages.begin)
                                                                                  << kPageShift};
        const auto done = adviser->advise(std::span(&range, 1), advice);
        if (!done) return std::unexpected(done.error());
        if (done->error != 0)
            return fail(ErrorCode::kConflict,
                        fmt::format("the kernel kept it: {}", std::strerror(done->error)));
        auto map = PageMap::open(files_, process.pid);
        if (!map) return std::unexpected(map.error());
        const auto runs = map->populated({page << kPageShift, (page + kPagesPerHuge) << kPageShift});
        if (!runs) return std::unexpected(runs.error());
        if (runs->empty() || runs->front().huge != huge)
            return fail(ErrorCode::kConflict, "the kernel kept it as it was");
        return {};
    }

    const Files& files_;
};

}  // namespace

std::unique_ptr<PageShaper> make_page_shaper(const Files& files) {
    return std::make_unique<SystemPageShaper>(files);
}

}  // namespace memtide::agent
