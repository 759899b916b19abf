#include <algorithm>
#include <utility>
#include <variant>

#include "cxl-emul/switch/command_table.h"
#include "cxl-emul/switch/pci_function.h"

// MLD port command set (CXL 3.1, 7.6.7.3) without the tunnel: the FM's own accesses to an LD over CXL.io. LDs
// that a host has are the host's: only unbound ones can be reached, and the FM-owned LD.
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;

constexpr std::uint16_t kFmOwnedLd = 0xffff;

// The function that an access goes to, and whose commands its mailbox takes.
struct Function {
    PciFunction& pci;
    const Component& component;
    FunctionIdentity identity;
    bool media_ready;
    std::variant<DeviceContext, LdContext> context;
};

std::variant<Function, ReturnCode> find_function(SwitchModel& model, std::uint8_t port_id, std::uint16_t id) {
    const auto found = model.find_port(port_id);
    if (!found || !reachable_device(model.ports[*found])) return ReturnCode::kInvalidInput;
    const Port& port = model.ports[*found];
    Device& device = model.devices[*port.device];
    if (!device.is_mld()) return ReturnCode::kInvalidInput;
    if (port.perst_asserted) return ReturnCode::kRetryRequired;
    if (id == kFmOwnedLd)
        return Function{device.pci,
                        device,
                        {device.config.serial, {}},
                        true,
                        DeviceContext{model, *port.device, port.config.head}};
    if (id >= device.lds.size() || !device.config.is_at_head(id, port.config.head))
        return ReturnCode::kInvalidInput;
    Ld& ld = device.lds[id];
    if (ld.taken_by) return ReturnCode::kInvalidInput;
    return Function{ld.pci,
                    ld,
                    {device.config.ld_serial(id), ld.size},
                    ld.size.value != 0 && !ld.background.running,
                    LdContext{model, *port.device, id}};
}

Outcome ld_config(const SwitchContext& context, const fmapi::LdConfigRequest& request) {
    auto found = find_function(context.model, request.port, request.ld);
    if (const auto* refused = std::get_if<ReturnCode>(&found)) return refuse(*refused);
    auto& function = std::get<Function>(found);
    // As in the same command for a port's bridge.
    const fmapi::PpbConfigRequest access{.access = request.access};
    if (!access.is_write())
        return done(
            fmapi::LdConfigResponse{read_function_config(function.pci, function.identity, access.offset())});
    write_function_config(function.pci, access.offset(), request.write_data, access.byte_enable());
    return done(fmapi::LdConfigResponse{0});
}

// Which bytes of the `count` dwords are meant: the first and the last dword have enables of their own. PCIe
// (6.0, 2.2.5) wants both not to be empty when there are two or more.
class ByteEnables {
  public:
    ByteEnables(std::uint32_t access, std::size_t count)
        : first_(static_cast<std::uint8_t>(access >> 12 & 0xf)),
          last_(count == 1 ? first_ : static_cast<std::uint8_t>(access >> 16 & 0xf)),
          count_(count) {}
    [[nodiscard]] bool are_sound() const { return count_ == 1 || (first_ != 0 && last_ != 0); }
    [[nodiscard]] bool has(std::size_t byte) const {
        const std::size_t dword = byte / 4;
        const unsigned enables = dword == 0 ? first_ : dword == count_ - 1 ? last_ : 0xf;
        return (enables >> byte % 4 & 1) != 0;
    }

  private:
    std::uint8_t first_;
    std::uint8_t last_;
    std::size_t count_;
};

// Carries out what waits in the mailbox; gives back what it has started.
std::optional<Operation> ring(Function& function) {
    const MailboxCommand command = command_in(function.pci);
    const fmapi::Message request = fmapi::make_request(static_cast<fmapi::Opcode>(command.opcode), 0,
                                                       {command.payload.begin(), command.payload.end()});
    if (command.length > kMailboxPayload) {
        answer_in(function.pci, static_cast<std::uint16_t>(ReturnCode::kInvalidPayloadLength), false, {});
        return std::nullopt;
    }
    Answer answer =
        std::holds_alternative<LdContext>(function.context)
            ? handle_ld(std::get<LdContext>(function.context), fmapi::MctpType::kCci, request)
            : handle_device(std::get<DeviceContext>(function.context), fmapi::MctpType::kCci, request);
    if (answer.response.payload.size() > kMailboxPayload) {
        answer.response.return_code = ReturnCode::kInvalidInput;
        answer.response.payload.clear();
    }
    answer_in(function.pci, static_cast<std::uint16_t>(answer.response.return_code),
              answer.response.return_code == ReturnCode::kBackgroundStarted, answer.response.payload);
    return std::move(answer.started);
}

FunctionStatus status_of(const Function& function) {
    const Component::Background& background = function.component.background;
    return {.media_ready = function.media_ready,
            .background_opcode = static_cast<std::uint16_t>(background.opcode),
            .background_percent = static_cast<std::uint8_t>(background.percent),
            .background_code = static_cast<std::uint16_t>(background.running ? ReturnCode::kSuccess
                                                                             : background.return_code)};
}

// Whole dwords within the function's BAR, which must be enabled: what a real device would answer with an
// Unsupported Request is Invalid Input here.
Outcome ld_memory(const SwitchContext& context, const fmapi::LdMemoryRequest& request) {
    auto found = find_function(context.model, request.port, request.ld);
    if (const auto* refused = std::get_if<ReturnCode>(&found)) return refuse(*refused);
    auto& function = std::get<Function>(found);
    if (request.length == 0 || request.length > fmapi::kMaxLdMemoryTransfer || request.length % 4 != 0 ||
        request.address % 4 != 0)
        return refuse(ReturnCode::kInvalidInput);
    const std::uint64_t base = function.pci.register_base();
    if (!function.pci.memory_enabled() || request.address < base ||
        request.address - base > kRegisterSpace - request.length)
        return refuse(ReturnCode::kInvalidInput);
    const ByteEnables enables(request.access, request.length / 4U);
    if (!enables.are_sound()) return refuse(ReturnCode::kInvalidInput);

    const std::size_t offset = request.address - base;
    if (request.is_write()) {
        for (std::size_t i = 0; i < request.length; ++i)
            if (enables.has(i)) write_register(function.pci, offset + i, std::byte{request.write_data[i]});
        Outcome outcome = done(fmapi::LdMemoryResponse());
        if (doorbell_rung(function.pci)) outcome.started = ring(function);
        return outcome;
    }
    const std::vector<std::byte> registers = read_registers(function.pci, status_of(function));
    fmapi::LdMemoryResponse response;
    for (std::size_t i = 0; i < request.length; ++i)
        response.read_data.push_back(enables.has(i) ? std::to_integer<std::uint8_t>(registers[offset + i])
                                                    : std::uint8_t{0});
    return done(response);
}

constexpr Row<SwitchContext> kMldPortRows[] = {
    row<fmapi::SendLdConfigRequest, SwitchContext, ld_config>(),
    row<fmapi::SendLdMemoryRequest, SwitchContext, ld_memory>(),
};

}  // namespace

std::span<const Row<SwitchContext>> mld_port_commands() { return kMldPortRows; }

}  // namespace memtide::emul
