#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "common/fmapi/commands.h"
#include "cxl-emul/switch/commands.h"
#include "cxl-emul/switch/model.h"

// How components describe their commands: a table with a row for each, whose handler gets the decoded
// request. Only for the files that implement commands.
namespace memtide::emul {

// What a handler says; the dispatcher makes the response of it.
struct Outcome {
    fmapi::ReturnCode code = fmapi::ReturnCode::kSuccess;
    fmapi::Payload payload;
    std::optional<Operation> started;
};

inline Outcome refuse(fmapi::ReturnCode code) { return {code, {}, std::nullopt}; }
inline Outcome done() { return {}; }
template <fmapi::Described Response>
Outcome done(const Response& response) {
    return {fmapi::ReturnCode::kSuccess, fmapi::encode(response), std::nullopt};
}
// Marks the component's background operation as running.
Outcome start(Component& component, fmapi::Opcode opcode, Operation operation, bool can_abort);

// Whose commands these are. Each can name its component.
struct SwitchContext {
    SwitchModel& model;
    [[nodiscard]] Component& component() const { return model; }
    [[nodiscard]] EventLogs& events() const { return model.events; }
    [[nodiscard]] static bool has_event_log(fmapi::EventLog log) { return log <= fmapi::EventLog::kFatal; }
};
struct DeviceContext {  // the FM-owned LD of an MLD, or what a head of a multi-headed device shows
    SwitchModel& model;
    std::size_t index;
    std::uint8_t head = 0;
    bool is_pool = false;  // the LD pool CCI of a multi-headed device
    [[nodiscard]] Device& device() const { return model.devices[index]; }
    [[nodiscard]] Component& component() const { return device(); }
    // Of a DCD, like those of its LDs.
    [[nodiscard]] DcdState& dynamic() const { return device().dynamic.value(); }
    [[nodiscard]] EventLogs& events() const { return dynamic().events; }
    [[nodiscard]] static bool has_event_log(fmapi::EventLog log) {
        return log <= fmapi::EventLog::kDynamicCapacity;
    }
};
struct LdContext {  // an LD of an MLD, or an SLD
    SwitchModel& model;
    std::size_t device_index;
    std::size_t index;
    [[nodiscard]] Device& device() const { return model.devices[device_index]; }
    [[nodiscard]] Ld& ld() const { return device().lds[index]; }
    [[nodiscard]] Component& component() const { return ld(); }
    [[nodiscard]] DcdState& dynamic() const { return device().dynamic.value(); }
    [[nodiscard]] EventLogs& events() const { return dynamic().host_events[index]; }
    [[nodiscard]] static bool has_event_log(fmapi::EventLog log) {
        return log <= fmapi::EventLog::kDynamicCapacity;
    }
};

template <typename Context>
struct Row {
    fmapi::Opcode opcode;
    Outcome (*run)(const Context&, std::span<const std::byte>);
};

// Whether the payload is what `request` is encoded as, no byte more, and none less but the fields of an
// optional tail, which managers of an older revision do not send.
template <fmapi::Described Request>
bool has_exact_length(const Request& request, std::span<const std::byte> payload) {
    const std::size_t whole = fmapi::encode(request).size();
    return payload.size() == whole ||
           (payload.size() < whole && fmapi::is_optional_tail<Request>(whole - payload.size()));
}

// row<fmapi::BindVppb, bind>(), where `Outcome bind(const SwitchContext&, const fmapi::BindVppbRequest&)`.
template <typename Command, auto kHandler, typename Context>
Outcome run_row(const Context& context, std::span<const std::byte> payload) {
    const auto request = fmapi::decode<typename Command::Request>(payload);
    if (!request || !has_exact_length(*request, payload))
        return refuse(fmapi::ReturnCode::kInvalidPayloadLength);
    return kHandler(context, *request);
}
template <typename Command, typename Context, auto kHandler>
constexpr Row<Context> row() {
    return {Command::kOpcode, &run_row<Command, kHandler, Context>};
}

// Commands of every component; Identify is each component's own.
std::optional<Outcome> run_common_command(Component& component, const fmapi::Message& request);

// Whether a response with a payload of this size is one that the component may send.
bool fits_response_limit(const Component& component, std::size_t payload_size);

Answer make_answer(const Component& component, const fmapi::Message& request, Outcome outcome);

template <typename Context>
Answer dispatch(const Context& context, std::span<const Row<Context>> table, const fmapi::Message& request) {
    Component& component = context.component();
    if (auto common = run_common_command(component, request))
        return make_answer(component, request, *std::move(common));
    for (const Row<Context>& candidate : table)
        if (candidate.opcode == request.opcode)
            return make_answer(component, request, candidate.run(context, request.payload));
    return make_answer(component, request, refuse(fmapi::ReturnCode::kUnsupported));
}

// Carries the request inside a tunnel to `target`, which answers it; Invalid Input when it holds no request.
template <typename Target>
Outcome tunnel(const fmapi::TunnelRequest& request, Target&& target) {
    const auto inner = fmapi::decode_message(request.command);
    if (!inner || inner->is_response || fmapi::kHeaderSize + inner->payload.size() != request.command.size())
        return refuse(fmapi::ReturnCode::kInvalidInput);
    Answer answer = target(request.type, *inner);
    Outcome outcome =
        done(fmapi::TunnelResponse{.type = request.type, .response = fmapi::encode_message(answer.response)});
    outcome.started = std::move(answer.started);
    return outcome;
}

// The tables, by file.
std::span<const Row<SwitchContext>> domain_validation_commands();
std::span<const Row<SwitchContext>> event_commands();
std::span<const Row<SwitchContext>> mld_port_commands();
std::span<const Row<SwitchContext>> pbr_commands();
std::span<const Row<SwitchContext>> physical_switch_commands();
std::span<const Row<SwitchContext>> virtual_switch_commands();

// Of a multi-headed device, for the table of devices.
Outcome multi_headed_info(const DeviceContext& context, const fmapi::GetMultiHeadedInfoRequest& request);
Outcome head_info(const DeviceContext& context, const fmapi::GetHeadInfoRequest& request);

// Quality of service, for the tables of MLDs.
Outcome qos_control(const DeviceContext& context, const fmapi::NoPayload& request);
Outcome set_qos_control(const DeviceContext& context, const fmapi::QosControl& request);
Outcome qos_status(const DeviceContext& context, const fmapi::NoPayload& request);
Outcome allocated_bandwidth(const DeviceContext& context, const fmapi::QosFractionsRequest& request);
Outcome set_allocated_bandwidth(const DeviceContext& context, const fmapi::QosFractions& request);
Outcome bandwidth_limit(const DeviceContext& context, const fmapi::QosFractionsRequest& request);
Outcome set_bandwidth_limit(const DeviceContext& context, const fmapi::QosFractions& request);

// The vPPB with these ids.
std::optional<VppbId> find_vppb(const SwitchModel& model, std::uint8_t vcs, std::uint8_t vppb);
// Of a dynamic capacity device and of its LDs, for the same, beside what others have: null when the opcode is
// none of theirs.
const Row<DeviceContext>* find_dcd_command(fmapi::Opcode opcode);
const Row<LdContext>* find_dcd_ld_command(fmapi::Opcode opcode);

// The FM-owned LD of an MLD or a head, an LD or an SLD.
Answer handle_device(const DeviceContext& context, fmapi::MctpType type, const fmapi::Message& request);
Answer handle_ld(const LdContext& context, fmapi::MctpType type, const fmapi::Message& request);

}  // namespace memtide::emul
