#include "cxl-emul/faults/fault_plan.h"

#include <gtest/gtest.h>

#include "common/fmapi/commands.h"
#include "cxl-emul/faults/read_fault.h"
#include "cxl-emul/switch/commands.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;

class Plan : public ::testing::Test {
  protected:
    std::shared_ptr<ActiveFault> begin(const std::string& text) {
        Fault fault = parse_fault(text, "f", &topology_).value();
        FaultPlace place = place_of(fault, topology_).value();
        auto active = std::make_shared<ActiveFault>(std::move(fault), std::move(place), 1);
        plan_.add(active);
        return active;
    }
    // The switch's answer as the plan lets it out.
    Disturbance::Delivery deliver(const fmapi::MctpMessage& request) {
        const auto refusal = plan_.refuse(request);
        return plan_.deliver(request,
                             {fmapi::reply_route(request.route), request.type,
                              refusal ? *refusal : handle(model_, request.type, request.message).response},
                             {});
    }
    fmapi::Message answer(const fmapi::MctpMessage& request) {
        fmapi::PacketAssembler assembler;
        for (const Disturbance::Piece& piece : deliver(request).pieces) assembler.feed(piece.bytes);
        auto next = assembler.next();
        EXPECT_TRUE(next && *next);
        return next && *next ? (*next)->message : fmapi::Message{};
    }
    static fmapi::MctpMessage request(Opcode opcode, fmapi::Payload payload = {}) {
        return {{.tag = 1}, fmapi::MctpType::kFmApi, fmapi::make_request(opcode, 7, std::move(payload))};
    }
    static fmapi::MctpMessage to_port(std::uint8_t port, const fmapi::Message& inner,
                                      fmapi::MctpType type = fmapi::MctpType::kFmApi) {
        return request(Opcode::kTunnelManagementCommand,
                       fmapi::encode(fmapi::TunnelRequest{.id = port,
                                                          .target = fmapi::TunnelTarget::kPort,
                                                          .type = type,
                                                          .command = fmapi::encode_message(inner)}));
    }
    static fmapi::MctpMessage to_ld(std::uint8_t port, std::uint8_t ld, const fmapi::Message& inner) {
        return to_port(port, fmapi::make_request(Opcode::kTunnelManagementCommand, 8,
                                                 fmapi::encode(fmapi::TunnelRequest{
                                                     .id = ld,
                                                     .target = fmapi::TunnelTarget::kLd,
                                                     .type = fmapi::MctpType::kCci,
                                                     .command = fmapi::encode_message(inner)})));
    }
    // The answer inside that many tunnels.
    static fmapi::Message unwrap(fmapi::Message outer, int levels) {
        while (levels-- > 0) {
            EXPECT_EQ(outer.return_code, ReturnCode::kSuccess);
            const auto tunnel = fmapi::decode<fmapi::TunnelResponse>(outer.payload);
            if (!tunnel) return {};
            outer = fmapi::decode_message(tunnel->response).value();
        }
        return outer;
    }

    Topology topology_ = parse_topology(test_topology("/tmp"), "topology.yaml").value();
    SwitchModel model_{topology_.switches[0]};
    FaultPlan plan_{topology_.switches[0]};
};

TEST_F(Plan, WithoutFaultsAnAnswerIsAsItIs) {
    const auto asked = request(Opcode::kIdentifySwitchDevice);
    const Disturbance::Delivery delivery = deliver(asked);
    ASSERT_EQ(delivery.pieces.size(), 1U);
    EXPECT_FALSE(delivery.hang_up);
    EXPECT_EQ(delivery.pieces[0].bytes,
              fmapi::to_packets({fmapi::reply_route(asked.route), asked.type,
                                 handle(model_, asked.type, asked.message).response}));
}

TEST_F(Plan, AnErrorIsForItsCommandAndItsNumberOfTimes) {
    const auto active =
        begin("{fault: error, opcode: identify-switch-device, code: busy, skip: 1, times: 2}");
    EXPECT_EQ(answer(request(Opcode::kIdentify)).return_code, ReturnCode::kSuccess);
    for (const ReturnCode code :
         {ReturnCode::kSuccess, ReturnCode::kBusy, ReturnCode::kBusy, ReturnCode::kSuccess})
        EXPECT_EQ(answer(request(Opcode::kIdentifySwitchDevice)).return_code, code);
    EXPECT_EQ(active->hits(), 2U);
    EXPECT_TRUE(active->exhausted());
}

