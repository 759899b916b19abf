// Commands as people type and read them. What a peer sent, told as JSON, is what it takes to type it again;
// what was typed is refused with a reason or becomes a payload that is told as it was typed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "common/fmapi/text/command_text.h"
#include "common/json/json.h"
#include "common/json/write.h"

using namespace memtide::fmapi;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void check_fields(const std::vector<FieldText>& fields) {
    for (const FieldText& field : fields) {
        require(!field.name.empty() && (field.width != 0 || !field.inner.empty()));
        check_fields(field.inner);
    }
}

bool texts_are_sound() {
    for (const CommandText& command : command_texts()) {
        check_fields(command.request_fields());
        check_fields(command.response_fields());
        require(find_command(command.word) == &command && find_command(command.name) == &command);
        require(find_command(command.opcode) == &command);
    }
    return true;
}

void try_bytes(const CommandText& command, std::span<const std::byte> bytes) {
    (void)command.response_to_json({}, bytes);
    auto told = command.request_to_json(bytes);
    if (!told) return require(!told.error().message.empty());
    told->erase("trailing");
    const auto typed = command.encode_request(*told);
    require(typed.has_value());
    const auto again = command.request_to_json(*typed);
    require(again && *again == *told);
}

// Fields that contradict each other make a payload that cannot be read; they can be typed on purpose.
void try_typed(const CommandText& command, std::string_view text) {
    const auto value = memtide::json::parse(text);
    if (!value || !value->is_object()) return;
    const auto payload = command.encode_request(value->get_object());
    if (!payload) return require(!payload.error().message.empty());
    if (command.request_to_json(*payload)) try_bytes(command, *payload);
}

void try_name(std::string_view text) {
    const auto opcode = parse_opcode(text);
    if (!opcode) return require(!opcode.error().message.empty());
    const CommandText* const found = find_command(text);
    require(found == find_command(*opcode) && (found == nullptr || found->opcode == *opcode));
}

// A request and what answers it, one behind the other.
void try_messages(std::span<const std::byte> bytes) {
    const auto first = decode_message(bytes);
    if (!first) return;
    require(!memtide::json::write(to_json(*first)).empty());
    const auto second = decode_message(bytes.subspan(kHeaderSize + first->payload.size()));
    if (second) require(!memtide::json::write(to_json(*second, &*first)).empty());
}

}  // namespace

// The first byte chooses the command.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool sound = texts_are_sound();
    if (!sound || size == 0) return 0;
    const CommandText& command = command_texts()[data[0] % command_texts().size()];
    const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
    const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
    try_bytes(command, bytes);
    try_typed(command, text);
    try_name(text);
    try_messages(bytes);
    return 0;
}
