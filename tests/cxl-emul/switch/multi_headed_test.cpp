// A device with heads at two switches: each has its own LDs, and all is one device.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/switch/commands.h"
#include "cxl-emul/switch/topology.h"
#include "tests/cxl-emul/switch/manager.h"

namespace memtide::emul::test {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint8_t kPort = 2;

std::string text_of(const std::string& device,
                    const std::string& second_port = "{id: 2, device: mhd0, head: 1}") {
    return fmt::format(R"(name: test
switches:
  - name: switch0
    listen: ["tcp://127.0.0.1:0"]
    ports: [{{id: 0, host: host0}}, {{id: 2, device: mhd0, head: 0}}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 4}}]
    devices: []
  - name: switch1
    listen: ["tcp://127.0.0.1:0"]
    ports: [{{id: 0, host: host1}}, {}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 4}}]
    devices: []
multi_headed_devices:
  - {{name: mhd0, serial: 0x100, {}}}
)",
                       second_port, device);
}
const std::string kMld =
    text_of("kind: mld, size: 1GiB, heads: 2, lds: [256MiB, 256MiB, 256MiB, 0], ld_heads: [0, 0, 1, 1]");
const std::string kSld = text_of("kind: sld, size: 768MiB, heads: 2, lds: [256MiB, 512MiB]");

// Both switches as plain data; commands go through their tunnels.
class MultiHeaded : public testing::Test {
  protected:
    void start(const std::string& text) {
        topology = parse_topology(text, "test.yaml").value();
        for (const DeviceConfig& device : topology.multi_headed) shared[device.name] = make_device(device);
        for (const SwitchConfig& config : topology.switches) switches.emplace_back(config, shared);
    }
    fmapi::Message at_switch(std::size_t n, const fmapi::Message& request) {
        Answer answer = handle(switches[n], fmapi::MctpType::kFmApi, request);
        if (answer.started) finish(switches[n], *answer.started, ReturnCode::kSuccess);
        return answer.response;
    }
    static fmapi::Message tunnelled(std::uint8_t id, fmapi::TunnelTarget target, fmapi::MctpType type,
                                    const fmapi::Message& inside) {
        return fmapi::make_request(
            Opcode::kTunnelManagementCommand, 0,
            fmapi::encode(fmapi::TunnelRequest{id, target, type, fmapi::encode_message(inside)}));
    }
    static fmapi::Message opened(const fmapi::Message& answer) {
        return fmapi::decode_message(fmapi::decode<fmapi::TunnelResponse>(answer.payload).value().response)
            .value();
    }
    template <typename Command>
    fmapi::Message at_head(std::size_t n, const typename Command::Request& request = {}) {
        const fmapi::Message inside = fmapi::make_request(Command::kOpcode, 0, fmapi::encode(request));
        return opened(
            at_switch(n, tunnelled(kPort, fmapi::TunnelTarget::kPort, fmapi::MctpType::kFmApi, inside)));
    }
    // Empty when the head does not let it through.
    template <typename Command>
    std::optional<fmapi::Message> at_ld(std::size_t n, std::uint8_t ld) {
        const fmapi::Message inside = fmapi::make_request(Command::kOpcode, 0, {});
        const fmapi::Message answer = opened(
            at_switch(n, tunnelled(kPort, fmapi::TunnelTarget::kPort, fmapi::MctpType::kFmApi,
                                   tunnelled(ld, fmapi::TunnelTarget::kLd, fmapi::MctpType::kCci, inside))));
        if (answer.return_code != ReturnCode::kSuccess) return std::nullopt;
        return opened(answer);
    }
    ReturnCode bind(std::size_t n, std::uint8_t vppb, std::uint16_t ld) {
        return at_switch(n, fmapi::make_request(Opcode::kBindVppb, 0,
                                                fmapi::encode(fmapi::BindVppbRequest{0, vppb, kPort, ld})))
            .return_code;
    }
    ReturnCode allocate(std::size_t n, std::uint8_t first, std::vector<std::uint64_t> units) {
        fmapi::SetLdAllocationsPayload request;
        request.first_ld = first;
        for (const std::uint64_t one : units) request.allocations.push_back({one, 0});
        return at_head<fmapi::SetLdAllocations>(n, request).return_code;
    }
    std::string complaint(const std::string& text) {
        const auto read = parse_topology(text, "test.yaml");
        return read ? "" : read.error().message;
    }

    Topology topology;
    SharedDevices shared;
    std::vector<SwitchModel> switches;
};