TEST_F(Plan, AnErrorReachesACommandInsideTunnels) {
    begin("{fault: error, opcode: sanitize, code: internal-error}");
    const fmapi::Message inner = unwrap(answer(to_ld(2, 0, fmapi::make_request(Opcode::kSanitize, 9))), 2);
    EXPECT_EQ(inner.opcode, Opcode::kSanitize);
    EXPECT_EQ(inner.tag, 9);
    EXPECT_EQ(inner.return_code, ReturnCode::kInternalError);
    EXPECT_FALSE(model_.devices[0].lds[0].background.running);
}

TEST_F(Plan, SilenceSendsNothingAndTheCommandIsCarriedOut) {
    begin("{fault: silence, opcode: bind-vppb}");
    fmapi::BindVppbRequest bind;
    bind.port = 2;
    bind.ld = 0;
    EXPECT_TRUE(deliver(request(Opcode::kBindVppb, fmapi::encode(bind))).pieces.empty());
    EXPECT_TRUE(model_.devices[0].lds[0].taken_by);
    EXPECT_FALSE(deliver(request(Opcode::kIdentify)).pieces.empty());
    EXPECT_FALSE(plan_.swallows_notification());
    begin("{fault: silence}");
    EXPECT_TRUE(plan_.swallows_notification());
}

TEST_F(Plan, LateAndDrippingAnswersAreWhole) {
    begin("{fault: late, delay: 3s}");
    begin("{fault: drip, delay: 1ms}");
    const Disturbance::Delivery delivery = deliver(request(Opcode::kIdentify));
    ASSERT_EQ(delivery.pieces.size(), fmapi::kPacketSize);
    EXPECT_EQ(delivery.pieces[0].after, std::chrono::milliseconds(3001));
    EXPECT_EQ(delivery.pieces[1].after, std::chrono::milliseconds(1));
    EXPECT_EQ(answer(request(Opcode::kIdentify)).opcode, Opcode::kIdentify);
}

TEST_F(Plan, AWrongTagIsWrongInTheMessageAndInThePackets) {
    begin("{fault: wrong-tag}");
    const auto bytes = deliver(request(Opcode::kIdentify)).pieces.at(0).bytes;
    fmapi::PacketAssembler assembler;
    assembler.feed(bytes);
    const auto next = assembler.next();
    ASSERT_TRUE(next && *next);
    EXPECT_NE((*next)->message.tag, 7);
    EXPECT_NE((*next)->route.tag, 1);
}

TEST_F(Plan, AHangUpSendsTheBeginningAndCloses) {
    begin("{fault: hang-up, bytes: 10}");
    const Disturbance::Delivery delivery = deliver(request(Opcode::kIdentify));
    ASSERT_EQ(delivery.pieces.size(), 1U);
    EXPECT_EQ(delivery.pieces[0].bytes.size(), 10U);
    EXPECT_TRUE(delivery.hang_up);
}

TEST_F(Plan, AReorderWaitsForAnAnswerOfSeveralPackets) {
    const auto active = begin("{fault: reorder, times: 1}");
    EXPECT_EQ(answer(request(Opcode::kIdentify)).return_code, ReturnCode::kSuccess);
    EXPECT_EQ(active->hits(), 0U);
    const auto ports = fmapi::encode(fmapi::GetPhysicalPortStateRequest{{0, 1, 2, 3, 4}});
    (void)deliver(request(Opcode::kGetPhysicalPortState, ports));
    EXPECT_EQ(active->hits(), 1U);
}

