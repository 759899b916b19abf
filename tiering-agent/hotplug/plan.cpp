#include "tiering-agent/hotplug/plan.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::agent {
namespace {

constexpr std::string_view kKmem = "kmem";

template <typename Blocks, typename Predicate>
std::vector<std::uint64_t> indexes_where(const Blocks& blocks, Predicate predicate) {
    std::vector<std::uint64_t> indexes;
    for (const MemoryBlock& block : blocks)
        if (predicate(block)) indexes.push_back(block.index);
    return indexes;
}
bool is_not_offline(const MemoryBlock& block) { return block.state != BlockState::kOffline; }
bool is_offline(const MemoryBlock& block) { return block.state == BlockState::kOffline; }
bool is_in_kernel_zone(const MemoryBlock& block) {
    return block.state == BlockState::kOnline && !block.movable;
}

const Region* find_region(const Seen& seen, std::string_view name) {
    const auto it = std::ranges::find(seen.regions, name, &Region::name);
    return it == seen.regions.end() ? nullptr : &*it;
}

const RegionRecord* find_record(const Seen& seen, SerialNumber serial) {
    const auto it = std::ranges::find(seen.records, serial, &RegionRecord::serial);
    return it == seen.records.end() ? nullptr : &*it;
}

// A recorded region is this agent's only while no memdev that is alive is attached to it.
bool has_no_live_memdev(const Region& region) {
    return std::ranges::all_of(region.targets, [](const Target& target) { return target.memdev.empty(); });
}

// The planner of one composition: looks at the facts in the order in which a composition comes up or goes
// down and stops at the first that is not as it should be.
class Planner {
  public:
    Planner(const DesiredComposition& wanted, const Seen& seen, const Note* note, WallTime now,
            std::vector<Finding>& warnings)
        : wanted_(wanted), seen_(seen), note_(note), now_(now), warnings_(warnings) {}

    CompositionPlan run() {
        out_.observed.id = wanted_.id;
        out_.observed.serial = wanted_.serial;
        if (find_memdev() && find_own_region()) wanted_.want == Want::kOnline ? bring_up() : take_down();
        add_note();
        return std::move(out_);
    }

  private:
    // --- Reporting ---
    void status(CompositionStatus status) { out_.observed.status = status; }
    void refuse(std::string code, std::string detail) {
        status(CompositionStatus::kFailed);
        out_.observed.error = Finding{std::move(code), std::move(detail)};
    }
    void warn(std::string code, std::string detail) {
        warnings_.push_back({std::move(code), std::move(detail)});
    }

    Action& act(ActionKind kind) {
        Action action;
        action.kind = kind;
        action.id = wanted_.id;
        action.serial = wanted_.serial;
        if (memdev_ != nullptr) action.memdev = memdev_->name;
        if (region_ != nullptr) {
            action.region = region_->name;
            action.window = region_->window;
            action.range = region_->range;
        }
        action.size = wanted_.size;
        action.force = wanted_.force;
        action.deadline = wanted_.drain_deadline;
        return out_.next.emplace(std::move(action));
    }

    // What the last attempt at this very step said. A step that keeps failing makes the composition failed.
    void add_note() {
        if (note_ == nullptr || !out_.next || note_->kind != out_.next->kind) return;
        auto& observed = out_.observed;
        if (!observed.error) observed.error = note_->error;
        observed.holders = note_->holders;
        if (observed.status == CompositionStatus::kFound && note_->failures >= kFailuresUntilFailed)
            status(CompositionStatus::kFailed);
        if (observed.status == CompositionStatus::kDraining && wanted_.drain_deadline &&
            now_ >= *wanted_.drain_deadline) {
            status(CompositionStatus::kFailed);
            observed.error = Finding{"drain-deadline", "the deadline passed: " + note_->error.detail};
        }
    }

    // --- Finding what is ours ---
    bool find_memdev() {
        for (const Memdev& memdev : seen_.memdevs) {
            if (memdev.serial != wanted_.serial) continue;
            if (memdev_ != nullptr) {
                refuse("ambiguous-serial", fmt::format("{} and {} both have serial {}", memdev_->name,
                                                       memdev.name, format_serial(wanted_.serial)));
                return false;
            }
            memdev_ = &memdev;
        }
        if (memdev_ == nullptr) plan_vanished();
        return memdev_ != nullptr;
    }

