// Every command's request and response decoded from arbitrary bytes: an error or a value that encodes to
// bytes that decode to the same value.
#include <algorithm>
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
    // What came behind the last field is kept as it came.
    const auto kept = decode_keeping<T>(bytes, initial);
    require(kept && kept->payload == *first);
    require(std::ranges::equal(kept->trailing, bytes.last(kept->trailing.size())));
}

void try_message(std::span<const std::byte> bytes, const HeaderForm& form) {
    const auto message = decode_message(bytes, form);
    if (!message) {
        require(message.error().code == memtide::ErrorCode::kProtocol && !message.error().message.empty());
        return;
    }
    require(!to_string(*message).empty());
    const auto encoded = encode_message(*message, form);
    require(message_size(encoded, form) == encoded.size() && encoded.size() <= bytes.size());
    const auto again = decode_message(encoded, form);
    require(again && *again == *message);
    if (message->is_response) return;
    const auto code = static_cast<ReturnCode>(message->vendor_status);
    const Message answer = make_response(*message, code);
    require(answer.tag == message->tag && answer.background == (code == ReturnCode::kBackgroundStarted));
    const auto answered = decode_message(encode_message(answer, form), form);
    require(answered && *answered == answer);
    (void)error_code_of(code);
}

}  // namespace

// The first two bytes are what a Get Virtual CXL Switch Info asked for, which decides how its response is
// read.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
    try_message(bytes, {});
    try_message(bytes, {.category_in_high_nibble = true, .background_in_low_bit = true});
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
