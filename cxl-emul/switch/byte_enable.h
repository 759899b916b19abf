#pragma once

#include <cstdint>

namespace memtide::emul {

// The bits of a dword that its byte enables let through: bit n of `byte_enable` stands for byte n.
constexpr std::uint32_t enabled_bits(std::uint8_t byte_enable) {
    std::uint32_t bits = 0;
    for (unsigned byte = 0; byte < 4; ++byte)
        if ((byte_enable >> byte & 1) != 0) bits |= 0xffu << 8 * byte;
    return bits;
}

}  // namespace memtide::emul