    // The region of the memdev, or the one that was being made for it. False: not ours to touch.
    bool find_own_region() {
        for (const Region& region : seen_.regions) {
            if (std::ranges::find(region.targets, memdev_->name, &Target::memdev) == region.targets.end())
                continue;
            if (region.targets.size() > 1 || region_ != nullptr) {
                refuse("foreign-region",
                       fmt::format("{} is part of {}, which is not a region of this memdev alone; destroy it "
                                   "with 'cxl destroy-region {}' or release it from there",
                                   memdev_->name, region.name, region.name));
                region_ = nullptr;
                return false;
            }
            region_ = &region;
        }
        if (region_ == nullptr) find_recorded_region();
        if (region_ != nullptr) out_.observed.region = region_->name;
        return true;
    }

    void find_recorded_region() {
        const RegionRecord* const record = find_record(seen_, wanted_.serial);
        if (record == nullptr) return;
        const Region* const region = find_region(seen_, record->region);
        if (region != nullptr && has_no_live_memdev(*region)) region_ = region;
    }

    // --- No memdev: not bound yet, unbound, or pulled out ---
    void plan_vanished() {
        status(CompositionStatus::kAbsent);
        const RegionRecord* const record = find_record(seen_, wanted_.serial);
        if (record == nullptr) return;
        const auto left = indexes_where(record->blocks, is_not_offline);
        if (left.empty()) return;  // the clean-up of leftovers does the rest
        out_.observed.error = Finding{
            "device-vanished",
            fmt::format("the memdev with serial {} went away while {} were online; their contents are "
                        "lost, and what could not be taken offline stays until the host restarts",
                        format_serial(wanted_.serial), block_names(left))};
    }

    // --- Up ---
    void bring_up() {
        status(CompositionStatus::kFound);
        if (memdev_->ram_size < wanted_.size)
            return refuse(
                "size-mismatch",
                fmt::format("{} has {} of volatile memory, the composition asks for {}", memdev_->name,
                            format_bytes(memdev_->ram_size), format_bytes(wanted_.size)));
        if (region_ == nullptr) return plan_create();
        if (!region_->committed) return plan_configure();
        if (region_->range.size != wanted_.size.value)
            return refuse(
                "foreign-region",
                fmt::format("{} of {} has {}, the composition asks for {}: not made for it", region_->name,
                            memdev_->name, format_bytes({region_->range.size}), format_bytes(wanted_.size)));
        if (!region_->enabled) {
            act(ActionKind::kEnableRegion);
            return;
        }
        bring_memory_up();
    }

    void plan_create() {
        if (!memdev_->has_endpoint) return;  // the kernel still brings the endpoint up, or says why not
        if (memdev_->free_decoder.empty())
            return refuse("no-decoder", memdev_->name + " has no free HDM decoder");
        const auto fits = [this](const Window& w) { return w.ways == 1 && w.largest_free >= wanted_.size; };
        const auto window = std::ranges::find_if(memdev_->ram_windows, fits);
        if (window == memdev_->ram_windows.end())
            return refuse(
                "no-window",
                fmt::format("no volatile CXL window over {} without interleave has {} of "
                            "free address space (windows: {})",
                            memdev_->name, format_bytes(wanted_.size), memdev_->ram_windows.size()));
        Action& action = act(ActionKind::kCreateRegion);
        action.window = window->name;
        action.decoder = memdev_->free_decoder;
    }

    void plan_configure() {
        // Memory of a device that was pulled out and came back: what it held is lost, and the kernel does not
        // take the same addresses a second time.
        if (auto left = indexes_where(region_->blocks, is_not_offline); !left.empty()) {
            act(ActionKind::kOfflineBlocks).blocks = std::move(left);
            return;
        }
        const bool begun_for_another_size =
            region_->range.size != 0 && region_->range.size != wanted_.size.value;
        if (begun_for_another_size || !region_->blocks.empty()) {
            act(ActionKind::kDestroyRegion).decoder = target_decoder();
            return;
        }
        if (!memdev_->has_endpoint) return;
        act(ActionKind::kConfigureRegion).decoder = target_decoder();
    }

