// Whatever managers send to the emulated switch, and in whatever order its background operations end: each
// request gets an answer, and no memory becomes reachable by two hosts.
//
// First byte: 0 = the rest is a byte stream of MCTP packets; otherwise the rest is a list of steps, each
// u8 kind (see Steps), u16 opcode, u8 length, payload.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/log/log.h"
#include "cxl-emul/switch/commands.h"
#include "cxl-emul/switch/topology.h"
#include "tests/cxl-emul/switch/invariants.h"

using namespace memtide;
using namespace memtide::emul;
using fmapi::MctpType;

namespace {

const SwitchConfig& switch_config() {
    static const Topology topology = parse_topology(R"(
name: fuzz
switches:
  - name: switch0
    listen: ["tcp://127.0.0.1:0"]
    pbr: {}
    ports: [{id: 0, host: a}, {id: 1, host: b}, {id: 2, device: mld0}, {id: 3, device: sld0}, {id: 4, device: dcd0},
            {id: 5}]
    vcss: [{id: 0, upstream_port: 0, vppbs: 3}, {id: 1, upstream_port: 1, vppbs: 3}]
    devices:
      - {name: mld0, kind: mld, serial: 0x100, size: 1GiB, lds: [256MiB, 256MiB, 0, 0]}
      - {name: sld0, kind: sld, serial: 0x50, size: 256MiB}
      - name: dcd0
        kind: dcd
        serial: 0x200
        hosts: 3
        extents: 16
        tags: 4
        regions:
          - {size: 256MiB, block: 64MiB}
          - {size: 256MiB, block: 64MiB, shareable: true, sanitize: false}
)",
                                                    "fuzz.yaml")
                                         .value();
    return topology.switches[0];
}

class Machine {
  public:
    void request(MctpType type, const fmapi::Message& message) {
        Answer answer = handle(model_, type, message);
        if (!answer.response.is_response || answer.response.tag != message.tag ||
            answer.response.opcode != message.opcode)
            give_up("the answer is not this request's");
        if (answer.started) running_.push_back(*answer.started);
        check();
        erase_released();
    }
    void end_operation(std::uint8_t which, bool well) {
        if (running_.empty()) return;
        const auto it = running_.begin() + which % static_cast<std::ptrdiff_t>(running_.size());
        const Operation operation = *it;
        running_.erase(it);
        finish(model_, operation, well ? fmapi::ReturnCode::kSuccess : fmapi::ReturnCode::kInternalError);
        check();
    }

  private:
    [[noreturn]] static void give_up(const std::string& why) {
        std::fprintf(stderr, "%s\n", why.c_str());
        std::abort();
    }
    void erase_released() {
        for (std::size_t i = 0; i < model_.devices.size(); ++i) {
            if (!model_.devices[i].dynamic) continue;
            DynamicCapacity& memory = model_.devices[i].dynamic->memory;
            while (const auto range = memory.take_dirty()) memory.erased(*range, true);
        }
    }
    void check() const {
        if (const auto fault = test::broken_invariant(model_); !fault.empty()) give_up(fault);
        if (running_.size() > 1 + 8) give_up("more operations than components");
    }

    SwitchModel model_{switch_config()};
    std::vector<Operation> running_;
};

void run_stream(std::span<const std::byte> bytes) {
    Machine machine;
    fmapi::PacketAssembler assembler;
    assembler.feed(bytes);
    std::uint8_t count = 0;
    for (auto next = assembler.next(); next && *next; next = assembler.next()) {
        if ((*next)->message.is_response) continue;
        machine.request((*next)->type, (*next)->message);
        if (++count % 3 == 0) machine.end_operation(count, count % 2 == 0);
    }
}

fmapi::Message tunnel(std::uint8_t id, fmapi::TunnelTarget target, MctpType type,
                      const fmapi::Message& inner) {
    return fmapi::make_request(
        fmapi::Opcode::kTunnelManagementCommand, 1,
        fmapi::encode(fmapi::TunnelRequest{
            .id = id, .target = target, .type = type, .command = fmapi::encode_message(inner)}));
}

// Requests with the frames around them already right, so that the fuzzer reaches the handlers.
void run_steps(std::span<const std::byte> bytes) {
    Machine machine;
    while (bytes.size() >= 4) {
        const auto at = [&](std::size_t i) { return std::to_integer<std::uint8_t>(bytes[i]); };
        const std::uint8_t kind = at(0);
        const auto opcode = static_cast<fmapi::Opcode>(at(1) | at(2) << 8);
        const std::size_t length = std::min<std::size_t>(at(3), bytes.size() - 4);
        const auto payload = bytes.subspan(4, length);
        bytes = bytes.subspan(4 + length);
        const auto message = fmapi::make_request(opcode, kind, {payload.begin(), payload.end()});
        const auto id = static_cast<std::uint8_t>(kind >> 3 & 7);
        switch (kind & 7) {
            case 0:
            case 1:
                machine.request(MctpType::kFmApi, message);
                break;
            case 2:
                machine.request(MctpType::kFmApi,
                                tunnel(id, fmapi::TunnelTarget::kPort, MctpType::kFmApi, message));
                break;
            case 3:
                machine.request(MctpType::kFmApi,
                                tunnel(id, fmapi::TunnelTarget::kPort, MctpType::kCci, message));
                break;
            case 4:
            case 5:
                machine.request(MctpType::kFmApi,
                                tunnel(2, fmapi::TunnelTarget::kPort, MctpType::kFmApi,
                                       tunnel(id, fmapi::TunnelTarget::kLd, MctpType::kCci, message)));
                break;
            case 6:
                machine.end_operation(id, true);
                break;
            default:
                machine.end_operation(id, false);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const bool quiet = (log::set_level(log::Level::kError), true);
    (void)quiet;
    const auto bytes = std::as_bytes(std::span(data, size));
    if (bytes.empty()) return 0;
    if (bytes[0] == std::byte{0})
        run_stream(bytes.subspan(1));
    else
        run_steps(bytes.subspan(1));
    return 0;
}
