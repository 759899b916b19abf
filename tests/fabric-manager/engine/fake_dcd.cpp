// Dynamic capacity devices of the fake switch: the emulated switch's own bookkeeping, erased at once.
#include <algorithm>
#include <limits>

#include "tests/fabric-manager/engine/fake_switch.h"

namespace memtide::fm {

namespace {

constexpr std::uint64_t kBlock = 256ull << 20;
constexpr std::size_t kRoom = 1000;  // in event logs

Error dcd_refusal(fmapi::ReturnCode code) { return {fmapi::error_code_of(code), fmapi::to_string(code)}; }

fmapi::UpdatedDcExtents updated(const std::vector<fmapi::DcExtent>& extents) {
    fmapi::UpdatedDcExtents list;
    for (const fmapi::DcExtent& extent : extents) list.extents.push_back({extent.dpa, extent.length});
    return list;
}

}  // namespace

void FakeSwitch::add_dcd(std::uint8_t id, std::size_t hosts, std::vector<std::uint64_t> region_units,
                         emul::DynamicCapacity::Limits limits) {
    FakePort port;
    port.id = id;
    port.type = fmapi::ConnectedDeviceType::kType3Mld;
    port.serial = 0x4d54'0000'0000'0000ull + (std::uint64_t{id} << 32);
    for (std::size_t i = 0; i < hosts; ++i) port.lds.push_back({port.serial + 1 + i, 0, false, false});
    std::vector<emul::DynamicCapacity::Region> regions;
    std::uint64_t begin = 0;
    for (const std::uint64_t units : region_units) {
        regions.push_back({{begin, begin + units * kBlock}, kBlock, false, true});
        begin += units * kBlock;
    }
    port.dynamic = std::make_shared<emul::DynamicCapacity>(std::move(regions), hosts, limits);
    ports.push_back(std::move(port));
    settle_dcd(ports.back());
}

void FakeSwitch::settle_dcd(FakePort& port) {
    while (const auto dirty = port.dynamic->take_dirty()) port.dynamic->erased(*dirty, true);
    (void)port.dynamic->take_events();
    for (std::size_t host = 0; host < port.lds.size(); ++host) {
        port.lds[host].size = 0;
        for (const fmapi::DcExtent& extent : port.dynamic->accepted(host))
            port.lds[host].size += extent.length;
    }
}

FakePort* FakeSwitch::dcd_of(const FakeLd& ld, std::size_t& host) {
    for (FakePort& port : ports) {
        if (!port.dynamic || port.lds.empty()) continue;
        if (&ld < port.lds.data() || &ld >= port.lds.data() + port.lds.size()) continue;
        host = static_cast<std::size_t>(&ld - port.lds.data());
        return &port;
    }
    return nullptr;
}

void FakeSwitch::accept_capacity(FakeLd& ld, bool take) {
    std::size_t host = 0;
    FakePort* port = dcd_of(ld, host);
    if (port == nullptr) return;
    while (!port->dynamic->offered(host).empty()) {
        // One offer after the other: those of one have one tag.
        std::vector<fmapi::DcExtent> oldest = port->dynamic->offered(host);
        const fmapi::DcTag tag = oldest.front().tag;
        std::erase_if(oldest, [&](const fmapi::DcExtent& one) { return one.tag != tag; });
        if (!take) oldest.clear();
        if (port->dynamic->respond(host, updated(oldest)) != fmapi::ReturnCode::kSuccess) break;
    }
    settle_dcd(*port);
    ++calls[take ? "accept" : "refuse"];
}

void FakeSwitch::give_back_capacity(FakeLd& ld) {
    std::size_t host = 0;
    FakePort* port = dcd_of(ld, host);
    if (port == nullptr || port->dynamic->accepted(host).empty()) return;
    (void)port->dynamic->give_back(host, updated(port->dynamic->accepted(host)));
    settle_dcd(*port);
    ++calls["give-back"];
}

// As its device does when an LD is unbound, unless a test has it keep what was there.
void FakeSwitch::detach_dcd(const FakeLd& ld) {
    std::size_t host = 0;
    FakePort* port = dcd_of(ld, host);
    if (port == nullptr || port->keeps_at_unbind) return;
    port->dynamic->detach(host);
    settle_dcd(*port);
}

Call<fmapi::GetDcdInfoResponse> FakeSwitch::dcd_info(std::uint8_t id) {
    const Result<> here = co_await arrive("dcd_info");
    if (!here) co_return std::unexpected(here.error());
    const FakePort& one = port(id);
    if (!one.dynamic) co_return fail(ErrorCode::kInvalidArgument, "Unsupported (0003h)");
    fmapi::GetDcdInfoResponse answer;
    answer.hosts = static_cast<std::uint8_t>(one.lds.size());
    answer.regions = static_cast<std::uint8_t>(one.dynamic->regions().size());
    co_return answer;
}

Call<std::vector<fmapi::DcRegionConfiguration>> FakeSwitch::dc_regions(std::uint8_t id, std::uint16_t) {
    const Result<> here = co_await arrive("dc_regions");
    if (!here) co_return std::unexpected(here.error());
    std::vector<fmapi::DcRegionConfiguration> answer;
    for (const emul::DynamicCapacity::Region& one : port(id).dynamic->regions())
        answer.push_back({one.range.begin, one.range.size() / kBlock, one.range.size(), one.block, 0,
                          static_cast<std::uint8_t>(one.sanitizes ? 1 : 0)});
    co_return answer;
}

Call<std::vector<fmapi::DcExtent>> FakeSwitch::dc_extents(std::uint8_t id, std::uint16_t host) {
    const Result<> here = co_await arrive("dc_extents");
    if (!here) co_return std::unexpected(here.error());
    co_return port(id).dynamic->accepted(host);
}

Call<std::vector<fmapi::DcTagInformation>> FakeSwitch::dc_tags(std::uint8_t id) {
    const Result<> here = co_await arrive("dc_tags");
    if (!here) co_return std::unexpected(here.error());
    if (!port(id).tells_tags) co_return fail(ErrorCode::kInvalidArgument, "Unsupported (0003h)");
    co_return port(id).dynamic->tags();
}

Call<void> FakeSwitch::add_dynamic_capacity(std::uint8_t id,
                                            fmapi::InitiateDynamicCapacityAddRequest request) {
    const Result<> here = co_await arrive("add_capacity");
    if (!here) co_return std::unexpected(here.error());
    FakePort& device = port(id);
    const fmapi::ReturnCode code = device.dynamic->add(request, kRoom);
    settle_dcd(device);
    if (code != fmapi::ReturnCode::kSuccess) co_return std::unexpected(dcd_refusal(code));
    ++calls["add_capacity"];
    co_return leave("add_capacity");
}

Call<void> FakeSwitch::release_dynamic_capacity(std::uint8_t id,
                                                fmapi::InitiateDynamicCapacityReleaseRequest request) {
    const Result<> here = co_await arrive("release_capacity");
    if (!here) co_return std::unexpected(here.error());
    FakePort& device = port(id);
    const FakeLd& ld = device.lds.at(request.host);
    if (ld.online) violations.push_back("dynamic capacity was taken from a host that has it online");
    const fmapi::ReturnCode code = device.dynamic->release(request, kRoom);
    settle_dcd(device);
    if (code != fmapi::ReturnCode::kSuccess) co_return std::unexpected(dcd_refusal(code));
    ++calls["release_capacity"];
    co_return leave("release_capacity");
}

}  // namespace memtide::fm