    [[nodiscard]] std::string target_decoder() const {
        return region_->targets.empty() ? memdev_->free_decoder : region_->targets.front().decoder;
    }

    void bring_memory_up() {
        std::uint64_t expected = 0;
        for (const DaxDevice& dax : region_->dax) {
            const std::uint64_t whole = whole_blocks(dax.range, seen_.block_size).count;
            if (whole == 0 && dax.driver != kKmem) continue;
            expected += whole;
            if (dax.driver != kKmem) {
                act(ActionKind::kBindKmem).dax = dax.name;
                return;
            }
        }
        if (region_->dax.empty()) {
            act(ActionKind::kAwaitDax);
            return;
        }
        if (expected == 0)
            return refuse(
                "block-too-large",
                fmt::format("no whole memory block of {} fits into {} at {:#x}; this platform cannot "
                            "online so little memory there",
                            format_bytes(seen_.block_size), format_bytes({region_->range.size}),
                            region_->range.start));
        check_blocks(expected);
    }

    void check_blocks(std::uint64_t expected) {
        count_online();
        const auto offline = indexes_where(region_->blocks, is_offline);
        const auto in_kernel_zone = indexes_where(region_->blocks, is_in_kernel_zone);
        if (!offline.empty()) {
            act(ActionKind::kOnlineBlocks).blocks = offline;
        } else if (!in_kernel_zone.empty()) {
            plan_rezone(in_kernel_zone);
        } else if (indexes_where(region_->blocks, is_not_offline).size() < expected) {
            refuse("blocks-missing",
                   fmt::format("the kmem driver made {} of {} memory blocks of {}; see dmesg",
                               region_->blocks.size(), expected, region_->name));
        } else if (std::ranges::all_of(region_->blocks, [](const auto& b) { return b.movable; })) {
            status(CompositionStatus::kOnline);
            if (const Bytes lost = wanted_.size - out_.observed.online; lost.value != 0)
                warn("not-aligned",
                     fmt::format("{} of {} are not usable: memory blocks have {} here", format_bytes(lost),
                                 region_->name, format_bytes(seen_.block_size)));
        }
    }

    void plan_rezone(const std::vector<std::uint64_t>& blocks) {
        act(ActionKind::kRezoneBlocks).blocks = blocks;
        if (note_ != nullptr && note_->kind == ActionKind::kRezoneBlocks)
            warn("online-not-movable",
                 fmt::format(
                     "{} of composition {} were put online by this host's own policy in a kernel zone and "
                     "cannot be moved to zone Movable now; releasing them may not succeed. Boot with "
                     "memhp_default_state=offline or online_movable",
                     block_names(blocks), wanted_.id.value));
    }

    // Size and node of what is online, whichever way the composition goes.
    void count_online() {
        for (const MemoryBlock& block : region_->blocks) {
            if (block.state == BlockState::kOffline) continue;
            out_.observed.online += seen_.block_size;
            if (block.node) out_.observed.node = block.node;
        }
    }

    // --- Down ---
    void take_down() {
        if (region_ == nullptr) return status(CompositionStatus::kOffline);
        status(CompositionStatus::kDraining);
        count_online();
        if (auto blocks = indexes_where(region_->blocks, is_not_offline); !blocks.empty()) {
            act(ActionKind::kOfflineBlocks).blocks = std::move(blocks);
            return;
        }
        for (const DaxDevice& dax : region_->dax) {
            if (dax.driver != kKmem) continue;
            act(ActionKind::kUnbindKmem).dax = dax.name;
            return;
        }
        act(ActionKind::kDestroyRegion).decoder = target_decoder();
    }

