// Whatever a peer sends: the packet assembler ends with messages or an error, keeps no more memory than it
// may, and what it took for a message survives being sent again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "common/fmapi/mctp.h"

using namespace memtide::fmapi;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void send_again(const MctpMessage& message) {
    PacketAssembler assembler;
    assembler.feed(to_packets(message));
    const auto again = assembler.next();
    require(again && *again);
    require((*again)->message == message.message && (*again)->route == message.route &&
            (*again)->type == message.type);
    require(assembler.pending() == 0);
}

}  // namespace

// The first byte says in pieces of what size the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t piece = data[0] + std::size_t{1};
    auto rest = std::as_bytes(std::span(data + 1, size - 1));
    PacketAssembler assembler;
    while (!rest.empty()) {
        const auto now = rest.first(std::min(piece, rest.size()));
        rest = rest.subspan(now.size());
        assembler.feed(now);
        while (true) {
            const auto next = assembler.next();
            if (!next) return 0;
            if (!*next) break;
            send_again(**next);
        }
        require(assembler.pending() <= 16 * (PacketAssembler::kDefaultLimit + kPacketSize) + kPacketSize);
    }
    return 0;
}
