#include "cxl-emul/switch/pci_function.h"

#include <algorithm>

#include "cxl-emul/switch/byte_enable.h"

namespace memtide::emul {
namespace {

// As QEMU's cxl-type3.
constexpr std::uint32_t kType3Ids = 0x0d93'8086;
constexpr std::uint32_t kMemoryClass = 0x0502'1000;  // CXL memory device, revision 0
constexpr std::uint32_t kHasCapabilities = 0x0010'0000;
constexpr std::uint16_t kCommand = 0x04;
constexpr std::uint32_t kMemorySpaceEnable = 0x0000'0002;
constexpr std::uint16_t kBarLow = 0x10;
constexpr std::uint16_t kBarHigh = 0x14;
constexpr std::uint32_t k64BitBar = 0x0000'0004;
constexpr std::uint32_t kBarAddress = ~std::uint32_t{kRegisterSpace - 1};
constexpr std::uint16_t kPcieCapability = 0x40;
constexpr std::uint16_t kSerialCapability = 0x100;
constexpr std::uint16_t kCxlDvsec = 0x10c;
constexpr std::uint16_t kRegisterLocator = 0x144;

std::uint32_t low_half(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high_half(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

// An extended capability's first dword: id, version 1, where the next one is.
constexpr std::uint32_t extended_header(std::uint32_t id, std::uint32_t next) {
    return id | 1u << 16 | next << 20;
}

std::uint32_t fixed_bits(const FunctionIdentity& identity, std::uint16_t offset) {
    switch (offset) {
        case 0x00:
            return kType3Ids;
        case kCommand:
            return kHasCapabilities;
        case 0x08:
            return kMemoryClass;
        case kBarLow:
            return k64BitBar;
        case 0x34:
            return kPcieCapability;
        case kPcieCapability:
            return 0x0002'0010;  // PCI Express, version 2, endpoint
        case kPcieCapability + 0x0c:
            return 0x0000'0105;  // link: 32 GT/s, x16
        case kSerialCapability:
            return extended_header(0x0003, kCxlDvsec);
        case kSerialCapability + 4:
            return low_half(identity.serial.value);
        case kSerialCapability + 8:
            return high_half(identity.serial.value);
        // CXL's DVSEC for devices (CXL 3.1, 8.1.3): revision 1, 56 bytes, id 0.
        case kCxlDvsec:
            return extended_header(0x0023, kRegisterLocator);
        case kCxlDvsec + 4:
            return 0x0381'1e98;
        case kCxlDvsec + 8:
            return 0x001e'0000;  // CXL.io, CXL.mem, initialised by hardware, one range
        case kCxlDvsec + 0xc:
            return 0x0000'0002;  // CXL.io is enabled
        case kCxlDvsec + 0x18:
            return high_half(identity.size.value);
        case kCxlDvsec + 0x1c:
            return (low_half(identity.size.value) & 0xf000'0000) | 0x0000'0003;  // valid, active
        // Where registers are (8.1.9): 20 bytes, id 8, the device registers at the start of BAR 0.
        case kRegisterLocator:
            return extended_header(0x0023, 0);
        case kRegisterLocator + 4:
            return 0x0140'1e98;
        case kRegisterLocator + 8:
            return 0x0000'0008;
        case kRegisterLocator + 0xc:
            return 0x0000'0300;
        default:
            return 0;
    }
}

std::uint32_t writable_config_bits(std::uint16_t offset) {
    switch (offset) {
        case kCommand:
            return 0x0000'0546;  // memory, bus master, parity, SERR, INTx
        case 0x0c:
            return 0x0000'00ff;  // cache line size
        case kBarLow:
            return kBarAddress;
        case kBarHigh:
            return 0xffff'ffff;
        case 0x3c:
            return 0x0000'00ff;  // interrupt line
        case kCxlDvsec + 0xc:
            return 0x0000'0004;  // CXL.mem enable
        default:
            return 0;
    }
}

std::uint32_t written(const PciFunction& function, std::uint16_t offset) {
    const auto found = function.config_writes.find(offset);
    return found == function.config_writes.end() ? 0 : found->second;
}

void put(std::span<std::byte> at, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) at[i] = static_cast<std::byte>(value >> 8 * i);
}
std::uint64_t get(std::span<const std::byte> at, std::size_t width) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << 8 * i;
    return value;
}

constexpr std::size_t kDeviceStatus = 0x40;
constexpr std::size_t kMemoryStatus = 0x48;
// Within the mailbox's registers.
constexpr std::size_t kControl = 0x04;
constexpr std::size_t kCommandRegister = 0x08;
constexpr std::size_t kStatus = 0x10;
constexpr std::size_t kBackgroundStatus = 0x18;
constexpr std::size_t kPayload = 0x20;
constexpr std::size_t kMailboxSize = kPayload + kMailboxPayload;
constexpr std::uint64_t kPayloadSizeExponent = 10;
constexpr std::uint64_t kLengthMask = 0x1f'ffff;

// A capability of the array (8.2.8.2): its id, version 1, where it is and how long.
void put_capability(std::span<std::byte> registers, std::size_t number, std::uint64_t id, std::size_t offset,
                    std::size_t length) {
    const auto at = registers.subspan(0x10 * (number + 1));
    put(at, id | 1u << 16, 4);
    put(at.subspan(4), offset, 4);
    put(at.subspan(8), length, 4);
}

}  // namespace

bool PciFunction::memory_enabled() const { return (written(*this, kCommand) & kMemorySpaceEnable) != 0; }

std::uint64_t PciFunction::register_base() const {
    return std::uint64_t{written(*this, kBarHigh)} << 32 | written(*this, kBarLow);
}

std::uint32_t read_function_config(const PciFunction& function, const FunctionIdentity& identity,
                                   std::uint16_t offset) {
    return fixed_bits(identity, offset) | written(function, offset);
}

void write_function_config(PciFunction& function, std::uint16_t offset, std::uint32_t data,
                           std::uint8_t byte_enable) {
    const std::uint32_t mask = writable_config_bits(offset) & enabled_bits(byte_enable);
    if (mask == 0) return;
    std::uint32_t& stored = function.config_writes[offset];
    stored = (stored & ~mask) | (data & mask);
}

std::vector<std::byte> read_registers(const PciFunction& function, const FunctionStatus& status) {
    std::vector<std::byte> registers(kRegisterSpace);
    const std::span<std::byte> all(registers);
    // The array's own header: version 1, of a memory device (type 1), three capabilities.
    put(all, std::uint64_t{3} << 32 | 1u << 24 | 1u << 16, 8);
    put_capability(all, 0, 0x0001, kDeviceStatus, 8);
    put_capability(all, 1, 0x0002, kMailboxRegisters, kMailboxSize);
    put_capability(all, 2, 0x4000, kMemoryStatus, 8);
    constexpr std::uint64_t kMailboxReady = 1u << 4;
    constexpr std::uint64_t kMediaReady = 1u << 2;
    put(all.subspan(kMemoryStatus), kMailboxReady | (status.media_ready ? kMediaReady : 0), 8);
    std::ranges::copy(function.mailbox, all.subspan(kMailboxRegisters).begin());
    put(all.subspan(kMailboxRegisters), kPayloadSizeExponent, 4);
    put(all.subspan(kMailboxRegisters + kBackgroundStatus),
        std::uint64_t{status.background_opcode} | std::uint64_t{status.background_percent} << 16 |
            std::uint64_t{status.background_code} << 32,
        8);
    return registers;
}

void write_register(PciFunction& function, std::size_t offset, std::byte value) {
    if (offset < kMailboxRegisters || offset >= kMailboxRegisters + kMailboxSize) return;
    const std::size_t at = offset - kMailboxRegisters;
    const bool writable =
        at == kControl || (at >= kCommandRegister && at < kCommandRegister + 8) || at >= kPayload;
    if (!writable) return;
    function.mailbox.resize(kMailboxSize);
    function.mailbox[at] = at == kControl ? value & std::byte{1} : value;
}

bool doorbell_rung(const PciFunction& function) {
    return !function.mailbox.empty() && function.mailbox[kControl] != std::byte{};
}

MailboxCommand command_in(const PciFunction& function) {
    const std::span<const std::byte> mailbox(function.mailbox);
    const std::uint64_t command = get(mailbox.subspan(kCommandRegister), 8);
    const std::size_t length = command >> 16 & kLengthMask;
    return {.opcode = static_cast<std::uint16_t>(command),
            .length = length,
            .payload = mailbox.subspan(kPayload, std::min(length, kMailboxPayload))};
}

void answer_in(PciFunction& function, std::uint16_t return_code, bool in_background,
               std::span<const std::byte> payload) {
    const std::span<std::byte> mailbox(function.mailbox);
    payload = payload.first(std::min(payload.size(), kMailboxPayload));
    const std::uint64_t opcode = get(mailbox.subspan(kCommandRegister), 2);
    put(mailbox.subspan(kCommandRegister), opcode | std::uint64_t{payload.size()} << 16, 8);
    put(mailbox.subspan(kStatus), (in_background ? 1u : 0u) | std::uint64_t{return_code} << 32, 8);
    std::ranges::copy(payload, mailbox.subspan(kPayload).begin());
    mailbox[kControl] = {};
}

}  // namespace memtide::emul