    const DesiredComposition& wanted_;
    const Seen& seen_;
    const Note* note_;
    WallTime now_;
    std::vector<Finding>& warnings_;
    const Memdev* memdev_ = nullptr;
    const Region* region_ = nullptr;
    CompositionPlan out_;
};

// What is to be done about a record that no composition with a live memdev stands behind.
Action leftover_action(const RegionRecord& record, const Region* region) {
    Action action;
    action.id = CompositionId{"leftover-" + record.region};
    action.serial = record.serial;
    action.region = record.region;
    action.range = record.range;
    action.blocks = indexes_where(record.blocks, is_not_offline);
    if (!action.blocks.empty()) {
        action.kind = ActionKind::kOfflineBlocks;
        action.force = true;  // the contents are lost already: nothing to be gentle about
    } else if (region != nullptr) {
        action.kind = ActionKind::kDestroyRegion;
        action.window = region->window;
    } else {
        action.kind = ActionKind::kForgetRegion;
    }
    return action;
}

// Regions this agent made whose memdev went away, or that were never finished: blocks offline first, then the
// region, then the record. A record whose memdev is alive belongs to a composition, or is left alone.
void plan_leftovers(const Desired& desired, const Seen& seen, const Notes& notes, Plan& plan) {
    for (const RegionRecord& record : seen.records) {
        const bool alive =
            std::ranges::find(seen.memdevs, record.serial, &Memdev::serial) != seen.memdevs.end();
        const bool wanted = std::ranges::find(desired.compositions, record.serial,
                                              &DesiredComposition::serial) != desired.compositions.end();
        if (alive && wanted) continue;
        const Region* region = find_region(seen, record.region);
        if (region != nullptr && !has_no_live_memdev(*region)) {
            if (alive)
                plan.warnings.push_back(
                    {"unlisted-region",
                     fmt::format("{} was made by this agent, but no composition asks for it any "
                                 "more; it is left as it is",
                                 record.region)});
            continue;
        }
        const Action& action = plan.cleanups.emplace_back(leftover_action(record, region));
        if (notes.contains(action.id) && !action.blocks.empty())
            plan.warnings.push_back(
                {"device-vanished",
                 fmt::format(
                     "{} belonged to the memdev with serial {} that went away, and cannot be taken offline; "
                     "they stay until the host restarts",
                     block_names(action.blocks), format_serial(record.serial))});
    }
}

}  // namespace

std::string_view to_string(ActionKind kind) {
    switch (kind) {
        case ActionKind::kCreateRegion:
            return "create-region";
        case ActionKind::kConfigureRegion:
            return "configure-region";
        case ActionKind::kEnableRegion:
            return "enable-region";
        case ActionKind::kAwaitDax:
            return "await-dax";
        case ActionKind::kBindKmem:
            return "bind-kmem";
        case ActionKind::kOnlineBlocks:
            return "online-blocks";
        case ActionKind::kRezoneBlocks:
            return "rezone-blocks";
        case ActionKind::kOfflineBlocks:
            return "offline-blocks";
        case ActionKind::kUnbindKmem:
            return "unbind-kmem";
        case ActionKind::kDestroyRegion:
            return "destroy-region";
        case ActionKind::kForgetRegion:
            return "forget-region";
    }
    return "unknown";
}

Plan make_plan(const Desired& desired, const Seen& seen, const Notes& notes, WallTime now) {
    Plan plan;
    for (const DesiredComposition& wanted : desired.compositions) {
        const auto note = notes.find(wanted.id);
        plan.compositions.push_back(
            Planner(wanted, seen, note == notes.end() ? nullptr : &note->second, now, plan.warnings).run());
    }
    if (!desired.compositions.empty() &&
        (seen.auto_online == "online" || seen.auto_online == "online_kernel"))
        plan.warnings.push_back(
            {"auto-online-policy",
             fmt::format(
                 "this host onlines new memory by itself ({}), in a kernel zone from which it may not come "
                 "back; the agent moves it to zone Movable, but offline or online_movable is safer "
                 "(memhp_default_state= at boot, /sys/devices/system/memory/auto_online_blocks)",
                 seen.auto_online)});
    plan_leftovers(desired, seen, notes, plan);
    return plan;
}

}  // namespace memtide::agent
