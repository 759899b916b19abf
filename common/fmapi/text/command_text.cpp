#include "common/fmapi/text/command_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "common/base/hex.h"
#include "common/fmapi/text/payload_json.h"

namespace memtide::fmapi {
namespace {

// "Send PPB CXL.io Configuration Request": "send-ppb-cxl-io-configuration-request".
std::string word_of(std::string_view name) {
    std::string word;
    for (const char c : name)
        word.push_back(std::isalnum(static_cast<unsigned char>(c)) != 0
                           ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                           : '-');
    return word;
}

template <Described T>
Result<boost::json::object> payload_to_json(std::span<const std::byte> bytes, T initial = {}) {
    auto decoded = decode_keeping<T>(bytes, std::move(initial));
    if (!decoded) return std::unexpected(std::move(decoded).error());
    boost::json::object object = to_json(decoded->payload);
    if (!decoded->trailing.empty()) object["trailing"] = to_hex(decoded->trailing);
    return object;
}

template <typename C>
Result<Payload> encode_request(const boost::json::object& fields) {
    const boost::json::value whole(fields);
    const json::Reader reader(whole);
    const auto request = from_json<typename C::Request>(reader.root().object());
    if (auto ok = reader.check(json::Reader::Unknown::kRefused); !ok)
        return std::unexpected(std::move(ok).error());
    return encode(request);
}

template <typename C>
Result<boost::json::object> request_to_json(std::span<const std::byte> payload) {
    return payload_to_json<typename C::Request>(payload);
}

template <typename C>
Result<boost::json::object> response_to_json(std::span<const std::byte> request,
                                             std::span<const std::byte> response) {
    using Request = typename C::Request;
    using Response = typename C::Response;
    if constexpr (requires(Request asked) { Response::answering(asked); }) {
        if (const auto asked = decode<Request>(request))
            return payload_to_json<Response>(response, Response::answering(*asked));
    }
    return payload_to_json<Response>(response);
}

template <Described T>
std::vector<FieldText> fields_of();

template <typename Member>
void describe_member(FieldText& text) {
    if constexpr (Described<Member> && !std::same_as<Member, IdBitmap>)
        text.inner = fields_of<Member>();
    else if constexpr (std::is_enum_v<Member>)
        for (const ValueName& row : kValueNames<Member>) text.values.push_back(row.name);
}
void add_field(std::vector<FieldText>&, const Reserved&) {}
template <typename T, typename M>
void add_field(std::vector<FieldText>& fields, const Field<T, M>& f) {
    auto& text = fields.emplace_back(FieldText{std::string(f.name), detail::fixed_size(f), false, {}, {}});
    describe_member<M>(text);
}
template <typename T, typename E, typename C>
void add_field(std::vector<FieldText>&, const CountField<T, E, C>&) {}
template <typename T, typename E>
void add_field(std::vector<FieldText>& fields, const ListField<T, E>& f) {
    auto& text = fields.emplace_back(FieldText{std::string(f.name), detail::member_size<E>(), true, {}, {}});
    describe_member<E>(text);
}
template <Described T>
std::vector<FieldText> fields_of() {
    std::vector<FieldText> fields;
    std::apply([&](const auto&... f) { (add_field(fields, f), ...); }, T::fields);
    return fields;
}

template <typename... C>
std::vector<CommandText> texts_of(std::tuple<C...>) {
    return {CommandText{.opcode = C::kOpcode,
                        .name = C::kName,
                        .word = word_of(C::kName),
                        .traits = C::kTraits,
                        .encode_request = encode_request<C>,
                        .request_to_json = request_to_json<C>,
                        .response_to_json = response_to_json<C>,
                        .request_fields = fields_of<typename C::Request>,
                        .response_fields = fields_of<typename C::Response>}...};
}

bool equal_but_for_case(std::string_view a, std::string_view b) {
    return std::ranges::equal(
        a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// A switch has devices and these have LDs: two tunnels, one in the other. Whoever sends many more of them in
// each other, which a message has room for, has the rest told in hexadecimal.
constexpr unsigned kMaxTunnels = 4;

boost::json::object message_to_json(const Message& message, const Message* request, unsigned tunnels);

// What a tunnel carries, as a message of its own.
void add_inner(boost::json::object& payload, std::string_view field, std::span<const std::byte> bytes,
               const Message* request, unsigned tunnels) {
    if (tunnels == kMaxTunnels) return;
    const auto inner = decode_message(bytes);
    if (!inner) {
        payload["error"] = inner.error().message;
        return;
    }
    payload.erase(field);
    payload["message"] = message_to_json(*inner, request, tunnels + 1);
}

void open_tunnel(boost::json::object& payload, const Message& message, const Message* request,
                 unsigned tunnels) {
    if (!message.is_response) {
        if (const auto tunnel = decode<TunnelRequest>(message.payload))
            add_inner(payload, "command", tunnel->command, nullptr, tunnels);
        return;
    }
    const auto tunnel = decode<TunnelResponse>(message.payload);
    if (!tunnel) return;
    std::optional<Message> inner_request;
    if (request != nullptr)
        if (const auto asked = decode<TunnelRequest>(request->payload))
            if (auto inner = decode_message(asked->command)) inner_request = *std::move(inner);
    add_inner(payload, "response", tunnel->response, inner_request ? &*inner_request : nullptr, tunnels);
}

void add_payload(boost::json::object& object, const Message& message, const Message* request,
                 unsigned tunnels) {
    const bool refused = message.is_response && message.return_code != ReturnCode::kSuccess;
    if (refused && message.payload.empty()) return;
    const CommandText* const command = find_command(message.opcode);
    if (command == nullptr || refused) {
        object["payload_hex"] = to_hex(message.payload);
        return;
    }
    auto payload = message.is_response
                       ? command->response_to_json(
                             request != nullptr ? std::span(request->payload) : std::span<const std::byte>(),
                             message.payload)
                       : command->request_to_json(message.payload);
    if (!payload) {
        object["payload_hex"] = to_hex(message.payload);
        object["error"] = payload.error().message;
        return;
    }
    if (message.opcode == Opcode::kTunnelManagementCommand) open_tunnel(*payload, message, request, tunnels);
    object["payload"] = *std::move(payload);
}

boost::json::object message_to_json(const Message& message, const Message* request, unsigned tunnels) {
    // Some peers answer with opcode 0; what was asked says what it is.
    Message named = message;
    if (named.is_response && named.opcode == Opcode{} && request != nullptr) named.opcode = request->opcode;
    boost::json::object object{{"kind", message.is_response ? "response" : "request"},
                               {"tag", message.tag},
                               {"opcode", fmt::format("{:04x}", static_cast<unsigned>(message.opcode))},
                               {"command", name_of(named.opcode)}};
    if (message.is_response) {
        object["return_code"] = to_string(message.return_code);
        if (message.background) object["background"] = true;
        if (message.vendor_status != 0) object["vendor_status"] = message.vendor_status;
    }
    add_payload(object, named, request, tunnels);
    return object;
}

}  // namespace

std::span<const CommandText> command_texts() {
    static const std::vector<CommandText> texts = texts_of(Commands{});
    return texts;
}

const CommandText* find_command(Opcode opcode) {
    const auto row = std::ranges::lower_bound(command_texts(), opcode, {}, &CommandText::opcode);
    return row != command_texts().end() && row->opcode == opcode ? &*row : nullptr;
}

const CommandText* find_command(std::string_view text) {
    for (const CommandText& command : command_texts())
        if (equal_but_for_case(text, command.word) || equal_but_for_case(text, command.name)) return &command;
    const auto opcode = parse_opcode(text);
    return opcode ? find_command(*opcode) : nullptr;
}

Result<Opcode> parse_opcode(std::string_view text) {
    std::string_view digits = text;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
    if (digits.ends_with('h')) digits.remove_suffix(1);
    std::uint16_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + digits.size())
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is not an opcode: four hexadecimal digits, as 5201", text));
    return static_cast<Opcode>(value);
}

boost::json::object to_json(const Message& message, const Message* request) {
    return message_to_json(message, request, 0);
}

}  // namespace memtide::fmapi
