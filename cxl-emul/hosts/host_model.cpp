#include "cxl-emul/hosts/host_model.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

namespace memtide::emul {
namespace {

namespace json = boost::json;

constexpr std::uint64_t kWord = 8;

// Where a host leaves its mark: both ends and the middle of what it has.
std::array<Bytes, 3> marks(const PluggedDevice& device) {
    const std::uint64_t middle = device.size.value / 2 / kWord * kWord;
    return {device.offset, device.offset + Bytes{middle}, device.offset + device.size - Bytes{kWord}};
}

json::object failed(std::string_view code, std::string_view detail) {
    json::object error;
    error["code"] = code;
    error["detail"] = detail;
    json::object result;
    result["state"] = "failed";
    result["error"] = std::move(error);
    return result;
}

json::array holders() {
    json::object holder;
    holder["block"] = "memory32";
    holder["pid"] = 4711;
    holder["command"] = "workload";
    holder["bytes"] = 4096;
    json::array all;
    all.push_back(std::move(holder));
    return all;
}

}  // namespace

HostModel::HostModel(HostId name, HostDelays delays, std::uint64_t seed, Ledger& ledger)
    : name_(std::move(name)), delays_(delays), random_(seed), ledger_(ledger) {}

// --- Hardware ---

bool HostModel::in_use(const Slot& slot) {
    return slot.use == Use::kOnline || slot.use == Use::kGoingOffline;
}

void HostModel::plug(PluggedDevice device, Arrival arrival) {
    // What a medium pretends to have erased is for the host to find out.
    const bool pretended = device.media->first_kept(device.offset, device.size).has_value();
    const auto dirty = device.media->first_written(device.offset, device.size);
    if (dirty && !pretended && arrival == Arrival::kFresh)
        ledger_.violation(
            {"not-erased", name_, device.serial,
             fmt::format("byte {} of {} still holds what a host wrote", dirty->value, device.media->path())});
    ++ledger_.plugged;
    devices_[device.serial] = Slot{device, Use::kFound, {}, 0};
    note_change(device.serial);
}

void HostModel::unplug(SerialNumber serial, Removal how) {
    const auto found = devices_.find(serial);
    if (found == devices_.end()) return;
    const Slot& slot = found->second;
    if (in_use(slot)) check_stamp(slot);
    if (in_use(slot) && how == Removal::kAsked)
        ledger_.violation({"unbound-online", name_, serial, "taken from the host while it was in use"});
    if (in_use(slot) && how == Removal::kSurprise) ledger_.surprise({name_, serial});
    ++ledger_.unplugged;
    devices_.erase(found);
    note_change(serial);
}

void HostModel::reboot() {
    ++boots_;
    ++ledger_.reboots;
    for (auto& [serial, slot] : devices_) {
        if (in_use(slot)) check_stamp(slot);
        slot.use = Use::kFound;
    }
    wanted_ = {};
    used_.clear();
    report_again();
}

// What nobody has asked for yet, or any more, can wait for the next report.
void HostModel::note_change(SerialNumber serial) {
    if (wanted_of(serial) != nullptr) changed_ = true;
}

void HostModel::check_stamp(const Slot& slot) {
    for (const Bytes at : marks(slot.device))
        if (slot.device.media->read(at) != slot.stamp) {
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

bool HostModel::is_dirty(const Slot& slot) {
    return slot.device.media->first_written(slot.device.offset, slot.device.size).has_value();
}

bool HostModel::is_to_be_verified(const Wanted& wanted) const {
    return wanted.samples != 0 && !used_.contains({wanted.composition, wanted.region});
}

void HostModel::bring_online(Slot& slot, const Wanted& wanted) {
    if (const auto kept = slot.device.media->first_kept(slot.device.offset, slot.device.size))
        ledger_.violation({"not-erased-online", name_, slot.device.serial,
                           fmt::format("byte {} of {} was online with what another host wrote", kept->value,
                                       slot.device.media->path())});
    used_.insert({wanted.composition, wanted.region});
    slot.use = Use::kOnline;
    slot.stamp = (std::hash<std::string>{}(name_.value) << 20) + ++stamps_;
    for (const Bytes at : marks(slot.device)) slot.device.media->write(at, slot.stamp);
    ++ledger_.onlined;
}

// One transition of one device; false when there is none (yet).
bool HostModel::step(Slot& slot, const Wanted& wanted, Time now) {
    const bool due = slot.due <= now;
    switch (slot.use) {
        case Use::kFound:
        case Use::kOffline:
            if (!wanted.online) {
                if (slot.use == Use::kOffline) return false;
                slot.use = Use::kOffline;
                return true;
            }
            if (faults_.has(HostFault::kRefusesOnline)) return false;
            if (is_to_be_verified(wanted) && is_dirty(slot)) {
                slot.use = Use::kNotErased;
                return true;
            }
            slot.use = Use::kGoingOnline;
            slot.due = now + delays_.online.draw(random_);
            return true;
        case Use::kGoingOnline:
            if (!wanted.online) {
                slot.use = Use::kOffline;
                return true;
            }
            if (!due) return false;
            bring_online(slot, wanted);
            return true;
        case Use::kNotErased:
            if (wanted.online) return false;
            slot.use = Use::kOffline;
            return true;
        case Use::kOnline:
            if (wanted.online) return false;
            slot.use = Use::kGoingOffline;
            slot.due = now + delays_.offline.draw(random_);
            return true;
        case Use::kGoingOffline:
            if (wanted.online) {
                slot.use = Use::kOnline;
                return true;
            }
            if (!due || faults_.has(HostFault::kRefusesOffline)) return false;
            check_stamp(slot);
            slot.use = Use::kOffline;
            ++ledger_.offlined;
            return true;
    }
    return false;
}

bool HostModel::advance(Time now) {
    bool moved = std::exchange(changed_, false);
    for (auto& [serial, slot] : devices_) {
        const Wanted* wanted = wanted_of(serial);
        const Use before = slot.use;
        while (wanted != nullptr && step(slot, *wanted, now)) moved = true;
        // Memory that arrives while nobody wants it is not waited for.
        if (slot.use != before && (before != Use::kFound || slot.use != Use::kOffline)) news_ = true;
    }
    return moved;
}

std::optional<HostModel::Time> HostModel::next_due() const {
    std::optional<Time> next;
    for (const auto& [serial, slot] : devices_) {
        const bool waits = slot.use == Use::kGoingOnline ||
                           (slot.use == Use::kGoingOffline && !faults_.has(HostFault::kRefusesOffline));
        if (waits && wanted_of(serial) != nullptr && (!next || slot.due < *next)) next = slot.due;
    }
    return next;
}

// A region is as far as the last of its devices.
std::string_view HostModel::state_of(const Wanted& wanted) const {
    std::size_t present = 0;
    std::size_t online = 0;
    std::size_t used = 0;
    std::size_t offline = 0;
    for (const SerialNumber serial : wanted.serials) {
        const auto found = devices_.find(serial);
        if (found == devices_.end()) continue;
        ++present;
        online += found->second.use == Use::kOnline ? 1 : 0;
        used += in_use(found->second) ? 1 : 0;
        offline += found->second.use == Use::kOffline ? 1 : 0;
    }
    if (present == 0) return "absent";
    if (online == wanted.serials.size()) return "online";
    if (used > 0 && !wanted.online) return "draining";
    if (offline == present) return "offline";
    return faults_.has(HostFault::kRefusesOnline) ? "failed" : "found";
}

// The devices of a region that hold what an erase does not leave.
std::vector<SerialNumber> HostModel::not_erased(const Wanted& wanted) const {
    std::vector<SerialNumber> dirty;
    for (const SerialNumber serial : wanted.serials) {
        const auto found = devices_.find(serial);
        if (found != devices_.end() && found->second.use == Use::kNotErased) dirty.push_back(serial);
    }
    return dirty;
}

std::string HostModel::observed() const {
    const bool lies = faults_.has(HostFault::kLiesAboutSize);
    json::array regions;
    for (const Wanted& wanted : wanted_.regions) {
        const std::vector<SerialNumber> dirty = not_erased(wanted);
        const std::string_view state = dirty.empty() ? state_of(wanted) : "failed";
        json::object one;
        if (!dirty.empty()) {
            one = failed("not-erased", "it holds what another host wrote (emulated)");
            json::array list;
            for (const SerialNumber serial : dirty) list.emplace_back(format_serial(serial));
            one["not_erased"] = std::move(list);
        } else if (state == "failed") {
            one = failed("no-window", "no volatile window has room (emulated)");
        }
        one["state"] = state;
        if (state == "online" && wanted.samples != 0) one["verified_pages"] = wanted.samples;
        if (state == "online" || state == "draining") {
            one["node"] = 1;
            one["name"] = "region0";
            one["online_bytes"] = lies ? wanted.size.value / 2 : wanted.size.value;
        }
        if (state == "draining" && faults_.has(HostFault::kRefusesOffline)) one["holders"] = holders();
        one["composition"] = wanted.composition.value;
        one["region"] = wanted.region;
        json::array serials;
        for (const SerialNumber serial : wanted.serials) serials.emplace_back(format_serial(serial));
        one["serials"] = std::move(serials);
        regions.push_back(std::move(one));
    }
    json::array memdevs;
    for (const auto& [serial, slot] : devices_) {
        json::object memdev;
        memdev["name"] = fmt::format("mem{}", memdevs.size());
        memdev["serial"] = format_serial(serial);
        memdev["size"] = lies ? slot.device.size.value * 2 : slot.device.size.value;
        memdevs.push_back(std::move(memdev));
    }
    json::object result;
    result["agent_version"] = "emulated";
    result["boot_id"] = boot_id();
    result["revision_seen"] = wanted_.revision;
    result["memdevs"] = std::move(memdevs);
    result["regions"] = std::move(regions);
    result["warnings"] = json::array();
    return json::serialize(result);
}

std::string HostModel::boot_id() const { return fmt::format("{}-boot-{}", name_.value, boots_); }

std::size_t HostModel::online_count() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(devices_, [](const auto& one) { return in_use(one.second); }));
}

std::optional<HostModel::Use> HostModel::use_of(SerialNumber serial) const {
    const auto found = devices_.find(serial);
    if (found == devices_.end()) return std::nullopt;
    return found->second.use;
}

}  // namespace memtide::emul
