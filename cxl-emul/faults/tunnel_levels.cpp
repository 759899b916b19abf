#include "cxl-emul/faults/tunnel_levels.h"

#include <utility>

#include "common/fmapi/commands.h"

namespace memtide::emul {
namespace {

constexpr std::size_t kMostLevels = 4;

std::optional<TunnelLevel> inside(const TunnelLevel& outer) {
    if (outer.request.opcode != fmapi::Opcode::kTunnelManagementCommand) return std::nullopt;
    const auto tunnel = fmapi::decode<fmapi::TunnelRequest>(outer.request.payload);
    if (!tunnel) return std::nullopt;
    auto inner = fmapi::decode_message(tunnel->command);
    if (!inner || inner->is_response) return std::nullopt;
    TunnelLevel level{tunnel->type, *std::move(inner), outer.port, outer.ld};
    // A switch tunnels to its ports, what is behind one of them to its LDs.
    if (!outer.port)
        level.port = tunnel->id;
    else
        level.ld = tunnel->id;
    return level;
}

}  // namespace

std::vector<TunnelLevel> levels_of(const fmapi::MctpMessage& request) {
    std::vector<TunnelLevel> levels{{request.type, request.message, std::nullopt, std::nullopt}};
    while (levels.size() < kMostLevels) {
        auto next = inside(levels.back());
        if (!next) break;
        levels.push_back(*std::move(next));
    }
    return levels;
}

fmapi::Message refused_at(const std::vector<TunnelLevel>& levels, std::size_t level, fmapi::ReturnCode code) {
    fmapi::Message answer = fmapi::make_response(levels[level].request, code);
    while (level-- > 0) {
        const fmapi::TunnelResponse tunnel{.type = levels[level + 1].type,
                                           .response = fmapi::encode_message(answer)};
        answer =
            fmapi::make_response(levels[level].request, fmapi::ReturnCode::kSuccess, fmapi::encode(tunnel));
    }
    return answer;
}

void change_innermost(const std::vector<TunnelLevel>& levels, fmapi::Message& answer,
                      const std::function<void(const TunnelLevel&, fmapi::Message&)>& change) {
    std::vector<fmapi::Message> answers{answer};
    while (answers.size() < levels.size()) {
        if (answers.back().return_code != fmapi::ReturnCode::kSuccess) return;
        const auto tunnel = fmapi::decode<fmapi::TunnelResponse>(answers.back().payload);
        if (!tunnel) return;
        auto inner = fmapi::decode_message(tunnel->response);
        if (!inner) return;
        answers.push_back(*std::move(inner));
    }
    change(levels.back(), answers.back());
    while (answers.size() > 1) {
        const fmapi::TunnelResponse tunnel{.type = levels[answers.size() - 1].type,
                                           .response = fmapi::encode_message(answers.back())};
        answers.pop_back();
        answers.back().payload = fmapi::encode(tunnel);
    }
    answer = std::move(answers.back());
}

}  // namespace memtide::emul
