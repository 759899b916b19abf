// Every command's request and response decoded from arbitrary bytes: an error or a value that encodes to
// bytes that decode to the same value.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "common/fmapi/commands.h"
#include "common/fmapi/message.h"

using namespace memtide::fmapi;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

template <typename T>
void try_payload(std::span<const std::byte> bytes, const T& initial = {}) {
    const auto first = decode<T>(bytes, initial);
    if (!first) {
        require(first.error().code == memtide::ErrorCode::kProtocol && !first.error().message.empty());
        return;
    }
    const auto encoded = encode(*first);
    require(encoded.size() >= T::kWireSize);
    const auto second = decode<T>(encoded, initial);
    require(second && *second == *first);
}

void try_message(std::span<const std::byte> bytes) {
    const auto message = decode_message(bytes);
    if (!message) return;
    require(!to_string(*message).empty());
    const auto again = decode_message(encode_message(*message));
    require(again && *again == *message);
}

}  // namespace

// The first two bytes are what a Get Virtual CXL Switch Info asked for, which decides how its response is
// read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
    try_message(bytes);
    for_each_command([&]<typename C>(C) {
        try_payload<typename C::Request>(bytes);
        try_payload<typename C::Response>(bytes);
    });
    GetVirtualSwitchInfoRequest asked;
    asked.first_vppb = data[0];
    asked.vppb_limit = data[1];
    try_payload(bytes, GetVirtualSwitchInfoResponse::answering(asked));
    return 0;
}
