#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "common/fmapi/commands/memory_device.h"

// An LD, or the FM-owned LD of an MLD, as the PCI function that it is on CXL.io: configuration space and the
// device registers behind its memory BAR. Plain data and what reads and writes it.
namespace memtide::emul {

// What was written to; the rest follows from the device.
struct PciFunction {
    std::map<std::uint16_t, std::uint32_t> config_writes;
    std::vector<std::byte> mailbox;  // its registers; empty while nobody has written to them

    // Where its registers are in memory space: the BAR's value. Only while memory space is enabled.
    [[nodiscard]] bool memory_enabled() const;
    [[nodiscard]] std::uint64_t register_base() const;
};

struct FunctionIdentity {
    SerialNumber serial;
    Bytes size;  // of its memory
};

// One dword; `offset` in bytes below 4096, a multiple of 4. A type 0 header with class code 0502h, and of
// extended capabilities the Device Serial Number, the CXL device DVSEC and the register locator. Registers
// that nothing implements read as zero.
std::uint32_t read_function_config(const PciFunction& function, const FunctionIdentity& identity,
                                   std::uint16_t offset);
// Writes the bytes enabled by the low 4 bits of `byte_enable`; only writable bits change.
void write_function_config(PciFunction& function, std::uint16_t offset, std::uint32_t data,
                           std::uint8_t byte_enable);

// Size of the memory BAR, bytes.
inline constexpr std::size_t kRegisterSpace = 4096;

// What status registers show.
struct FunctionStatus {
    bool media_ready = true;
    std::uint16_t background_opcode = 0;
    std::uint8_t background_percent = 0;
    std::uint16_t background_code = 0;
};

// All of its device registers (CXL 3.1, 8.2.8), kRegisterSpace bytes: the capabilities array with the device
// status, primary mailbox and memory device status capabilities, and behind it those.
std::vector<std::byte> read_registers(const PciFunction& function, const FunctionStatus& status);

// The payload that a mailbox takes and gives, bytes.
inline constexpr std::size_t kMailboxPayload = 1024;
// Offsets from the BAR.
inline constexpr std::size_t kMailboxRegisters = 0x80;
inline constexpr std::size_t kMailboxPayloadOffset = kMailboxRegisters + 0x20;

// Writes one byte; what is read-only stays as it is.
void write_register(PciFunction& function, std::size_t offset, std::byte value);

// A command that waits in the mailbox since its doorbell was rung.
struct MailboxCommand {
    std::uint16_t opcode = 0;
    std::size_t length = 0;  // of the payload, as the writer says it
    std::span<const std::byte> payload;
};
bool doorbell_rung(const PciFunction& function);
MailboxCommand command_in(const PciFunction& function);
// The answer; an answer that does not fit is cut.
void answer_in(PciFunction& function, std::uint16_t return_code, bool in_background,
               std::span<const std::byte> payload);

}  // namespace memtide::emul
