#include "fabric-manager/fmapi/tunnel.h"

#include <utility>

#include <fmt/format.h>

namespace memtide::fm {
namespace {

using fmapi::MctpType;
using fmapi::Message;
using fmapi::Opcode;
using fmapi::ReturnCode;
using fmapi::TunnelTarget;

// Command sets 51h and up are the FM API's; everything else a device is asked is its own CCI.
MctpType type_for(Opcode opcode) {
    return static_cast<unsigned>(opcode) >= 0x5100 ? MctpType::kFmApi : MctpType::kCci;
}

// The inner tag is free to choose: there is one message in a tunnel.
constexpr std::uint8_t kInnerTag = 0;

Message tunnel(std::uint8_t id, TunnelTarget target, const Message& inside) {
    fmapi::TunnelRequest request;
    request.id = id;
    request.target = target;
    request.type = type_for(inside.opcode);
    request.command = fmapi::encode_message(inside);
    return fmapi::make_request(Opcode::kTunnelManagementCommand, kInnerTag, fmapi::encode(request));
}

Result<Message> open_tunnel(std::string_view where, Opcode asked, const Message& answer) {
    if (answer.return_code != ReturnCode::kSuccess)
        return fail(error_code_of(answer.return_code),
                    fmt::format("tunnel to {}: {}", where, to_string(answer.return_code)));
    const auto payload = fmapi::decode<fmapi::TunnelResponse>(answer.payload);
    if (!payload)
        return std::unexpected(Error(payload.error()).with_context(fmt::format("tunnel to {}", where)));
    auto inside = fmapi::decode_message(payload->response);
    if (!inside)
        return std::unexpected(std::move(inside.error()).with_context(fmt::format("tunnel to {}", where)));
    const bool answers = inside->is_response && inside->tag == kInnerTag &&
                         (inside->opcode == asked || inside->opcode == Opcode{});
    if (!answers)
        return fail(ErrorCode::kProtocol,
                    fmt::format("tunnel to {}: what came back is not the answer to {}: {}", where,
                                fmapi::to_string(asked), to_string(*inside)));
    return inside;
}

}  // namespace

Message wrap(const Target& target, Message request) {
    if (!target.port) return request;
    if (target.ld) request = tunnel(*target.ld, TunnelTarget::kLd, request);
    return tunnel(*target.port, TunnelTarget::kPort, request);
}

Result<Message> unwrap(const Target& target, const Message& request, Message answer) {
    if (!target.port) return answer;
    const Opcode in_port_tunnel = target.ld ? Opcode::kTunnelManagementCommand : request.opcode;
    auto inside = open_tunnel(to_string(Target::device(*target.port)), in_port_tunnel, answer);
    if (!inside || !target.ld) return inside;
    return open_tunnel(to_string(target), request.opcode, *inside);
}

boost::asio::awaitable<Result<Message>> exchange_with(std::shared_ptr<Session> session, Target target,
                                                      Ask ask) {
    const Message request = fmapi::make_request(ask.opcode, kInnerTag, std::move(ask.payload));
    Message outer = wrap(target, request);
    ask.opcode = outer.opcode;
    ask.payload = std::move(outer.payload);
    auto answer = co_await Session::exchange(session, std::move(ask));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    auto inside = unwrap(target, request, std::move(*answer));
    if (!inside)
        co_return std::unexpected(std::move(inside.error()).with_context("switch at " + session->address()));
    co_return inside;
}

}  // namespace memtide::fm
