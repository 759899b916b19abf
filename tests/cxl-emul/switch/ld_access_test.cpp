#include <gtest/gtest.h>

#include "cxl-emul/switch/pci_function.h"
#include "tests/cxl-emul/switch/in_process.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

// Send LD CXL.io Configuration and Memory Request.
namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;

constexpr std::uint64_t kSerial = 0x4d54000100000000;  // of mld0
constexpr std::uint16_t kFmLd = 0xffff;
constexpr std::uint64_t kBase = 0x1'2345'6000;

class LdAccess : public ::testing::Test {
  protected:
    InProcess fabric_;

    static fmapi::LdConfigRequest config(std::uint16_t ld, std::uint16_t offset) {
        return {kMldPort, fmapi::PpbConfigRequest::make_access(offset, false), ld, 0};
    }
    std::uint32_t read(std::uint16_t offset, std::uint16_t ld = 1) {
        return fabric_.get<fmapi::SendLdConfigRequest>(config(ld, offset)).read_data;
    }
    void write(std::uint16_t offset, std::uint32_t data, std::uint8_t enable = 0xf, std::uint16_t ld = 1) {
        EXPECT_EQ(fabric_.code<fmapi::SendLdConfigRequest>(
                      {kMldPort, fmapi::PpbConfigRequest::make_access(offset, true, enable), ld, data}),
                  ReturnCode::kSuccess);
    }
    // Gives the LD's registers an address, as a BIOS does.
    void enable_memory(std::uint16_t ld = 1) {
        write(0x10, static_cast<std::uint32_t>(kBase), 0xf, ld);
        write(0x14, static_cast<std::uint32_t>(kBase >> 32), 0xf, ld);
        write(0x04, 0x2, 0xf, ld);
    }
    static fmapi::LdMemoryRequest memory(std::uint64_t offset, std::uint16_t length,
                                         std::uint32_t enables = 0xff, std::uint16_t ld = 1) {
        return {.port = kMldPort,
                .access = enables << 12,
                .ld = ld,
                .length = length,
                .address = kBase + offset,
                .write_data = {}};
    }
    static fmapi::LdMemoryRequest memory_write(std::uint64_t offset, std::vector<std::uint8_t> data,
                                               std::uint32_t enables = 0xff) {
        fmapi::LdMemoryRequest request = memory(offset, static_cast<std::uint16_t>(data.size()), enables);
        request.access |= fmapi::LdMemoryRequest::kWrite;
        request.write_data = std::move(data);
        return request;
    }
    std::vector<std::uint8_t> registers(std::uint64_t offset, std::uint16_t length,
                                        std::uint32_t enables = 0xff) {
        return fabric_.get<fmapi::SendLdMemoryRequest>(memory(offset, length, enables)).read_data;
    }
    ReturnCode memory_code(const fmapi::LdMemoryRequest& request) {
        return fabric_.code<fmapi::SendLdMemoryRequest>(request);
    }
    // Command through the LD's mailbox: its return code.
    std::uint8_t ring(std::uint16_t opcode) {
        fabric_.get<fmapi::SendLdMemoryRequest>(memory_write(
            kMailboxRegisters + 8,
            {static_cast<std::uint8_t>(opcode), static_cast<std::uint8_t>(opcode >> 8), 0, 0, 0, 0, 0, 0}));
        fabric_.get<fmapi::SendLdMemoryRequest>(memory_write(kMailboxRegisters + 4, {1, 0, 0, 0}));
        EXPECT_EQ(registers(kMailboxRegisters + 4, 4), (std::vector<std::uint8_t>(4)));  // taken
        return registers(kMailboxRegisters + 0x14, 4)[0];
    }
};

TEST_F(LdAccess, ConfigurationSpaceIsThatOfACxlMemoryDevice) {
    EXPECT_EQ(read(0x00), 0x0d938086U);
    EXPECT_EQ(read(0x08) >> 8, 0x050210U);
    EXPECT_EQ(read(0x0c) >> 16 & 0x7f, 0U);  // type 0
    EXPECT_EQ(read(0x34), 0x40U);
    EXPECT_EQ(read(0x40) & 0xff, 0x10U);  // PCI Express
}

