#include <random>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "cxl-emul/switch/commands.h"
#include "tests/cxl-emul/switch/invariants.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

// Whatever managers send, in whatever order operations end: the pure commands, without I/O.
namespace memtide::emul::test {
namespace {

using fmapi::MctpType;
using fmapi::Opcode;
using fmapi::ReturnCode;

class RandomManagers {
  public:
    explicit RandomManagers(unsigned seed) : random_(seed) {}

    void step() {
        if (!running_.empty() && number(3) == 0) {
            end_one();
            return;
        }
        switch (number(5)) {
            case 0:
                send_bind();
                break;
            case 1:
                send(Opcode::kUnbindVppb,
                     fmapi::encode(fmapi::UnbindVppbRequest{byte(3), byte(5), fmapi::UnbindOption{byte(4)}}));
                break;
            case 2:
                send_allocation();
                break;
            case 3:
                send_sanitize();
                break;
            default:
                send(Opcode::kPhysicalPortControl, fmapi::encode(fmapi::PhysicalPortControlRequest{
                                                       byte(6), fmapi::PortOperation{byte(4)}}));
        }
    }

    [[nodiscard]] const SwitchModel& model() const { return model_; }
    [[nodiscard]] int binds() const { return binds_; }

  private:
    unsigned number(unsigned below) { return static_cast<unsigned>(random_() >> 8) % below; }
    std::uint8_t byte(unsigned below) { return static_cast<std::uint8_t>(number(below)); }

    void send(Opcode opcode, fmapi::Payload payload) {
        const Answer answer =
            handle(model_, MctpType::kFmApi, fmapi::make_request(opcode, 0, std::move(payload)));
        if (answer.started) running_.push_back(*answer.started);
    }
    // Mostly a port with a device.
    std::uint8_t port() { return number(8) == 0 ? byte(6) : number(4) == 0 ? kSldPort : kMldPort; }
    void send_bind() {
        const std::uint8_t to = port();
        const std::uint16_t ld = to == kSldPort ? kWholePort : static_cast<std::uint16_t>(number(5));
        send(Opcode::kBindVppb, fmapi::encode(fmapi::BindVppbRequest{byte(2), byte(5), to, ld}));
    }
    void send_unbind() {
        send(Opcode::kUnbindVppb,
             fmapi::encode(fmapi::UnbindVppbRequest{byte(2), byte(5), fmapi::UnbindOption{byte(3)}}));
    }
    void send_port_control(fmapi::PortOperation operation) {
        send(Opcode::kPhysicalPortControl,
             fmapi::encode(fmapi::PhysicalPortControlRequest{port(), operation}));
    }
    void send_allocation() {
        fmapi::SetLdAllocationsPayload set{.first_ld = byte(5), .allocations = {}};
        for (unsigned i = 0; i < number(4); ++i) set.allocations.push_back({number(4), number(10) == 0});
        send_tunnel(port(), MctpType::kFmApi,
                    fmapi::make_request(Opcode::kSetLdAllocations, 0, fmapi::encode(set)));
    }
    void send_sanitize() {
        const fmapi::TunnelRequest to_ld{
            .id = byte(5),
            .target = fmapi::TunnelTarget::kLd,
            .type = MctpType::kCci,
            .command = fmapi::encode_message(fmapi::make_request(Opcode::kSanitize, 0))};
        if (number(3) == 0)
            send_tunnel(port(), MctpType::kCci, fmapi::make_request(Opcode::kSanitize, 0));
        else
            send_tunnel(port(), MctpType::kFmApi,
                        fmapi::make_request(Opcode::kTunnelManagementCommand, 0, fmapi::encode(to_ld)));
    }
    void send_tunnel(std::uint8_t port, MctpType type, const fmapi::Message& inner) {
        send(Opcode::kTunnelManagementCommand,
             fmapi::encode(fmapi::TunnelRequest{.id = port,
                                                .target = fmapi::TunnelTarget::kPort,
                                                .type = type,
                                                .command = fmapi::encode_message(inner)}));
    }
    void end_one() {
        const auto it = running_.begin() + number(static_cast<unsigned>(running_.size()));
        const bool success = number(4) != 0;
        if (success && std::holds_alternative<BindOperation>(*it)) ++binds_;
        finish(model_, *it, success ? ReturnCode::kSuccess : ReturnCode::kInternalError);
        running_.erase(it);
    }

    const Topology topology_ = parse_topology(test_topology("/media"), "test").value();
    SwitchModel model_{topology_.switches[0]};
    std::minstd_rand random_;
    std::vector<Operation> running_;
    int binds_ = 0;
};

TEST(SwitchModelProperty, NoMemoryIsEverReachableByTwoHosts) {
    int binds = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
        RandomManagers managers(seed);
        for (int i = 0; i < 500; ++i) {
            managers.step();
            ASSERT_EQ(broken_invariant(managers.model()), "") << "seed " << seed << " step " << i;
        }
        binds += managers.binds();
    }
    EXPECT_GT(binds, 200);  // or nothing was tested
}

}  // namespace
}  // namespace memtide::emul::test
