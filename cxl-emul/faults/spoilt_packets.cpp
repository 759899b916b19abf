#include "cxl-emul/faults/spoilt_packets.h"

#include <algorithm>

#include "common/fmapi/mctp.h"

namespace memtide::emul {
namespace {

using fmapi::kPacketSize;

auto packet_at(WireBytes& bytes, std::size_t packet) {
    return bytes.begin() + static_cast<std::ptrdiff_t>(packet * kPacketSize);
}

}  // namespace

std::uint64_t draw_below(FaultRandom& random, std::uint64_t most) {
    const std::uint64_t drawn = random();
    return most == 0 ? 0 : drawn % most;
}

bool draw_chance(FaultRandom& random, double probability) {
    constexpr unsigned kMantissa = 53;
    const double drawn =
        static_cast<double>(random() >> (64 - kMantissa)) / static_cast<double>(1ULL << kMantissa);
    return drawn < probability;
}

void corrupt(WireBytes& bytes, std::size_t count, FaultRandom& random) {
    std::vector<std::size_t> places(bytes.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    for (std::size_t i = 0; i < std::min(count, places.size()); ++i) {
        std::swap(places[i], places[i + draw_below(random, places.size() - i)]);
        bytes[places[i]] ^= static_cast<std::byte>(1 + draw_below(random, 255));
    }
}

void truncate(WireBytes& bytes, std::size_t count, FaultRandom& random) {
    if (bytes.size() < 2) return;
    const std::uint64_t drawn = 1 + draw_below(random, bytes.size() - 1);
    bytes.resize(count == 0 || count >= bytes.size() ? drawn : count);
}

bool reorder_packets(WireBytes& bytes, FaultRandom& random) {
    const std::size_t packets = bytes.size() / kPacketSize;
    if (packets < 2) return false;
    // Two change places, so that it is another order for certain.
    const std::size_t one = draw_below(random, packets);
    const std::size_t other = (one + 1 + draw_below(random, packets - 1)) % packets;
    std::swap_ranges(packet_at(bytes, one), packet_at(bytes, one + 1), packet_at(bytes, other));
    return true;
}

void duplicate_packet(WireBytes& bytes, FaultRandom& random) {
    const std::size_t packets = bytes.size() / kPacketSize;
    if (packets == 0) return;
    const std::size_t which = draw_below(random, packets);
    const WireBytes copy(packet_at(bytes, which), packet_at(bytes, which + 1));
    bytes.insert(packet_at(bytes, which + 1), copy.begin(), copy.end());
}

}  // namespace memtide::emul
