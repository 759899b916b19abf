#include "common/fmapi/dialect.h"

#include <algorithm>
#include <array>
#include <string>

namespace memtide::fmapi {
namespace {

constexpr HeaderForm kMirrored{.category_in_high_nibble = true, .background_in_low_bit = true};

constexpr std::array kDialects{
    Dialect{.name = "spec", .summary = "as the specification has it; packets of 68 bytes"},
    Dialect{.name = "true-length",
            .summary = "the last packet of a message is not padded",
            .wire = {.framing = Framing::kTruePackets}},
    Dialect{.name = "framed",
            .summary = "CCI messages without MCTP, each behind its length",
            .wire = {.framing = Framing::kFrames}},
    Dialect{.name = "framed-big-endian",
            .summary = "as framed, the length big endian",
            .wire = {.framing = Framing::kFrames, .frame_length_is_big_endian = true}},
    Dialect{.name = "high-nibble",
            .summary = "category in the high nibble, background bit at bit 0 of byte 7",
            .wire = {.header = kMirrored}},
    Dialect{.name = "opcode-zero", .summary = "responses have opcode 0", .opcode_zero_in_responses = true},
    Dialect{.name = "cxl-2.0",
            .summary = "Identify of 17 bytes, Identify Switch Device of 93",
            .identify_length = 17,
            .identify_switch_length = 93},
    Dialect{.name = "short-identify", .summary = "Identify of 14 bytes", .identify_length = 14},
    Dialect{.name = "silent",
            .summary = "no answer to unknown commands; one client at a time",
            .silent_about_unknown = true,
            .one_client = true},
    Dialect{.name = "needs-eid",
            .summary = "answers once it was given an MCTP endpoint id",
            .needs_endpoint_id = true},
    Dialect{.name = "pipelined", .summary = "takes 16 commands at a time", .in_flight = 16},
};

}  // namespace

std::span<const Dialect> dialects() { return kDialects; }

const Dialect& spec_dialect() { return kDialects.front(); }

const Dialect* find_dialect(std::string_view name) {
    const auto found = std::ranges::find(kDialects, name, &Dialect::name);
    return found == kDialects.end() ? nullptr : &*found;
}

std::string dialect_names() {
    std::string names;
    for (const Dialect& one : kDialects) {
        if (!names.empty()) names += ", ";
        names += one.name;
    }
    return names;
}

const Dialect& recognise_dialect(const WireFormat& wire, bool opcode_zero, std::size_t identify_length) {
    // How it writes counts more than what is accepted from everybody, which only makes for a better name.
    const Dialect* best = &spec_dialect();
    int most = -1;
    for (const Dialect& one : kDialects) {
        const int fits = (one.wire.framing == wire.framing ? 16 : 0) + (one.wire == wire ? 8 : 0) +
                         (one.wire.header == wire.header ? 4 : 0) +
                         (one.opcode_zero_in_responses == opcode_zero ? 2 : 0) +
                         (one.identify_length == identify_length ? 1 : 0);
        if (fits > most) {
            most = fits;
            best = &one;
        }
    }
    return *best;
}

}  // namespace memtide::fmapi
