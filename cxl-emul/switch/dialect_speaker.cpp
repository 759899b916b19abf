#include "cxl-emul/switch/dialect_speaker.h"

#include <utility>

#include "common/fmapi/commands/mld.h"
#include "common/fmapi/mctp_control.h"

namespace memtide::emul {
namespace {

using fmapi::Message;
using fmapi::Opcode;
using fmapi::ReturnCode;

void shorten_identify(fmapi::Payload& payload, std::size_t length) {
    constexpr std::size_t kWithoutSubsystem = 14;
    constexpr std::ptrdiff_t kSubsystemAt = 4;
    constexpr std::ptrdiff_t kSubsystemSize = 4;
    if (payload.size() <= length) return;
    if (length == kWithoutSubsystem)
        payload.erase(payload.begin() + kSubsystemAt, payload.begin() + kSubsystemAt + kSubsystemSize);
    payload.resize(length);
}

}  // namespace

std::optional<fmapi::MctpMessage> DialectSpeaker::answer_control(const fmapi::MctpMessage& request) {
    auto answer = fmapi::answer_control(request.message.payload, eid_);
    if (!answer) return std::nullopt;
    fmapi::MctpMessage out;
    out.route = fmapi::reply_route(request.route);
    out.type = fmapi::MctpType::kControl;
    out.message.payload = *std::move(answer);
    return out;
}

std::optional<Message> DialectSpeaker::shape(const Message& request, Message answer) {
    if (answer.return_code == ReturnCode::kSuccess && request.opcode == Opcode::kIdentify)
        shorten_identify(answer.payload, dialect_.identify_length);
    if (answer.return_code == ReturnCode::kSuccess && request.opcode == Opcode::kIdentifySwitchDevice &&
        answer.payload.size() < dialect_.identify_switch_length)
        answer.payload.resize(dialect_.identify_switch_length);
    if (dialect_.silent_about_unknown) {
        if (answer.return_code == ReturnCode::kUnsupported) return std::nullopt;
        if (request.opcode == Opcode::kTunnelManagementCommand) {
            auto tunnelled = fmapi::decode<fmapi::TunnelResponse>(answer.payload);
            const auto inner = tunnelled ? fmapi::decode_message(tunnelled->response)
                                         : Result<Message>(fail(ErrorCode::kProtocol, "nothing inside"));
            if (inner && inner->return_code == ReturnCode::kUnsupported && !last_tunnelled_.empty())
                answer.payload = last_tunnelled_;
            else if (inner)
                last_tunnelled_ = answer.payload;
        }
    }
    if (dialect_.opcode_zero_in_responses) answer.opcode = Opcode{};
    return answer;
}

}  // namespace memtide::emul
