#include "tests/fabric-manager/placement/pod.h"

#include <stdexcept>

namespace memtide::fm {

Pod::Pod(int switches, std::size_t vppbs) : vppbs_(vppbs), readings_(static_cast<std::size_t>(switches)) {
    for (int at = 0; at < switches; ++at) {
        inventory.add_switch(id(at), "fake");
        inventory.switch_up(id(at), Time{});
        show(at);
    }
}

void Pod::show(int at) { inventory.apply(id(at), readings_[static_cast<std::size_t>(at)]); }

void Pod::add_host(const std::string& name, const std::vector<int>& at) {
    std::vector<HostAttachment> attach;
    for (const int one : at) {
        SwitchReading& reading = readings_[static_cast<std::size_t>(one)];
        Vcs vcs;
        vcs.id = static_cast<std::uint8_t>(reading.vcss.size());
        for (std::size_t i = 0; i < vppbs_; ++i) {
            vcs.vppbs.emplace_back();
            vcs.vppbs.back().id = static_cast<std::uint8_t>(i);
        }
        attach.push_back({id(one), vcs.id});
        reading.vcss.push_back(std::move(vcs));
    }
    inventory.add_host(HostId(name), std::move(attach));
    for (const int one : at) show(one);
}

void Pod::add_mld(int at, std::uint8_t port, const std::vector<std::uint64_t>& units, std::uint64_t spare) {
    const std::uint64_t serial = next_serial_ += 0x100;
    DeviceReading device{port, DeviceKind::kMld, SerialNumber{serial}, kCxlGranule * spare, kCxlGranule, {}};
    for (std::size_t i = 0; i < units.size(); ++i) {
        device.size += kCxlGranule * units[i];
        device.lds.push_back(
            {LdId{static_cast<std::uint16_t>(i)}, SerialNumber{serial + 1 + i}, kCxlGranule * units[i]});
    }
    // Slots without memory, so that what is cut off can become an LD again.
    for (std::size_t i = units.size(); i < 8; ++i)
        device.lds.push_back({LdId{static_cast<std::uint16_t>(i)}, SerialNumber{}, Bytes{}});
    if (!inventory.apply(id(at), device)) throw std::runtime_error("no such device");
}

void Pod::add_multi_headed(DeviceKind kind, const std::vector<int>& at, std::uint8_t port,
                           const std::vector<std::uint64_t>& units, std::uint64_t spare) {
    const std::uint64_t serial = next_serial_ += 0x100;
    MultiHeadedReading heads{static_cast<std::uint8_t>(at.size()), 0, {}};
    for (std::size_t i = 0; i < units.size(); ++i)
        heads.ld_heads.emplace_back(static_cast<std::uint8_t>(i % at.size()));
    for (std::size_t head = 0; head < at.size(); ++head) {
        heads.head = static_cast<std::uint8_t>(head);
        DeviceReading device{port, kind, SerialNumber{serial}, kCxlGranule * spare, kCxlGranule, {}, heads};
        for (std::size_t i = 0; i < units.size(); ++i) {
            // An SLD's head tells of its own LD only.
            const bool told = kind == DeviceKind::kMld || i % at.size() == head;
            const Bytes size = kCxlGranule * (told ? units[i] : 0);
            device.size += size;
            device.lds.push_back({LdId{static_cast<std::uint16_t>(i)}, SerialNumber{serial + 1 + i}, size});
        }
        if (const auto ok = inventory.apply(id(at[head]), device); !ok)
            throw std::runtime_error(ok.error().message);
        // Two of them can be at one switch.
        ++port;
    }
}

void Pod::add_sld(int at, std::uint8_t port, std::uint64_t units) {
    const SerialNumber serial{next_serial_ += 0x100};
    const DeviceReading device{port,        DeviceKind::kSld,
                               serial,      kCxlGranule * units,
                               kCxlGranule, {{kWholeDevice, serial, kCxlGranule * units}}};
    if (!inventory.apply(id(at), device)) throw std::runtime_error("no such device");
}

void Pod::bind(const Part& part, bool bound) {
    const auto at = static_cast<std::size_t>(std::stoi(part.where.switch_id.value.substr(6)));
    Vcs& vcs = readings_[at].vcss.at(part.where.vcs);
    Vppb& vppb = vcs.vppbs.at(part.where.vppb);
    const bool whole = inventory.device(part.memory.device)->kind == DeviceKind::kSld;
    vppb.status = !bound  ? BindingStatus::kUnbound
                  : whole ? BindingStatus::kBoundPort
                          : BindingStatus::kBoundLd;
    vppb.port = part.port;
    vppb.ld = part.memory.ld;
    inventory.apply(part.where.switch_id, vcs.id, vcs.vppbs);
}

void Pod::take(const Plan& plan, const std::string& name, const std::string& host,
               std::optional<std::string> tenant) {
    Composition c;
    c.id = CompositionId(name);
    c.host = HostId(host);
    c.tenant = std::move(tenant);
    for (const PartPlacement& one : plan.parts) {
        Part part;
        part.number = c.next_part++;
        part.size = one.size;
        part.memory = one.memory;
        part.port = one.port;
        part.where = one.where;
        part.carve = one.carve;
        c.parts.push_back(part);
    }
    if (const Result<> ok = inventory.claim(c); !ok) throw std::runtime_error(ok.error().message);
    for (Part& part : c.parts) {
        if (part.carve) {
            for (const LdSize& size : part.carve->after)
                inventory.resize({part.memory.device, size.ld}, size.size, {});
            part.carve->done = true;
            inventory.carved({c.id, part.number});
        }
        bind(part, true);
    }
    taken[name] = std::move(c);
}

void Pod::release(const std::string& name) {
    const Composition c = taken.at(name);
    for (const Part& part : c.parts) bind(part, false);
    inventory.release(c.id);
    taken.erase(name);
}

std::vector<std::string> Pod::wrong() const {
    std::vector<Composition> all;
    for (const auto& [name, c] : taken) all.push_back(c);
    return violations(inventory, all);
}

}  // namespace memtide::fm
