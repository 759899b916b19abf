#include <limits>

#include "cxl-emul/switch/command_table.h"

// What every component answers (CXL 3.1, 8.2.9.1).
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;

struct ComponentContext {
    Component& component;
};

Outcome background_status(const ComponentContext& context, const fmapi::NoPayload&) {
    const Component::Background& background = context.component.background;
    return done(fmapi::BackgroundOperationStatusResponse{
        .status =
            fmapi::BackgroundOperationStatusResponse::make_status(background.running, background.percent),
        .opcode = background.opcode,
        .return_code = background.running ? ReturnCode::kSuccess : background.return_code,
        .vendor_status = 0});
}

Outcome get_response_limit(const ComponentContext& context, const fmapi::NoPayload&) {
    return done(fmapi::ResponseMessageLimit{context.component.response_limit});
}

Outcome set_response_limit(const ComponentContext& context, const fmapi::ResponseMessageLimit& request) {
    if (request.limit < kSmallestResponseLimit || request.limit > kLargestMessage)
        return refuse(ReturnCode::kInvalidInput);
    context.component.response_limit = request.limit;
    return done(fmapi::SetResponseMessageLimitResponse{request.limit});
}

// An operation that has ended meanwhile is no mistake of the one who asks: Success, as QEMU's device does.
Outcome request_abort(const ComponentContext& context, const fmapi::NoPayload&) {
    Component::Background& background = context.component.background;
    if (!background.running) return done();
    if (!background.can_abort) return refuse(ReturnCode::kUnsupported);
    background.abort_requested = true;
    return done();
}

constexpr Row<ComponentContext> kComponentRows[] = {
    row<fmapi::BackgroundOperationStatus, ComponentContext, background_status>(),
    row<fmapi::GetResponseMessageLimit, ComponentContext, get_response_limit>(),
    row<fmapi::SetResponseMessageLimit, ComponentContext, set_response_limit>(),
    row<fmapi::RequestAbortBackgroundOperation, ComponentContext, request_abort>(),
};

}  // namespace

std::optional<Outcome> run_common_command(Component& component, const fmapi::Message& request) {
    for (const auto& candidate : kComponentRows)
        if (candidate.opcode == request.opcode) return candidate.run({component}, request.payload);
    return std::nullopt;
}

Outcome start(Component& component, fmapi::Opcode opcode, Operation operation, bool can_abort) {
    component.background = {.running = true, .percent = 0, .opcode = opcode, .can_abort = can_abort};
    return {ReturnCode::kBackgroundStarted, {}, operation};
}

bool fits_response_limit(const Component& component, std::size_t payload_size) {
    return fmapi::kHeaderSize + payload_size <= std::size_t{1} << component.response_limit;
}

Answer make_answer(const Component& component, const fmapi::Message& request, Outcome outcome) {
    // The requester asked for more entries than one message can carry.
    if (!fits_response_limit(component, outcome.payload.size())) {
        outcome.code = ReturnCode::kInvalidInput;
        outcome.payload.clear();
    }
    return {fmapi::make_response(request, outcome.code, std::move(outcome.payload)),
            std::move(outcome.started)};
}

}  // namespace memtide::emul
