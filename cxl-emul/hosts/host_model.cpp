#include "cxl-emul/hosts/host_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace memtide::emul {
namespace {

constexpr std::uint64_t kWord = 8;

// Where a host leaves its mark: both ends and the middle of what it has.
std::array<Bytes, 3> marks(const ByteRange& memory) {
    const std::uint64_t middle = memory.begin + memory.size() / 2 / kWord * kWord;
    return {Bytes{memory.begin}, Bytes{middle}, Bytes{memory.end - kWord}};
}

}  // namespace

HostModel::HostModel(HostId name, HostDelays delays, std::uint64_t seed, Ledger& ledger)
    : name_(std::move(name)), delays_(delays), random_(seed), ledger_(ledger) {}

// --- Hardware ---

bool HostModel::in_use(const Piece& piece) {
    return piece.use == Use::kOnline || piece.use == Use::kGoingOffline;
}

bool HostModel::in_use(const Slot& slot) {
    return std::ranges::any_of(slot.pieces, [](const Piece& piece) { return in_use(piece); });
}

void HostModel::plug(PluggedDevice device, Arrival arrival) {
    const SerialNumber serial = device.serial;
    Slot& slot = devices_[serial] = Slot{.device = std::move(device)};
    ++ledger_.plugged;
    note_change(serial);
    if (slot.device.mailbox) {
        slot.driver.emplace(slot.device.mailbox);
        if (see_extents(slot, arrival, true)) serve(slot);
        return;
    }
    const Bytes begin = slot.device.offset;
    slot.pieces.push_back({.range = {begin.value, (begin + slot.device.size).value}});
    if (arrival == Arrival::kFresh) look_at(slot, slot.pieces.front());
}

void HostModel::unplug(SerialNumber serial, Removal how) {
    const auto found = devices_.find(serial);
    if (found == devices_.end()) return;
    Slot& slot = found->second;
    // What was taken away before is not there to be looked at.
    if (!slot.driver || see_extents(slot, Arrival::kLinkUp, true)) check_stamps(slot);
    if (in_use(slot) && how == Removal::kAsked)
        ledger_.violation({"unbound-online", name_, serial, "taken from the host while it was in use"});
    if (in_use(slot) && how == Removal::kSurprise) ledger_.surprise({name_, serial});
    for (const Piece& piece : slot.pieces)
        if (slot.driver && !piece.shared_tag) slot.device.media->let_go(piece.range, name_);
    ++ledger_.unplugged;
    devices_.erase(found);
    note_change(serial);
}

void HostModel::reboot() {
    ++boots_;
    ++ledger_.reboots;
    wanted_ = {};
    used_.clear();
    for (auto& [serial, slot] : devices_) {
        if (!slot.driver || see_extents(slot, Arrival::kLinkUp, true)) check_stamps(slot);
        for (Piece& piece : slot.pieces) piece.use = Use::kFound;
        serve(slot);
    }
    report_again();
}

// What nobody has asked for yet, or any more, can wait for the next report.
void HostModel::note_change(SerialNumber serial) {
    if (wanted_of(serial) != nullptr) changed_ = true;
}

std::optional<Bytes> HostModel::first_written(const Slot& slot, const Piece& piece) {
    return slot.device.media->first_written({piece.range.begin}, {piece.range.size()});
}

std::optional<Bytes> HostModel::first_kept(const Slot& slot, const Piece& piece) {
    return slot.device.media->first_kept({piece.range.begin}, {piece.range.size()});
}

// Memory that is new to a host must be empty. What a medium pretends to have erased is for the host to find
// out.
void HostModel::look_at(const Slot& slot, const Piece& piece) {
    const auto dirty = first_written(slot, piece);
    if (!dirty || first_kept(slot, piece)) return;
    ledger_.violation({"not-erased", name_, slot.device.serial,
                       fmt::format("byte {} of {} still holds what a host wrote", dirty->value,
                                   slot.device.media->path())});
}

void HostModel::write_stamp(const Slot& slot, const Piece& piece) {
    if (piece.shared_tag) return;
    for (const Bytes at : marks(piece.range)) slot.device.media->write(at, piece.stamp);
}

void HostModel::check_stamps(const Slot& slot) {
    for (const Piece& piece : slot.pieces)
        if (in_use(piece)) check_stamp(slot, piece);
}

void HostModel::check_stamp(const Slot& slot, const Piece& piece) {
    if (piece.shared_tag) return;
    for (const Bytes at : marks(piece.range))
        if (slot.device.media->read(at) != piece.stamp) {
            ledger_.violation({"changed-under-host", name_, slot.device.serial,
                               fmt::format("byte {} of {} is not what this host wrote", at.value,
                                           slot.device.media->path())});
            return;
        }
}

// --- Agent ---

