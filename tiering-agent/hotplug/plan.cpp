#include "tiering-agent/hotplug/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "tiering-agent/hotplug/interleave.h"
#include "tiering-agent/hotplug/leftovers.h"
#include "tiering-agent/hotplug/read_back.h"

namespace memtide::agent {
namespace {

constexpr std::string_view kKmem = "kmem";

bool is_offline(const MemoryBlock& block) { return block.state == BlockState::kOffline; }
bool is_in_kernel_zone(const MemoryBlock& block) {
    return block.state == BlockState::kOnline && !block.movable;
}

const RegionRecord* find_record(const Seen& seen, const std::vector<SerialNumber>& serials) {
    const auto it = std::ranges::find_if(seen.records, [&](const RegionRecord& record) {
        return std::ranges::find_first_of(record.serials, serials) != record.serials.end();
    });
    return it == seen.records.end() ? nullptr : &*it;
}

// The planner of one region: looks at the facts in the order in which a region comes up or goes down and
// stops at the first that is not as it should be.
class Planner {
  public:
    Planner(const DesiredRegion& wanted, const Seen& seen, const Note* note, WallTime now,
            std::vector<Finding>& warnings)
        : wanted_(wanted), seen_(seen), note_(note), now_(now), warnings_(warnings) {}

    RegionPlan run() {
        out_.observed.id = wanted_.id;
        out_.observed.serials = wanted_.serials;
        if (find_memdevs() && find_own_region()) wanted_.want == Want::kOnline ? bring_up() : take_down();
        add_note();
        return std::move(out_);
    }

  private:
    // --- Reporting ---
    void status(RegionStatus status) { out_.observed.status = status; }
    void refuse(std::string code, std::string detail) {
        status(RegionStatus::kFailed);
        out_.observed.error = Finding{std::move(code), std::move(detail)};
    }
    void warn(std::string code, std::string detail) {
        warnings_.push_back({std::move(code), std::move(detail)});
    }

    Action& act(ActionKind kind) {
        Action action;
        action.kind = kind;
        action.id = wanted_.id;
        action.serials = wanted_.serials;
        for (const Memdev* memdev : memdevs_) action.memdevs.push_back(memdev->name);
        if (region_ != nullptr) {
            action.region = region_->name;
            action.window = region_->window;
            action.range = region_->range;
        }
        action.size = wanted_.size;
        action.force = wanted_.force;
        action.release = wanted_.want == Want::kOffline;
        action.deadline = wanted_.drain_deadline;
        if (is_to_be_verified()) action.verify = wanted_.verify;
        return out_.next.emplace(std::move(action));
    }

    // What the last attempt at this very step said. A step that keeps failing makes the composition failed.
    void add_note() {
        if (note_ == nullptr || !out_.next || note_->kind != out_.next->kind) return;
        auto& observed = out_.observed;
        if (!observed.error) observed.error = note_->error;
        observed.holders = note_->holders;
        if (observed.status == RegionStatus::kFound && note_->failures >= kFailuresUntilFailed)
            status(RegionStatus::kFailed);
        if (observed.status == RegionStatus::kDraining && wanted_.drain_deadline &&
            now_ >= *wanted_.drain_deadline) {
            status(RegionStatus::kFailed);
            observed.error = Finding{"drain-deadline", "the deadline passed: " + note_->error.detail};
        }
    }

    // --- Finding what is ours ---
    // False when there is none, or when it is not clear which. An interleaved region may have lost some: then
    // it cannot come up, but what is left can go down.
    bool find_memdevs() {
        for (const SerialNumber serial : wanted_.serials) {
            const Memdev* found = nullptr;
            for (const Memdev& memdev : seen_.memdevs) {
                if (memdev.serial != serial) continue;
                if (found != nullptr) {
                    refuse("ambiguous-serial", fmt::format("{} and {} both have serial {}", found->name,
                                                           memdev.name, format_serial(serial)));
                    return false;
                }
                found = &memdev;
            }
            if (found != nullptr) memdevs_.push_back(found);
        }
        if (memdevs_.empty()) plan_vanished();
        return !memdevs_.empty();
    }
    [[nodiscard]] bool has_all_memdevs() const { return memdevs_.size() == wanted_.serials.size(); }
    [[nodiscard]] std::string memdev_names() const {
        std::string names;
        for (const Memdev* memdev : memdevs_) names += (names.empty() ? "" : ", ") + memdev->name;
        return names;
    }
    [[nodiscard]] bool is_ours(const Target& target) const {
        return target.memdev.empty() ||
               std::ranges::find(memdevs_, target.memdev, &Memdev::name) != memdevs_.end();
    }

