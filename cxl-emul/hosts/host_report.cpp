#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "cxl-emul/hosts/host_model.h"

// What a host says of itself.
namespace memtide::emul {
namespace {

namespace json = boost::json;

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

std::vector<const HostModel::Slot*> HostModel::slots_of(const Wanted& wanted) const {
    std::vector<const Slot*> slots;
    for (const SerialNumber serial : wanted.serials)
        if (const auto found = devices_.find(serial); found != devices_.end())
            slots.push_back(&found->second);
    return slots;
}

bool HostModel::is_online(const Wanted& wanted) const {
    const auto slots = slots_of(wanted);
    return slots.size() == wanted.serials.size() && has_enough(wanted) &&
           std::ranges::all_of(slots, [](const Slot* slot) { return use_of(*slot) == Use::kOnline; });
}

// A region is as far as the last of its devices.
std::string_view HostModel::state_of(const Wanted& wanted) const {
    const auto slots = slots_of(wanted);
    if (slots.empty()) return "absent";
    if (is_online(wanted)) return "online";
    // Extents that the device still has to take back.
    const auto is_held = [](const Slot* slot) { return slot->driver && !slot->pieces.empty(); };
    const auto is_used = [](const Slot* slot) { return in_use(*slot); };
    if (!wanted.online && (std::ranges::any_of(slots, is_used) || std::ranges::any_of(slots, is_held)))
        return "draining";
    const auto is_offline = [&](const Slot* slot) {
        return slot->pieces.empty() ? !wanted.online : use_of(*slot) == Use::kOffline;
    };
    if (std::ranges::all_of(slots, is_offline)) return "offline";
    return faults_.has(HostFault::kRefusesOnline) ? "failed" : "found";
}

// Of a device with extents, what they are.
Bytes HostModel::online_bytes(const Wanted& wanted) const {
    const auto slots = slots_of(wanted);
    if (std::ranges::none_of(slots, [](const Slot* slot) { return slot->driver.has_value(); }))
        return wanted.size;
    Bytes sum;
    for (const Slot* slot : slots)
        for (const Piece& piece : slot->pieces)
            if (in_use(piece)) sum += Bytes{piece.range.size()};
    return sum;
}

// The devices of a region that hold what an erase does not leave.
std::vector<SerialNumber> HostModel::not_erased(const Wanted& wanted) const {
    std::vector<SerialNumber> dirty;
    for (const SerialNumber serial : wanted.serials) {
        const auto found = devices_.find(serial);
        if (found != devices_.end() && use_of(found->second) == Use::kNotErased) dirty.push_back(serial);
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
            const std::uint64_t bytes = online_bytes(wanted).value;
            one["online_bytes"] = lies ? bytes / 2 : bytes;
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
        memdev["size"] = lies ? size_of(slot).value * 2 : size_of(slot).value;
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

Bytes HostModel::size_of(const Slot& slot) {
    Bytes sum;
    for (const Piece& piece : slot.pieces) sum += Bytes{piece.range.size()};
    return sum;
}

HostModel::Use HostModel::use_of(const Slot& slot) {
    constexpr std::array kLeastFirst{Use::kNotErased, Use::kGoingOffline, Use::kGoingOnline,
                                     Use::kFound,     Use::kOffline,      Use::kOnline};
    for (const Use use : kLeastFirst)
        if (std::ranges::find(slot.pieces, use, &Piece::use) != slot.pieces.end()) return use;
    return Use::kFound;
}

std::optional<HostModel::Use> HostModel::use_of(SerialNumber serial) const {
    const auto found = devices_.find(serial);
    if (found == devices_.end()) return std::nullopt;
    return use_of(found->second);
}

std::vector<ByteRange> HostModel::memory_of(SerialNumber serial) const {
    std::vector<ByteRange> memory;
    const auto found = devices_.find(serial);
    if (found == devices_.end()) return memory;
    for (const Piece& piece : found->second.pieces) memory.push_back(piece.range);
    return memory;
}

}  // namespace memtide::emul