TEST_F(MultiHeaded, EveryHeadTellsOfTheSameDevice) {
    start(kMld);
    for (const std::size_t n : {0U, 1U}) {
        const auto info =
            Manager::decode_success<fmapi::GetMultiHeadedInfoResponse>(at_head<fmapi::GetMultiHeadedInfo>(n));
        EXPECT_EQ(info.total_lds, 4);
        EXPECT_EQ(info.heads, 2);
        EXPECT_THAT(info.ld_map, ElementsAre(0, 0, 1, 1));
        const auto identity = Manager::decode_success<fmapi::IdentifyResponse>(at_head<fmapi::Identify>(n));
        EXPECT_EQ(identity.serial, 0x100U);
        const auto heads =
            Manager::decode_success<fmapi::GetHeadInfoResponse>(at_head<fmapi::GetHeadInfo>(n, {0, 2}));
        ASSERT_EQ(heads.heads.size(), 2U);
        EXPECT_EQ(heads.heads[1].port_number, 1);
        EXPECT_EQ(heads.heads[1].negotiated_link_width, 16);
    }
}

TEST_F(MultiHeaded, LdMapIsListedFromWhereItIsAskedFor) {
    start(kMld);
    const auto part = Manager::decode_success<fmapi::GetMultiHeadedInfoResponse>(
        at_head<fmapi::GetMultiHeadedInfo>(0, {1, 2}));
    EXPECT_EQ(part.first_ld, 1);
    EXPECT_THAT(part.ld_map, ElementsAre(0, 1));
    EXPECT_EQ((at_head<fmapi::GetMultiHeadedInfo>(0, {4, 1}).return_code), ReturnCode::kInvalidInput);
    EXPECT_EQ((at_head<fmapi::GetMultiHeadedInfo>(0, {0, 0}).return_code), ReturnCode::kInvalidInput);
    EXPECT_EQ((at_head<fmapi::GetHeadInfo>(0, {1, 2}).return_code), ReturnCode::kInvalidInput);
}

TEST_F(MultiHeaded, LdPoolIsReachedThroughAnyHeadAndHasNoTunnel) {
    for (const std::string& text : {kMld, kSld}) {
        switches.clear();
        shared.clear();
        start(text);
        const auto in_pool = [&](std::size_t n, const fmapi::Message& inside) {
            return opened(opened(at_switch(
                n, tunnelled(kPort, fmapi::TunnelTarget::kPort, fmapi::MctpType::kFmApi,
                             tunnelled(7, fmapi::TunnelTarget::kLdPool, fmapi::MctpType::kCci, inside)))));
        };
        for (const std::size_t n : {0U, 1U}) {
            const auto ask = fmapi::make_request(Opcode::kGetMultiHeadedInfo, 0,
                                                 fmapi::encode(fmapi::GetMultiHeadedInfoRequest{}));
            EXPECT_EQ(Manager::decode_success<fmapi::GetMultiHeadedInfoResponse>(in_pool(n, ask)).heads, 2);
            const auto deeper = tunnelled(0, fmapi::TunnelTarget::kLdPool, fmapi::MctpType::kCci, ask);
            EXPECT_EQ(in_pool(n, deeper).return_code, ReturnCode::kUnsupported);
        }
    }
}

TEST_F(MultiHeaded, QualityOfServiceIsChangedThroughTheLdsOwnHeadOnly) {
    start(kMld);
    const auto allocate_bandwidth = [&](std::size_t n, std::uint8_t ld) {
        return at_head<fmapi::SetQosAllocatedBandwidth>(n, {ld, {64}}).return_code;
    };
    EXPECT_EQ(allocate_bandwidth(0, 1), ReturnCode::kSuccess);
    EXPECT_EQ(allocate_bandwidth(0, 2), ReturnCode::kInvalidInput);
    EXPECT_EQ(allocate_bandwidth(1, 2), ReturnCode::kSuccess);
    EXPECT_THAT(
        Manager::decode_success<fmapi::QosFractions>(at_head<fmapi::GetQosAllocatedBandwidth>(0)).fractions,
        ElementsAre(0, 64, 64, 0));
}

TEST_F(MultiHeaded, LdAnswersThroughItsOwnHeadOnly) {
    start(kMld);
    EXPECT_TRUE(at_ld<fmapi::Identify>(0, 1));
    EXPECT_FALSE(at_ld<fmapi::Identify>(1, 1));
    EXPECT_TRUE(at_ld<fmapi::Identify>(1, 2));
    EXPECT_FALSE(at_ld<fmapi::Sanitize>(0, 2));
}

TEST_F(MultiHeaded, LdIsBoundThroughItsOwnHeadOnly) {
    start(kMld);
    EXPECT_EQ(bind(1, 0, 0), ReturnCode::kInvalidInput);
    EXPECT_EQ(bind(0, 0, 0), ReturnCode::kBackgroundStarted);
    EXPECT_EQ(bind(1, 0, 2), ReturnCode::kBackgroundStarted);
    EXPECT_TRUE(shared.begin()->second->lds[0].taken_by);
    EXPECT_TRUE(shared.begin()->second->lds[2].taken_by);
}

