// Devices with several heads: what makes readings of several ports readings of one device.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/model/inventory.h"

namespace memtide::fm {

namespace {

Error contradicts(const std::string& at, const Device& known, std::string_view what) {
    return {ErrorCode::kProtocol,
            fmt::format("{} shows a head of {} that contradicts its head on port {} of {}: {}", at,
                        known.id.value, known.heads.front().port, known.heads.front().switch_id.value, what)};
}

bool has_map(const Device& device, const MultiHeadedReading& reading) {
    return std::ranges::equal(device.lds, reading.ld_heads, {}, &LogicalDevice::head);
}

}  // namespace

const Head* Device::head_at(const SwitchId& id, std::optional<std::uint8_t> at_port) const {
    for (const Head& head : heads)
        if (head.switch_id == id && (!at_port || head.port == *at_port)) return &head;
    return nullptr;
}

// Why the reading cannot be of `known`, which is present; nullopt when it can.
std::optional<Error> Inventory::contradiction(const SwitchId& id, const DeviceReading& reading,
                                              const Device& known) const {
    const std::string at = fmt::format("port {} of {}", reading.port, id.value);
    const bool only_here = known.is_multi_headed()
                               ? known.heads.size() == 1 && known.head_at(id, reading.port) != nullptr
                               : known.switch_id == id && known.port == reading.port;
    if (only_here) return std::nullopt;
    if (!known.is_multi_headed() || !reading.multi_headed)
        return Error{
            ErrorCode::kAlreadyExists,
            fmt::format("{} shows device {}, which is present on port {} of {}: two devices with one "
                        "serial number",
                        at, known.id.value, known.port, known.switch_id.value)};
    const MultiHeadedReading& says = *reading.multi_headed;
    for (const Head& head : known.heads)
        if (head.number == says.head && (head.switch_id != id || head.port != reading.port))
            return Error{ErrorCode::kAlreadyExists,
                         fmt::format("{} shows head {} of {}, which is present on port {} of {}: two devices "
                                     "with one serial number",
                                     at, says.head, known.id.value, head.port, head.switch_id.value)};
    if (says.heads != known.head_count)
        return contradicts(at, known, fmt::format("{} heads, not {}", says.heads, known.head_count));
    const bool is_mld = is_divided(reading.kind);
    if ((is_mld && reading.size != known.size) || reading.granularity != known.granularity)
        return contradicts(at, known, "another size");
    if (reading.lds.size() != known.lds.size() || !has_map(known, says))
        return contradicts(at, known, "the LDs are divided among the heads in another way");
    // Of the LDs of other heads those say what they are.
    Bytes sum;
    for (std::size_t i = 0; i < reading.lds.size(); ++i) {
        const bool own = says.ld_heads[i] == says.head;
        sum += own ? reading.lds[i].size : known.lds[i].size;
    }
    if (is_mld && sum > known.size) return contradicts(at, known, "more memory in LDs than the device has");
    return std::nullopt;
}

void Inventory::attach_head(Device& device, const SwitchId& id, const DeviceReading& reading) {
    if (!reading.multi_headed) {
        device.switch_id = id;
        device.port = reading.port;
        device.head_count = 1;
        device.heads.clear();
        return;
    }
    device.head_count = reading.multi_headed->heads;
    const Head head{reading.multi_headed->head, id, reading.port};
    std::erase_if(device.heads,
                  [&](const Head& one) { return one.switch_id == id && one.port == head.port; });
    device.heads.push_back(head);
    std::ranges::sort(device.heads, {}, &Head::number);
    device.switch_id = device.heads.front().switch_id;
    device.port = device.heads.front().port;
}

// LDs of heads that are present elsewhere stay as those showed them: they may have been changed since this
// reading began.
void Inventory::read_lds(Device& device, const DeviceReading& reading) {
    std::vector<LogicalDevice> old = std::exchange(device.lds, {});
    // Of dynamic capacity others may have given something back of which nobody tells: what they were offered.
    if (old.size() != reading.lds.size() || device.kind == DeviceKind::kDcd) device.refused_carves.clear();
    const auto told_elsewhere = [&](const LogicalDevice& ld) {
        return ld.head && *ld.head != reading.multi_headed->head &&
               std::ranges::find(device.heads, *ld.head, &Head::number) != device.heads.end();
    };
    for (std::size_t i = 0; i < reading.lds.size(); ++i) {
        const LdReading& seen = reading.lds[i];
        LogicalDevice ld;
        const auto same = std::ranges::find(old, seen.id, &LogicalDevice::id);
        if (same != old.end()) ld = *same;
        ld.head = reading.multi_headed ? reading.multi_headed->ld_heads[i] : std::nullopt;
        if (same != old.end() && reading.multi_headed && told_elsewhere(ld)) {
            device.lds.push_back(std::move(ld));
            continue;
        }
        if (same != old.end() && same->head != ld.head)
            ld.bound_at.reset();  // through which it is not reached
        const bool unknown_here = device.kind == DeviceKind::kSld && reading.multi_headed &&
                                  ld.head != reading.multi_headed->head && same != old.end();
        if (unknown_here) {
            device.lds.push_back(std::move(ld));
            continue;
        }
        ld.id = seen.id;
        if (seen.serial.value != 0) ld.serial = seen.serial;
        const Bytes size_before = std::exchange(ld.size, seen.size);
        ld.dynamic = device.kind == DeviceKind::kDcd;
        ld.accepted = seen.size;
        ld.pending = seen.offered;
        settle(ld);
        if (ld.size != size_before || same == old.end() || same->head != ld.head) {
            ld.clean = false;
            device.refused_carves.clear();
        }
        device.lds.push_back(std::move(ld));
    }
    // Through a head of an SLD only its own LD's size can be asked: it has what all heads have.
    if (!reading.multi_headed || device.kind != DeviceKind::kSld) return;
    device.size = {};
    for (const LogicalDevice& ld : device.lds) device.size += ld.size;
}

}  // namespace memtide::fm