TEST_F(LdAccess, EachLdHasItsSerialNumber) {
    EXPECT_EQ(read(0x100) & 0xffff, 0x0003U);
    EXPECT_EQ(read(0x104), static_cast<std::uint32_t>(kSerial + 2));
    EXPECT_EQ(read(0x108), static_cast<std::uint32_t>(kSerial >> 32));
    EXPECT_EQ(read(0x104, 0), static_cast<std::uint32_t>(kSerial + 1));
    EXPECT_EQ(read(0x104, kFmLd), static_cast<std::uint32_t>(kSerial));
}

TEST_F(LdAccess, ExtendedCapabilitiesAreChained) {
    std::vector<std::uint32_t> ids;
    for (std::uint16_t at = 0x100; at != 0; at = static_cast<std::uint16_t>(read(at) >> 20))
        ids.push_back(read(at) & 0xffff);
    EXPECT_EQ(ids, (std::vector<std::uint32_t>{0x0003, 0x0023, 0x0023}));
    const auto cxl = static_cast<std::uint16_t>(read(0x100) >> 20);
    EXPECT_EQ(read(static_cast<std::uint16_t>(cxl + 4)) & 0xffff, 0x1e98U);
    EXPECT_EQ(read(static_cast<std::uint16_t>(cxl + 8)) & 0xffff, 0U);
    EXPECT_EQ(read(static_cast<std::uint16_t>(cxl + 0x1c)) & 0xf000'0000, 0x1000'0000U);  // 256 MiB
}

TEST_F(LdAccess, OnlyWritableBitsOfEnabledBytesChange) {
    write(0x00, 0xffffffff);
    EXPECT_EQ(read(0x00), 0x0d938086U);
    write(0x10, 0xffffffff);  // how the size of a BAR is found
    EXPECT_EQ(read(0x10), 0xfffff004U);
    write(0x10, 0, 0x8);
    EXPECT_EQ(read(0x10), 0x00fff004U);
    EXPECT_EQ(read(0x10, 0), 0x00000004U);  // of another LD
}

TEST_F(LdAccess, RegistersListTheCapabilities) {
    enable_memory();
    const auto array = registers(0, 0x40);
    EXPECT_EQ(array[2], 1);  // version
    EXPECT_EQ(array[3], 1);  // memory device
    EXPECT_EQ(array[4], 3);  // capabilities
    EXPECT_EQ(array[0x10], 0x01);
    EXPECT_EQ(array[0x20], 0x02);
    EXPECT_EQ(array[0x31], 0x40);
    const std::uint64_t memory_status = array[0x34] | array[0x35] << 8;
    EXPECT_EQ(registers(memory_status, 4)[0], 0x14);  // the mailbox and the media are ready
}

TEST_F(LdAccess, MediaOfAnLdWithoutMemoryIsNotReady) {
    enable_memory(2);
    EXPECT_EQ(fabric_.get<fmapi::SendLdMemoryRequest>(memory(0x48, 4, 0xff, 2)).read_data[0], 0x10);
}

TEST_F(LdAccess, ByteEnablesOfFirstAndLastDwordCount) {
    enable_memory();
    EXPECT_EQ(registers(0, 4, 0x4), (std::vector<std::uint8_t>{0, 0, 1, 0}));
    EXPECT_EQ(registers(0, 8, 0x18), (std::vector<std::uint8_t>{0, 0, 0, 1, 3, 0, 0, 0}));
    fabric_.get<fmapi::SendLdMemoryRequest>(
        memory_write(kMailboxPayloadOffset, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 0x1c));
    EXPECT_EQ(registers(kMailboxPayloadOffset, 12),
              (std::vector<std::uint8_t>{0, 0, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0}));
    EXPECT_EQ(memory_code(memory(0, 8, 0x0f)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(0, 8, 0xf0)), ReturnCode::kInvalidInput);
}

TEST_F(LdAccess, WritesToReadOnlyRegistersChangeNothing) {
    enable_memory();
    const auto before = registers(0, 0x80);
    EXPECT_EQ(memory_code(memory_write(0, std::vector<std::uint8_t>(0x80, 0xff))), ReturnCode::kSuccess);
    EXPECT_EQ(registers(0, 0x80), before);
}