void HostModel::want(WantedState wanted) {
    wanted_ = std::move(wanted);
    std::erase_if(used_, [&](const auto& one) {
        return std::ranges::none_of(wanted_.regions, [&](const Wanted& region) {
            return region.composition == one.first && region.region == one.second;
        });
    });
    changed_ = true;
    // Nothing is taken from it before it says that it has seen that it shall let go.
    news_ = news_ || !std::ranges::all_of(wanted_.regions, &Wanted::online);
}

const Wanted* HostModel::wanted_of(SerialNumber serial) const {
    const auto found = std::ranges::find_if(wanted_.regions, [&](const Wanted& one) {
        return std::ranges::find(one.serials, serial) != one.serials.end();
    });
    return found == wanted_.regions.end() ? nullptr : &*found;
}

bool HostModel::is_to_be_verified(const Piece& piece, const Wanted& wanted) const {
    if (wanted.samples == 0 || piece.shared_tag) return false;
    return piece.fresh || !used_.contains({wanted.composition, wanted.region});
}

void HostModel::bring_online(Slot& slot, Piece& piece, const Wanted& wanted) {
    if (const auto kept = first_kept(slot, piece); kept && !piece.shared_tag)
        ledger_.violation({"not-erased-online", name_, slot.device.serial,
                           fmt::format("byte {} of {} was online with what another host wrote", kept->value,
                                       slot.device.media->path())});
    used_.insert({wanted.composition, wanted.region});
    piece.use = Use::kOnline;
    piece.fresh = false;
    piece.stamp = (std::hash<std::string>{}(name_.value) << 20) + ++stamps_;
    write_stamp(slot, piece);
    ++ledger_.onlined;
}

// One transition of one piece of memory; false when there is none (yet).
bool HostModel::step(Slot& slot, Piece& piece, const Wanted& wanted, Time now) {
    const bool due = piece.due <= now;
    switch (piece.use) {
        case Use::kFound:
        case Use::kOffline:
            if (!wanted.online) {
                if (piece.use == Use::kOffline) return false;
                piece.use = Use::kOffline;
                return true;
            }
            if (faults_.has(HostFault::kRefusesOnline) || !has_enough(wanted)) return false;
            if (is_to_be_verified(piece, wanted) && first_written(slot, piece)) {
                piece.use = Use::kNotErased;
                return true;
            }
            piece.use = Use::kGoingOnline;
            piece.due = now + delays_.online.draw(random_);
            return true;
        case Use::kGoingOnline:
            if (!wanted.online) {
                piece.use = Use::kOffline;
                return true;
            }
            if (!due) return false;
            bring_online(slot, piece, wanted);
            return true;
        case Use::kNotErased:
            if (wanted.online) return false;
            piece.use = Use::kOffline;
            return true;
        case Use::kOnline:
            if (wanted.online) return false;
            piece.use = Use::kGoingOffline;
            piece.due = now + delays_.offline.draw(random_);
            return true;
        case Use::kGoingOffline:
            if (wanted.online) {
                piece.use = Use::kOnline;
                return true;
            }
            if (!due || faults_.has(HostFault::kRefusesOffline)) return false;
            check_stamp(slot, piece);
            piece.use = Use::kOffline;
            ++ledger_.offlined;
            return true;
    }
    return false;
}

// Those of a device. Extents go back when the last of them is offline.
bool HostModel::step(Slot& slot, const Wanted& wanted, Time now) {
    bool moved = false;
    for (Piece& piece : slot.pieces) {
        const Use before = piece.use;
        while (step(slot, piece, wanted, now)) moved = true;
        // Memory that arrives while nobody wants it is not waited for.
        if (piece.use != before && (before != Use::kFound || piece.use != Use::kOffline)) news_ = true;
    }
    const bool offline =
        std::ranges::all_of(slot.pieces, [](const Piece& piece) { return piece.use == Use::kOffline; });
    if (slot.driver && !wanted.online && offline && !slot.pieces.empty()) {
        give_back(slot, memory_of(slot.device.serial));
        moved = moved || slot.pieces.empty();
    }
    return moved;
}

bool HostModel::advance(Time now) {
    for (auto& [serial, slot] : devices_) serve(slot);
    bool moved = std::exchange(changed_, false);
    for (auto& [serial, slot] : devices_) {
        const Wanted* wanted = wanted_of(serial);
        if (wanted != nullptr && step(slot, *wanted, now)) moved = true;
    }
    return moved;
}

std::optional<HostModel::Time> HostModel::next_due() const {
    std::optional<Time> next;
    for (const auto& [serial, slot] : devices_) {
        if (wanted_of(serial) == nullptr) continue;
        for (const Piece& piece : slot.pieces) {
            const bool waits = piece.use == Use::kGoingOnline ||
                               (piece.use == Use::kGoingOffline && !faults_.has(HostFault::kRefusesOffline));
            if (waits && (!next || piece.due < *next)) next = piece.due;
        }
    }
    return next;
}

}  // namespace memtide::emul
