#include <algorithm>

#include <fmt/format.h>

#include "common/log/log.h"
#include "cxl-emul/hosts/host_model.h"

// Dynamic capacity: which extents a host has, as its devices say it.
namespace memtide::emul {

void HostModel::interrupt(SerialNumber serial) {
    if (const auto found = devices_.find(serial); found != devices_.end()) serve(found->second);
}

// Does what the device asks for. False when it cannot be reached: then its removal is to come.
bool HostModel::serve(Slot& slot) {
    if (!slot.driver) return true;
    // What is gone is gone. The rest is in the log when the host is up.
    if (is_off()) return see_extents(slot, Arrival::kLinkUp, true);
    const auto news = slot.driver->read_log(faults_.has(HostFault::kRefusesCapacity));
    if (!news) {
        log::debug("no dynamic capacity log", {{"host", name_}, {"error", news.error()}});
        return false;
    }
    lose(slot, news->forced, true);
    if (!see_extents(slot, Arrival::kFresh, false)) return false;
    give_back_unused(slot, news->asked);
    return true;
}

// Takes over what the device says is this host's. `forced`: what is not any more was taken by force;
// otherwise somebody has given it back, and that was not this host.
bool HostModel::see_extents(Slot& slot, Arrival arrival, bool forced) {
    const auto extents = slot.driver->extents();
    if (!extents) {
        log::debug("no extent list", {{"host", name_}, {"error", extents.error()}});
        return false;
    }
    RangeSet lost;
    for (const Piece& piece : slot.pieces) lost.add(piece.range);
    for (const fmapi::DcExtent& extent : *extents) lost.remove({extent.dpa, extent.dpa + extent.length});
    lose(slot, lost, forced);
    for (const fmapi::DcExtent& extent : *extents) {
        RangeSet gained;
        gained.add({extent.dpa, extent.dpa + extent.length});
        for (const Piece& piece : slot.pieces) gained.remove(piece.range);
        for (const ByteRange& range : gained.ranges())
            gain(slot, {range.begin, range.size(), extent.tag, extent.shared_sequence}, arrival);
    }
    std::ranges::sort(slot.pieces, {}, [](const Piece& piece) { return piece.range.begin; });
    return true;
}

void HostModel::gain(Slot& slot, const fmapi::DcExtent& extent, Arrival arrival) {
    Piece piece{.range = {extent.dpa, extent.dpa + extent.length}};
    if (extent.shared_sequence != 0) {
        piece.shared_tag = extent.tag;
    } else {
        piece.fresh = arrival == Arrival::kFresh;
        if (piece.fresh) look_at(slot, piece);
        if (const auto other = slot.device.media->hold(piece.range, name_))
            ledger_.violation({"two-hosts", name_, slot.device.serial,
                               fmt::format("{} has some of the bytes {} to {} of {} already", other->value,
                                           piece.range.begin, piece.range.end, slot.device.media->path())});
    }
    slot.pieces.push_back(std::move(piece));
    note_change(slot.device.serial);
}

void HostModel::lose(Slot& slot, const RangeSet& lost, bool forced) {
    if (lost.empty()) return;
    bool was_used = false;
    std::vector<Piece> kept;
    for (const Piece& piece : slot.pieces) {
        const RangeSet gone = lost.within(piece.range);
        RangeSet left;
        left.add(piece.range);
        for (const ByteRange& range : gone.ranges()) {
            left.remove(range);
            if (!piece.shared_tag) slot.device.media->let_go(range, name_);
        }
        was_used = was_used || (in_use(piece) && !gone.empty());
        for (const ByteRange& range : left.ranges()) {
            Piece& one = kept.emplace_back(piece);
            one.range = range;
            if (in_use(one) && !gone.empty()) write_stamp(slot, one);
        }
    }
    slot.pieces = std::move(kept);
    note_change(slot.device.serial);
    if (!was_used) return;
    if (forced)
        ledger_.surprise({name_, slot.device.serial});
    else
        ledger_.violation({"given-back-online", name_, slot.device.serial,
                           "given back in the name of the host while it was in use"});
}

// What is in use stays until the agent is told to let go.
void HostModel::give_back_unused(Slot& slot, const RangeSet& asked) {
    const auto is_used = [&](const Piece& piece) {
        return in_use(piece) ||
               (piece.shared_tag && std::ranges::any_of(slot.pieces, [&](const Piece& other) {
                    return in_use(other) && other.shared_tag == piece.shared_tag;
                }));
    };
    std::vector<ByteRange> unused;
    for (const Piece& piece : slot.pieces) {
        if (is_used(piece)) continue;
        const RangeSet wanted_back = asked.within(piece.range);
        unused.insert(unused.end(), wanted_back.ranges().begin(), wanted_back.ranges().end());
    }
    give_back(slot, unused);
}

void HostModel::give_back(Slot& slot, const std::vector<ByteRange>& memory) {
    if (memory.empty()) return;
    if (const auto done = slot.driver->give_back(memory); !done)
        log::debug("dynamic capacity was not taken back", {{"host", name_}, {"error", done.error()}});
    (void)see_extents(slot, Arrival::kFresh, false);
}

// Whether the extents of a region's devices are what it is to be, where it has such.
bool HostModel::has_enough(const Wanted& wanted) const {
    const auto slots = slots_of(wanted);
    if (std::ranges::none_of(slots, [](const Slot* slot) { return slot->driver.has_value(); })) return true;
    Bytes sum;
    for (const Slot* slot : slots) sum += size_of(*slot);
    return slots.size() == wanted.serials.size() && sum >= wanted.size;
}

}  // namespace memtide::emul