TEST_F(LdAccess, RangesThatAreNotTheRegistersAreRefused) {
    EXPECT_EQ(memory_code(memory(0, 4)), ReturnCode::kInvalidInput);  // memory space is off
    enable_memory();
    EXPECT_EQ(memory_code(memory(0, 4096)), ReturnCode::kSuccess);
    EXPECT_EQ(memory_code(memory(4, 4096)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(4096, 4)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(~std::uint64_t{0} - 3, 4)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(~kBase - 3, 4)), ReturnCode::kInvalidInput);  // the end of all addresses
    EXPECT_EQ(memory_code(memory(0, 0)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(0, 6)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(2, 4)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(0, 4100)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(0, 0xfffc)), ReturnCode::kInvalidInput);
}

TEST_F(LdAccess, ALengthThatIsNotThereIsRefused) {
    enable_memory();
    auto payload = fmapi::encode(memory_write(kMailboxPayloadOffset, {1, 2, 3, 4}));
    payload.pop_back();
    EXPECT_EQ(fabric_.call(fmapi::make_request(fmapi::Opcode::kSendLdMemoryRequest, 0, payload)).return_code,
              ReturnCode::kInvalidPayloadLength);
}

TEST_F(LdAccess, AnLdThatAHostHasIsTheHosts) {
    enable_memory();
    fabric_.bind(0, 0, kMldPort, 1);
    EXPECT_EQ(fabric_.code<fmapi::SendLdConfigRequest>(config(1, 0)), ReturnCode::kInvalidInput);
    EXPECT_EQ(memory_code(memory(0, 4)), ReturnCode::kInvalidInput);
    ASSERT_EQ(fabric_.code<fmapi::UnbindVppb>({0, 0}), ReturnCode::kBackgroundStarted);
    fabric_.end();
    EXPECT_EQ(read(0x10), 0x4U);  // as after a reset
}

TEST_F(LdAccess, WhatIsNotThereIsRefused) {
    for (const std::uint8_t port : {kSldPort, kEmptyPort, kNoPort, std::uint8_t{0}})
        EXPECT_EQ(fabric_.code<fmapi::SendLdConfigRequest>({port, 0, 0, 0}), ReturnCode::kInvalidInput);
    for (const int ld : {4, 255, 0xfffe})
        EXPECT_EQ(fabric_.code<fmapi::SendLdConfigRequest>(config(static_cast<std::uint16_t>(ld), 0)),
                  ReturnCode::kInvalidInput);
    ASSERT_EQ(fabric_.code<fmapi::PhysicalPortControl>({kMldPort, fmapi::PortOperation::kAssertPerst}),
              ReturnCode::kSuccess);
    EXPECT_EQ(fabric_.code<fmapi::SendLdConfigRequest>(config(1, 0)), ReturnCode::kRetryRequired);
}

TEST_F(LdAccess, TheMailboxTakesCommands) {
    enable_memory();
    EXPECT_EQ(ring(0x0001), 0);  // Identify
    EXPECT_EQ(registers(kMailboxPayloadOffset, 4), (std::vector<std::uint8_t>{0x86, 0x80, 0x93, 0x0d}));
    EXPECT_EQ(registers(kMailboxRegisters + 8, 8)[2], 18);  // the answer's length
    EXPECT_EQ(ring(0x4567), static_cast<std::uint8_t>(ReturnCode::kUnsupported));
    EXPECT_EQ(ring(0x4400), static_cast<std::uint8_t>(ReturnCode::kBackgroundStarted));
    ASSERT_EQ(fabric_.running().size(), 1U);
    EXPECT_EQ(registers(0x48, 4)[0], 0x10);  // the media is not ready meanwhile
    EXPECT_EQ(ring(0x4400), static_cast<std::uint8_t>(ReturnCode::kBusy));
    fabric_.end();
    EXPECT_EQ(registers(kMailboxRegisters + 0x18, 4)[2], 100);  // percent
}

TEST_F(LdAccess, AMailboxLengthBeyondItsPayloadIsRefused) {
    enable_memory();
    fabric_.get<fmapi::SendLdMemoryRequest>(
        memory_write(kMailboxRegisters + 8, {0x01, 0x00, 0xff, 0xff, 0x1f, 0, 0, 0}));
    fabric_.get<fmapi::SendLdMemoryRequest>(memory_write(kMailboxRegisters + 4, {1, 0, 0, 0}));
    EXPECT_EQ(registers(kMailboxRegisters + 0x14, 4)[0],
              static_cast<std::uint8_t>(ReturnCode::kInvalidPayloadLength));
}

}  // namespace
}  // namespace memtide::emul::test