    // The region of the memdevs, or the one that was being made for them. False: not ours to touch.
    bool find_own_region() {
        for (const Region& region : seen_.regions) {
            const auto holds = [&](const Memdev* memdev) {
                return std::ranges::find(region.targets, memdev->name, &Target::memdev) !=
                       region.targets.end();
            };
            if (std::ranges::none_of(memdevs_, holds)) continue;
            const bool alone =
                std::ranges::all_of(region.targets, [&](const Target& t) { return is_ours(t); });
            if (!alone || region_ != nullptr) {
                refuse(
                    "foreign-region",
                    fmt::format("{} is part of {}, which is not a region of this composition alone; destroy "
                                "it with 'cxl destroy-region {}' or release it from there",
                                memdev_names(), region.name, region.name));
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
        const RegionRecord* const record = find_record(seen_, wanted_.serials);
        if (record == nullptr) return;
        const Region* const region = find_region(seen_, record->region);
        if (region != nullptr && has_no_live_memdev(*region)) region_ = region;
    }

    // --- No memdev: not bound yet, unbound, or pulled out ---
    void plan_vanished() {
        status(RegionStatus::kAbsent);
        const RegionRecord* const record = find_record(seen_, wanted_.serials);
        if (record == nullptr) return;
        const auto left = indexes_where(record->blocks, is_not_offline);
        if (left.empty()) return;  // the clean-up of leftovers does the rest
        out_.observed.error = Finding{
            "device-vanished",
            fmt::format("the memdev with serial {} went away while {} were online; their contents are "
                        "lost, and what could not be taken offline stays until the host restarts",
                        format_serial(wanted_.serials.front()), block_names(left))};
    }

    // --- Up ---
    void bring_up() {
        status(RegionStatus::kFound);
        const Bytes share{wanted_.size.value / wanted_.serials.size()};
        for (const Memdev* memdev : memdevs_)
            if (memdev->ram_size < share)
                return refuse("size-mismatch",
                              fmt::format("{} has {} of volatile memory, the composition asks for {}",
                                          memdev->name, format_bytes(memdev->ram_size), format_bytes(share)));
        if (!has_all_memdevs()) return;  // the kernel still brings the others up
        if (region_ == nullptr) return plan_create();
        if (!region_->committed) return plan_configure();
        if (region_->range.size != wanted_.size.value)
            return refuse(
                "foreign-region",
                fmt::format("{} of {} has {}, the composition asks for {}: not made for it", region_->name,
                            memdev_names(), format_bytes({region_->range.size}), format_bytes(wanted_.size)));
        if (!region_->enabled) {
            act(ActionKind::kEnableRegion);
            return;
        }
        bring_memory_up();
    }

    // --- Making it ---
    void set_order(Action& action, const Window& window, const std::vector<const Memdev*>& order) {
        action.window = window.name;
        if (window.ways > 1) action.granularity = window.granularity;
        action.serials.clear();
        action.memdevs.clear();
        for (const Memdev* memdev : order) {
            action.serials.push_back(memdev->serial);
            action.memdevs.push_back(memdev->name);
            action.decoders.push_back(decoder_of(*memdev));
        }
    }

    // The decoder with which the memdev is in the region already, or its next free one.
    [[nodiscard]] std::string decoder_of(const Memdev& memdev) const {
        if (region_ != nullptr)
            for (const Target& target : region_->targets)
                if (target.memdev == memdev.name) return target.decoder;
        return memdev.free_decoder;
    }

    void plan_create() {
        for (const Memdev* memdev : memdevs_) {
            if (!memdev->has_endpoint) return;  // the kernel still brings the endpoint up, or says why not
            if (memdev->free_decoder.empty())
                return refuse("no-decoder", memdev->name + " has no free HDM decoder");
        }
        for (const Window& window : memdevs_.front()->ram_windows) {
            const auto order = interleave_order(memdevs_, window);
            if (order.empty() || window.largest_free < wanted_.size) continue;
            set_order(act(ActionKind::kCreateRegion), window, order);
            return;
        }
        refuse("no-window",
               fmt::format("no volatile CXL window over {} has {} of free address space and interleaves them "
                           "{} (windows: {})",
                           memdev_names(), format_bytes(wanted_.size),
                           memdevs_.size() == 1 ? "with nothing else" : "evenly",
                           memdevs_.front()->ram_windows.size()));
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
            act(ActionKind::kDestroyRegion).decoders = target_decoders();
            return;
        }
        for (const Memdev* memdev : memdevs_)
            if (!memdev->has_endpoint) return;
        const Window* window = window_of(*memdevs_.front(), region_->window);
        if (window == nullptr) return;
        set_order(act(ActionKind::kConfigureRegion), *window, interleave_order(memdevs_, *window));
    }

    [[nodiscard]] std::vector<std::string> target_decoders() const {
        std::vector<std::string> decoders;
        for (const Target& target : region_->targets) decoders.push_back(target.decoder);
        for (const Memdev* memdev : memdevs_)
            if (decoders.empty()) decoders.push_back(memdev->free_decoder);
        return decoders;
    }

    // --- Reading back ---
    // What is remembered of reading this very region; regions that this agent did not make have nothing.
    [[nodiscard]] const RegionRecord* own_record() const {
        const RegionRecord* const record = find_record(seen_, wanted_.serials);
        return record != nullptr && record->region == region_->name ? record : nullptr;
    }

    [[nodiscard]] bool is_to_be_verified() const {
        return wanted_.want == Want::kOnline && wanted_.verify &&
               std::ranges::find(seen_.used, wanted_.id) == seen_.used.end();
    }

    // True when it must not go online, now or ever.
    bool read_back_first() {
        const RegionRecord* const record = own_record();
        if (record == nullptr) return false;
        const ReadBack& found = record->read_back;
        if (found.is_clean()) out_.observed.verified_pages = found.pages;
        if (found.dirty != 0) {
            out_.observed.not_erased = dirty_memdevs(*record);
            refuse("not-erased", describe(*record));
            return true;
        }
        if (!is_to_be_verified() || found.pages != 0 || region_->dax.empty()) return false;
        const DaxDevice& dax = region_->dax.front();
        if (dax.driver == kKmem) {
            // Whatever it holds now may be this host's own.
            warn("not-read-back", fmt::format("{} became system RAM before {} could be read back; whether it "
                                              "was erased is not known",
                                              dax.name, region_->name));
            return false;
        }
        Action& action = act(ActionKind::kReadBack);
        action.dax = dax.name;
        action.serials = record->serials;
        return true;
    }

    void bring_memory_up() {
        if (read_back_first()) return;
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
            status(RegionStatus::kOnline);
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
                     block_names(blocks), wanted_.id.composition.value));
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
        if (region_ == nullptr) return status(RegionStatus::kOffline);
        status(RegionStatus::kDraining);
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
        act(ActionKind::kDestroyRegion).decoders = target_decoders();
    }

    const DesiredRegion& wanted_;
    const Seen& seen_;
    const Note* note_;
    WallTime now_;
    std::vector<Finding>& warnings_;
    std::vector<const Memdev*> memdevs_;
    const Region* region_ = nullptr;
    RegionPlan out_;
};

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
        case ActionKind::kReadBack:
            return "read-back";
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
    for (const DesiredRegion& wanted : desired.regions) {
        const auto note = notes.find(wanted.id);
        plan.regions.push_back(
            Planner(wanted, seen, note == notes.end() ? nullptr : &note->second, now, plan.warnings).run());
    }
    if (!desired.regions.empty() && (seen.auto_online == "online" || seen.auto_online == "online_kernel"))
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
