// Actions on memory blocks: online, rezone, drain and offline.
#include <algorithm>

#include <fmt/format.h>

#include "tiering-agent/hotplug/host.h"

namespace memtide::agent {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRezoneLimit{1'000};  // freshly onlined memory has next to nothing on it
constexpr milliseconds kForcedLimit{500};    // nobody waits for a forced release
constexpr milliseconds kLeastPerBlock{250};
constexpr milliseconds kExplainBudget{1'000};  // of looking through /proc
constexpr milliseconds kExplainEvery{2'000};

std::string state_file(std::uint64_t block) {
    return fmt::format("sys/devices/system/memory/memory{}/state", block);
}

std::string describe(const std::vector<std::uint64_t>& blocks, const Error& error) {
    return fmt::format(
        "{} cannot be taken offline yet: {}", block_names(blocks),
        error.code == ErrorCode::kCancelled ? "pages on it cannot be moved away" : error.message);
}

}  // namespace

Result<> SysfsHost::online_blocks(const Action& action) {
    Result<> first;
    for (const std::uint64_t block : action.blocks)
        if (auto done = parts_.files.write(state_file(block), "online_movable"); !done && first) first = done;
    return first;
}

Result<> SysfsHost::offline_block(std::uint64_t index, milliseconds limit) {
    const Interruption::Armed armed(parts_.interruption, Clock::now() + limit);
    return parts_.files.write(state_file(index), "offline");
}

// A block in a kernel zone can change zone only while it is offline.
ActionResult SysfsHost::rezone_blocks(const Action& action) {
    std::vector<std::uint64_t> stuck;
    Error error;
    for (const std::uint64_t block : action.blocks) {
        if (parts_.interruption.requested()) break;
        auto done = offline_block(block, kRezoneLimit);
        if (done) done = parts_.files.write(state_file(block), "online_movable");
        if (done) continue;
        stuck.push_back(block);
        error = done.error();
    }
    if (stuck.empty()) return {};
    auto held = explain_held(action, stuck, error, false);
    held.error = Finding{"online-not-movable",
                         fmt::format("{} went online in a kernel zone by this host's policy, and {}",
                                     block_names(stuck), describe(stuck, error))};
    return held;
}

ActionResult SysfsHost::offline_blocks(const Action& action) {
    const milliseconds slice = action.force ? kForcedLimit : kOfflineSlice;
    const auto per_block =
        std::max(kLeastPerBlock, slice / static_cast<int>(std::max<std::size_t>(action.blocks.size(), 1)));
    std::vector<std::uint64_t> held;
    Error error;
    for (const std::uint64_t block : action.blocks) {
        if (parts_.interruption.requested())
            return {.error = Finding{"cancelled", "the wish changed meanwhile"}};
        const auto done = offline_block(block, per_block);
        if (done) continue;
        held.push_back(block);
        error = done.error();
    }
    if (held.empty()) return {};
    return explain_held(action, held, error, !action.force);
}

// Names who holds the blocks and, when `move`, moves their pages to the nearest other node; so the next
// attempt has less to do, page by page and within the owner's cpuset.
ActionResult SysfsHost::explain_held(const Action& action, const std::vector<std::uint64_t>& blocks,
                                     const Error& error, bool move) {
    ActionResult result{.error = Finding{"still-held", describe(blocks, error)}};
    const auto now = Clock::now();
    const auto last = last_explained_.find(action.id);
    if (action.force || parts_.interruption.requested() ||
        (last != last_explained_.end() && now < last->second + kExplainEvery))
        return result;
    const auto node = read_block(blocks.front()).node;
    const auto block_size = read_block_size(parts_.files);
    if (!node || !block_size) return result;
    const BlockQuery query{
        .blocks = blocks, .block_size = *block_size, .node = *node, .deadline = now + kExplainBudget};
    auto users = find_page_users(parts_.files, query);
    const auto target = move ? nearest_other_node(parts_.files, *node) : std::nullopt;
    for (const PageUser& user : users)
        for (const auto& [block, addresses] : user.pages)
            if (target && !parts_.interruption.requested()) parts_.mover.move(user.pid, addresses, *target);
    result.holders = describe_holders(parts_.files, query, users);
    last_explained_[action.id] = Clock::now();
    return result;
}

}  // namespace memtide::agent