TEST_F(Plan, ALyingDeviceSaysSoEverywhereAndTheOthersDoNot) {
    begin("{fault: lying-device, device: mld0, serial: 0x99, lds: 2, ld_size: 512MiB, capacity: 8GiB}");
    const auto identity = [&](const fmapi::MctpMessage& asked, int levels) {
        return fmapi::decode<fmapi::IdentifyResponse>(unwrap(answer(asked), levels).payload).value().serial;
    };
    const fmapi::Message identify = fmapi::make_request(Opcode::kIdentify, 1);
    EXPECT_EQ(identity(request(Opcode::kIdentify), 0), 0x5357U);
    EXPECT_EQ(identity(to_port(2, identify), 1), 0x99U);
    EXPECT_EQ(identity(to_ld(2, 1, identify), 2), 0x9bU);
    EXPECT_EQ(identity(to_port(3, identify, fmapi::MctpType::kCci), 1), 0x50U);
    const auto info = fmapi::decode<fmapi::GetLdInfoResponse>(
        unwrap(answer(to_port(2, fmapi::make_request(Opcode::kGetLdInfo, 1))), 1).payload);
    EXPECT_EQ(info.value().ld_count, 2U);
    EXPECT_EQ(info.value().memory_size, gibibytes(8).value);
    const auto all = fmapi::decode<fmapi::GetLdAllocationsResponse>(
        unwrap(answer(to_port(2, fmapi::make_request(Opcode::kGetLdAllocations, 1))), 1).payload);
    EXPECT_EQ(all.value().total_lds, 2);
    ASSERT_EQ(all.value().allocations.size(), 2U);
    EXPECT_EQ(all.value().allocations[0].range1, 2U);
    const auto memory = fmapi::decode<fmapi::IdentifyMemoryDeviceResponse>(
        unwrap(answer(to_ld(2, 0, fmapi::make_request(Opcode::kIdentifyMemoryDevice, 1))), 2).payload);
    EXPECT_EQ(memory.value().total(), mebibytes(512));
}

TEST_F(Plan, TheCourseOfAnOperationIsThatOfItsFaults) {
    begin("{fault: slow-operation, operation: sanitize, delay: 2s}");
    begin("{fault: failing-operation, operation: sanitize, code: permanent-media-failure, skip: 1}");
    begin("{fault: erase-does-nothing, device: sld0}");
    const auto stuck = begin("{fault: stuck-operation, operation: unbind}");
    const Disturbance::Course first = plan_.course_of(model_, SanitizeOperation{0, 0});
    EXPECT_EQ(first.longer, std::chrono::seconds(2));
    EXPECT_FALSE(first.ends_with);
    EXPECT_TRUE(first.erases);
    const Disturbance::Course second = plan_.course_of(model_, SanitizeOperation{1, 0});
    EXPECT_EQ(second.ends_with, ReturnCode::kPermanentMediaFailure);
    EXPECT_FALSE(second.erases);
    model_.bridge({0, 0}) = {VirtualBridge::State::kUnbinding, 2, 0, std::nullopt};
    const Disturbance::Course unbind = plan_.course_of(model_, UnbindOperation{{0, 0}, {}});
    EXPECT_EQ(unbind.longer.count(), 0);
    ASSERT_TRUE(unbind.held);
    EXPECT_TRUE(*unbind.held);
    stuck->end();
    EXPECT_FALSE(*unbind.held);
}

// What the fault of this seed did to a hundred answers.
std::vector<std::vector<std::byte>> recorded(const std::string& kind, std::uint64_t seed) {
    const Topology topology = parse_topology(test_topology("/tmp"), "topology.yaml").value();
    SwitchModel model(topology.switches[0]);
    FaultPlan plan(topology.switches[0]);
    Fault fault = parse_fault("{fault: " + kind + ", probability: 0.5, seed: " + std::to_string(seed) + "}",
                              "f", &topology)
                      .value();
    FaultPlace place = place_of(fault, topology).value();
    plan.add(std::make_shared<ActiveFault>(std::move(fault), std::move(place), 1));
    std::vector<std::vector<std::byte>> sent;
    const fmapi::MctpMessage asked{
        {},
        fmapi::MctpType::kFmApi,
        fmapi::make_request(Opcode::kGetPhysicalPortState, 0,
                            fmapi::encode(fmapi::GetPhysicalPortStateRequest{{0, 1, 2, 3, 4}}))};
    for (int i = 0; i < 100; ++i) {
        const auto refusal = plan.refuse(asked);
        const Disturbance::Delivery delivery = plan.deliver(
            asked, {{}, asked.type, refusal ? *refusal : handle(model, asked.type, asked.message).response},
            {});
        sent.emplace_back();
        for (const auto& piece : delivery.pieces)
            sent.back().insert(sent.back().end(), piece.bytes.begin(), piece.bytes.end());
    }
    return sent;
}

TEST(PlanProperty, TheSameSeedDoesTheSameToTheSameAnswers) {
    for (const std::string kind :
         {"error", "silence", "corrupt", "truncate", "reorder", "duplicate", "wrong-tag", "hang-up"}) {
        EXPECT_EQ(recorded(kind, 11), recorded(kind, 11)) << kind;
        EXPECT_NE(recorded(kind, 11), recorded(kind, 12)) << kind;
    }
}

}  // namespace
}  // namespace memtide::emul::test
