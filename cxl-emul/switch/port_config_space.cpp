#include "cxl-emul/switch/port_config_space.h"

#include "cxl-emul/switch/byte_enable.h"

namespace memtide::emul {
namespace {

// As QEMU's cxl-upstream and cxl-downstream.
constexpr std::uint32_t kUpstreamIds = 0xa12819e5;
constexpr std::uint32_t kDownstreamIds = 0xa12919e5;
constexpr std::uint32_t kBridgeClass = 0x06040000;  // PCI-to-PCI bridge, revision 0

constexpr std::uint32_t kStatusHasCapabilities = 0x0010'0000;
constexpr std::uint32_t kHeaderType1 = 0x0001'0000;
constexpr std::uint16_t kPcieCapability = 0x40;

std::uint32_t reset_value(const Port& port, std::uint16_t offset) {
    const bool upstream = port.config.host.has_value();
    switch (offset) {
        case 0x00:
            return upstream ? kUpstreamIds : kDownstreamIds;
        case 0x04:
            return kStatusHasCapabilities;
        case 0x08:
            return kBridgeClass;
        case 0x0c:
            return kHeaderType1;
        case 0x24:
            return 0x0001'0001;  // prefetchable window: 64-bit
        case 0x34:
            return kPcieCapability;
        // PCI Express capability, version 2, of an upstream (5) or downstream (6) switch port with a slot.
        case kPcieCapability:
            return upstream ? 0x0052'0010 : 0x0162'0010;
        // Link capabilities: 32 GT/s, x16, the port's number.
        case kPcieCapability + 0x0c:
            return std::uint32_t{port.config.id} << 24 | 0x105;
        // Slot capabilities: hot-plug capable, attention button, power controller.
        case kPcieCapability + 0x14:
            return upstream ? 0 : 0x0000'0043 | std::uint32_t{port.config.id} << 19;
        // Extended capability: DVSEC (23h), version 1, the last one; CXL's vendor id, 40 bytes, id 3.
        case 0x100:
            return 0x0001'0023;
        case 0x104:
            return 0x0280'1e98;
        case 0x108:
            return 0x0000'0003;
        default:
            return 0;
    }
}

std::uint32_t writable_bits(std::uint16_t offset) {
    switch (offset) {
        case 0x04:
            return 0x0000'0547;  // command: I/O, memory, bus master, parity, SERR, INTx
        case 0x0c:
            return 0x0000'00ff;  // cache line size
        case 0x18:
            return 0x00ff'ffff;  // bus numbers
        case 0x20:
            return 0xfff0'fff0;  // memory window
        case 0x24:
            return 0xfff0'fff0;  // prefetchable window
        case 0x28:
        case 0x2c:
            return 0xffff'ffff;  // its upper halves
        case 0x3c:
            return 0x0043'00ff;  // bridge control, interrupt line
        default:
            return 0;
    }
}

}  // namespace

std::uint32_t read_port_config(const Port& port, std::uint16_t offset) {
    const auto written = port.config_writes.find(offset);
    return reset_value(port, offset) | (written == port.config_writes.end() ? 0 : written->second);
}

void write_port_config(Port& port, std::uint16_t offset, std::uint32_t data, std::uint8_t byte_enable) {
    const std::uint32_t mask = writable_bits(offset) & enabled_bits(byte_enable);
    if (mask == 0) return;
    std::uint32_t& stored = port.config_writes[offset];
    stored = (stored & ~mask) | (data & mask);
}

}  // namespace memtide::emul