TEST_F(MultiHeaded, MemoryThatOneHeadTakesIsGoneForTheOther) {
    start(kMld);
    EXPECT_EQ(allocate(0, 2, {2}), ReturnCode::kInvalidInput) << "an LD of the other head";
    EXPECT_EQ(allocate(1, 3, {1}), ReturnCode::kSuccess);
    EXPECT_EQ(allocate(0, 1, {2}), ReturnCode::kResourcesExhausted);
    const auto seen =
        Manager::decode_success<fmapi::GetLdAllocationsResponse>(at_head<fmapi::GetLdAllocations>(0));
    EXPECT_EQ(seen.allocations.at(3).range1, 1U);
}

TEST_F(MultiHeaded, SwitchThatIsPoweredAgainHasOnlyItsOwnHeadUnbound) {
    start(kMld);
    bind(0, 0, 0);
    bind(1, 0, 2);
    switches[0] = SwitchModel(topology.switches[0], shared);
    EXPECT_FALSE(shared.begin()->second->lds[0].taken_by);
    EXPECT_TRUE(shared.begin()->second->lds[2].taken_by);
}

TEST_F(MultiHeaded, HeadOfAnSldIsBoundAsAWholeAndHasItsOwnLd) {
    start(kSld);
    const auto memory =
        Manager::decode_success<fmapi::IdentifyMemoryDeviceResponse>(at_head<fmapi::IdentifyMemoryDevice>(1));
    EXPECT_EQ(memory.total(), mebibytes(512));
    EXPECT_EQ(bind(1, 0, 1), ReturnCode::kInvalidInput);
    EXPECT_EQ(bind(1, 0, 0xffff), ReturnCode::kBackgroundStarted);
    EXPECT_TRUE(shared.begin()->second->lds[1].taken_by);
    EXPECT_FALSE(shared.begin()->second->lds[0].taken_by);
    EXPECT_EQ(topology.multi_headed[0].ld_serial(1).value, 0x102U);
}

TEST_F(MultiHeaded, DeviceWithOneHeadDoesNotKnowTheCommands) {
    start(R"(name: test
switches:
  - name: switch0
    listen: ["tcp://127.0.0.1:0"]
    ports: [{id: 0, host: host0}, {id: 2, device: mld0}]
    vcss: [{id: 0, upstream_port: 0, vppbs: 4}]
    devices: [{name: mld0, kind: mld, serial: 0x100, size: 256MiB, lds: [256MiB]}]
)");
    EXPECT_EQ(at_head<fmapi::GetMultiHeadedInfo>(0).return_code, ReturnCode::kUnsupported);
    EXPECT_EQ(at_head<fmapi::GetHeadInfo>(0).return_code, ReturnCode::kUnsupported);
}

TEST_F(MultiHeaded, TopologySaysWhatIsWrongWithHeads) {
    const std::string device = "kind: mld, size: 1GiB, heads: 2, lds: [256MiB, 256MiB]";
    EXPECT_THAT(complaint(text_of(device, "{id: 2, device: mhd0, head: 0}")),
                HasSubstr("a port of head 0 of device mhd0 is there already"));
    EXPECT_THAT(complaint(text_of(device, "{id: 2}")), HasSubstr("no port has head 1 of device mhd0"));
    EXPECT_THAT(complaint(text_of(device, "{id: 2, device: mhd0, head: 2}")),
                HasSubstr("device \"mhd0\" has heads 0 to 1"));
    EXPECT_THAT(complaint(text_of(device, "{id: 2, device: mhd0}")), HasSubstr("head"));
    EXPECT_THAT(complaint(text_of("kind: mld, size: 1GiB, heads: 1, lds: [256MiB]")),
                HasSubstr("must be a whole number from 2 to 16"));
    EXPECT_THAT(complaint(text_of(device + ", ld_heads: [0]")), HasSubstr("names heads of 1 LDs"));
    EXPECT_THAT(complaint(text_of(device + ", ld_heads: [0, 2]")), HasSubstr("test.yaml"));
    EXPECT_THAT(complaint(text_of("kind: sld, size: 1GiB, heads: 2, lds: [256MiB]")),
                HasSubstr("as many LDs, this has 1"));
}

TEST_F(MultiHeaded, ExampleTopologyIsGood) {
    const auto example = load_topology(MEMTIDE_CONFIG "/topologies/two-switches-one-mhd.yaml");
    ASSERT_TRUE(example) << example.error().message;
    EXPECT_EQ(example->multi_headed.size(), 1U);
    EXPECT_EQ(example->switches[1].devices.size(), 1U);
}

}  // namespace
}  // namespace memtide::emul::test
