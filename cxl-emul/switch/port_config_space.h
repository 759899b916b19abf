#pragma once

#include <cstdint>

#include "cxl-emul/switch/model.h"

// The configuration space of a port's PCI-to-PCI bridge: a type 1 header (PCIe 6.0, 7.5.1.3), the PCI Express
// capability, and CXL's DVSEC for ports (CXL 3.1, 8.1.5). Registers that nothing implements read as zero.
namespace memtide::emul {

// One dword; `offset` in bytes below 4096, a multiple of 4.
std::uint32_t read_port_config(const Port& port, std::uint16_t offset);

// Writes the bytes enabled by the low 4 bits of `byte_enable`; only writable bits change.
void write_port_config(Port& port, std::uint16_t offset, std::uint32_t data, std::uint8_t byte_enable);

}  // namespace memtide::emul
