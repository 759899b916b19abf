// Byte for byte what the specification's tables say (CXL 3.1, 7.6.7 and 8.2.9.1).
#include <gtest/gtest.h>

#include "common/fmapi/commands.h"
#include "tests/common/fmapi/hex.h"
#include "tests/common/fmapi/samples.h"

namespace memtide::fmapi {
namespace {

using test::bytes;
using test::hex;

template <typename T>
void expect_golden(const T& value, std::string_view golden) {
    EXPECT_EQ(hex(encode(value)), golden) << T::kName;
    const auto decoded = decode<T>(bytes(golden));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, value) << T::kName;
}

TEST(GoldenBytes, IdentifyIsEighteenBytes) {
    expect_golden(
        IdentifyResponse{0x4d54, 0x0001, 0x4d55, 0x0002, 0x4d54000100000001, 12, ComponentType::kType3},
        "54 4d 01 00 55 4d 02 00 01 00 00 00 01 00 54 4d 0c 03");
}

TEST(GoldenBytes, BackgroundOperationStatusPutsThePercentageAboveTheRunningBit) {
    const BackgroundOperationStatusResponse half{BackgroundOperationStatusResponse::make_status(true, 50),
                                                 Opcode::kBindVppb, ReturnCode::kSuccess, 0x0a0b};
    EXPECT_TRUE(half.running());
    EXPECT_EQ(half.percent(), 50U);
    expect_golden(half, "65 00 01 52 00 00 0b 0a");
}

TEST(GoldenBytes, IdentifySwitchDeviceIsSeventyThreeBytes) {
    IdentifySwitchDeviceResponse response{1,      3,      2, test::ids({0, 1, 9}), test::ids({0, 255}),
                                          0x0108, 0x0203, 4};
    std::string golden = "01 00 03 02 03 02";
    for (int i = 2; i < 32; ++i) golden += " 00";
    golden += " 01";
    for (int i = 1; i < 31; ++i) golden += " 00";
    golden += " 80 08 01 03 02 04";
    expect_golden(response, golden);
}

TEST(GoldenBytes, GetPhysicalPortStateIsFourBytesAndSixteenAPort) {
    expect_golden(GetPhysicalPortStateRequest{{0, 2}}, "02 00 02");
    PhysicalPort port;
    port.port = 2;
    port.config_state = PortConfigState::kDownstream;
    port.device_mode = ConnectedDeviceMode::kCxl20;
    port.device_type = ConnectedDeviceType::kType3Mld;
    port.supported_cxl_modes = 0x02;
    port.max_link_width = 16;
    port.negotiated_link_width = 8;
    port.supported_link_speeds = 0x1f;
    port.max_link_speed = 5;
    port.current_link_speed = 4;
    port.ltssm_state = 4;
    port.first_lane = 3;
    port.link_flags = 0x0104;
    port.supported_lds = 16;
    expect_golden(GetPhysicalPortStateResponse{{port}},
                  "01 00 00 00 02 03 02 00 05 02 10 08 1f 05 04 04 03 04 01 10");
}

TEST(GoldenBytes, PhysicalPortControlIsTwoBytes) {
    expect_golden(PhysicalPortControlRequest{7, PortOperation::kResetPpb}, "07 02");
}

TEST(GoldenBytes, PpbConfigRequestPacksTheRegisterIntoThreeBytes) {
    const PpbConfigRequest write{2, PpbConfigRequest::make_access(0x104, true), 0xdeadbeef};
    EXPECT_TRUE(write.is_write());
    EXPECT_EQ(write.offset(), 0x104);
    EXPECT_EQ(write.byte_enable(), 0xf);
    expect_golden(write, "02 41 f0 80 ef be ad de");
    expect_golden(PpbConfigRequest{2, PpbConfigRequest::make_access(0xffc, false, 0x3), 0},
                  "02 ff 33 00 00 00 00 00");
    expect_golden(PpbConfigResponse{0x01020304}, "04 03 02 01");
}

TEST(GoldenBytes, GetVirtualSwitchInfoListsVcssWithTheirVppbs) {
    expect_golden(GetVirtualSwitchInfoRequest{0, 255, {0, 1}}, "00 ff 02 00 01");
    expect_golden(test::two_vcss(),
                  "02 00 00 00 00 01 00 02 03 02 01 00 00 ff ff 00 01 01 01 01 02 03 ff 00");
}

TEST(GoldenBytes, BindAndUnbindAreSixAndThreeBytes) {
    expect_golden(BindVppbRequest{1, 2, 3, 0x0104}, "01 02 03 00 04 01");
    expect_golden(BindVppbRequest{.vcs = 1, .vppb = 2, .port = 3}, "01 02 03 00 ff ff");
    expect_golden(UnbindVppbRequest{1, 2, UnbindOption::kSurpriseHotRemove}, "01 02 02");
}

TEST(GoldenBytes, TunnelsCarryTheSizeOfTheInnerMessageAndItsType) {
    expect_golden(TunnelRequest{2, TunnelTarget::kLd, MctpType::kCci, test::some_bytes(3)},
                  "02 01 03 00 08 01 02 03");
    expect_golden(TunnelResponse{MctpType::kCci, test::some_bytes(2)}, "02 00 08 00 01 02");
}

TEST(GoldenBytes, LdInfoIsElevenBytes) {
    expect_golden(GetLdInfoResponse{0x40000000, 4, 1}, "00 00 00 40 00 00 00 00 04 00 01");
}

TEST(GoldenBytes, LdAllocationsAreFourBytesAndSixteenAnLd) {
    expect_golden(GetLdAllocationsRequest{1, 3}, "01 03");
    expect_golden(GetLdAllocationsResponse{4, LdGranularity::k1GiB, 1, {{1, 0x0200}}},
                  "04 02 01 01 01 00 00 00 00 00 00 00 00 02 00 00 00 00 00 00");
    expect_golden(SetLdAllocationsPayload{2, {{3, 0}}},
                  "01 02 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
}

TEST(GoldenBytes, GenerateAerEventIsFortyBytes) {
    std::string golden = "01 02 00 00 01 00 00 80 09";
    for (int i = 1; i < 32; ++i) golden += " 00";
    expect_golden(GenerateAerEventRequest{1, 2, 0x80000001, {9}}, golden);
}

TEST(GoldenBytes, GetHealthInfoIsEighteenBytes) {
    const GetHealthInfoResponse response{.health_status = kReplacementNeeded,
                                         .media_status = MediaStatus::kDataLossImminent,
                                         .additional_status = 0x19,
                                         .life_used = 99,
                                         .temperature = -2,
                                         .dirty_shutdowns = 0x01020304,
                                         .corrected_volatile_errors = 5,
                                         .corrected_persistent_errors = 6};
    EXPECT_EQ(response.life_level(), HealthLevel::kWarning);
    EXPECT_EQ(response.temperature_level(), HealthLevel::kCritical);
    expect_golden(response, "04 09 19 63 fe ff 04 03 02 01 05 00 00 00 06 00 00 00");
}

TEST(GoldenBytes, IdentifyMemoryDeviceIsSixtyNineBytes) {
    IdentifyMemoryDeviceResponse response;
    response.firmware_revision = {'1', '.', '0'};
    response.total_capacity = 0x0104;
    response.volatile_only_capacity = 0x0103;
    response.persistent_only_capacity = 1;
    response.partition_alignment = 2;
    response.informational_events = 0x0a01;
    response.warning_events = 0x0a02;
    response.failure_events = 0x0a03;
    response.fatal_events = 0x0a04;
    response.lsa_size = 0x01020304;
    response.poison_list_max = 0x050607;
    response.inject_poison_limit = 0x0809;
    response.poison_handling = 3;
    response.qos_telemetry = 1;
    response.dynamic_capacity_events = 0x0b0c;
    EXPECT_EQ(response.total(), gibibytes(65));
    expect_golden(response,
                  "31 2e 30 00 00 00 00 00 00 00 00 00 00 00 00 00 "
                  "04 01 00 00 00 00 00 00 03 01 00 00 00 00 00 00 "
                  "01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 "
                  "01 0a 02 0a 03 0a 04 0a 04 03 02 01 07 06 05 09 08 03 01 0c 0b");
}

TEST(GoldenBytes, MultiHeadedInfoIsEightBytesAndOneAnLd) {
    expect_golden(GetMultiHeadedInfoRequest{1, 16}, "01 10");
    expect_golden(GetMultiHeadedInfoResponse{4, 2, 1, {0, 7, kNoHead}}, "04 02 00 00 01 03 00 00 00 07 ff");
}

TEST(GoldenBytes, HeadInfoIsFourBytesAndNineAHead) {
    expect_golden(GetHeadInfoRequest{1, 2}, "01 02");
    expect_golden(GetHeadInfoResponse{{HeadInfo{7, 16, 8, 0x1f, 5, 4, 4, 3, 1}}},
                  "01 00 00 00 07 10 08 1f 05 04 04 03 01");
}

TEST(GoldenBytes, ResponseMessageLimitIsOneByte) {
    expect_golden(ResponseMessageLimit{10}, "0a");
    expect_golden(SetResponseMessageLimitResponse{10}, "0a");
}

TEST(GoldenBytes, EventInterruptPolicyIsFiveBytesAndFourOfOlderComponents) {
    expect_golden(EventInterruptPolicy{0x01, 0x11, 0x02, 0x21, 0x31}, "01 11 02 21 31");
    const auto older = decode<EventInterruptPolicy>(bytes("01 11 02 21"));
    ASSERT_TRUE(older);
    EXPECT_EQ(older->dynamic_capacity, 0);
}

TEST(GoldenBytes, DomainValidationIsAStateOrAUuid) {
    expect_golden(DomainValidationStateResponse{DomainValidationState::kSet}, "01");
    expect_golden(DomainValidationVcsRequest{3}, "03");
    expect_golden(DomainValidationSecret{{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a,
                                          0x1b, 0x1c, 0x1d, 0x1e, 0x1f}},
                  "10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f");
}

TEST(GoldenBytes, RequestsToAnLdNameItBehindTheRegister) {
    expect_golden(LdConfigRequest{2, PpbConfigRequest::make_access(0x104, true), 0x0102, 0xdeadbeef},
                  "02 41 f0 80 02 01 00 00 ef be ad de");
    expect_golden(LdConfigResponse{0x01020304}, "04 03 02 01");
    expect_golden(LdMemoryRequest{2, 0x1f000, 0x0102, 8, 0x1122334455667788, {}},
                  "02 00 f0 01 02 01 08 00 88 77 66 55 44 33 22 11");
    expect_golden(LdMemoryRequest{2, LdMemoryRequest::kWrite | 0x1f000, 1, 4, 0x1000, {9, 8, 7, 6}},
                  "02 00 f0 81 01 00 04 00 00 10 00 00 00 00 00 00 09 08 07 06");
    expect_golden(LdMemoryResponse{{1, 2, 3}}, "03 00 00 00 01 02 03");
}

TEST(GoldenBytes, QosControlIsSevenBytes) {
    expect_golden(QosControl{0x03, 10, 25, 8, 0x0102, 64}, "03 0a 19 08 02 01 40");
    expect_golden(GetQosStatusResponse{99}, "63");
    expect_golden(QosFractionsRequest{4, 1}, "04 01");
    expect_golden(QosFractions{1, {0x80, 0x40}}, "02 01 80 40");
}

TEST(GoldenBytes, DcdInfoIsEightyFourBytes) {
    GetDcdInfoResponse info{.hosts = 4,
                            .regions = 2,
                            .selection_policies = 0x000f,
                            .removal_policies = 0x0003,
                            .sanitize_mask = 0x81,
                            .total_capacity = 0x0108};
    info.block_sizes[0] = 0x200000;
    info.block_sizes[7] = 0x40;
    const auto encoded = encode(info);
    EXPECT_EQ(encoded.size(), 84U);
    std::string golden =
        "04 02 00 00 0f 00 00 00 03 00 81 00 08 01 00 00 00 00 00 00 00 00 20 00 00 00 00 00";
    for (int i = 0; i < 48; ++i) golden += " 00";
    golden += " 40 00 00 00 00 00 00 00";
    expect_golden(info, golden);
}

TEST(GoldenBytes, DcRegionsAreFortyBytesBetweenAHeaderAndFourCounts) {
    const std::string region =
        "00 00 00 10 00 00 00 00 02 00 00 00 00 00 00 00 00 00 00 20 00 00 00 00 00 00 20 00 00 00 00 00 ";
    expect_golden(GetHostDcRegionConfigurationRequest{0x0102, 8, 1}, "02 01 08 01");
    expect_golden(
        GetHostDcRegionConfigurationResponse{
            .host = 0x0102,
            .available_regions = 2,
            .regions = {DcRegionConfiguration{0x10000000, 2, 0x20000000, 0x200000, 0x80, 1}},
            .supported_extents = 16,
            .available_extents = 15,
            .supported_tags = 8,
            .available_tags = 7},
        "02 01 02 01 " + region + "80 00 00 00 01 00 00 00 10 00 00 00 0f 00 00 00 08 00 00 00 07 00 00 00");
    expect_golden(SetDcRegionConfigurationRequest{3, 0x200000, 1},
                  "03 00 00 00 00 00 20 00 00 00 00 00 01 00 00 00");
    expect_golden(GetDynamicCapacityConfigurationRequest{8, 1}, "08 01");
    expect_golden(GetDynamicCapacityConfigurationResponse{.available_regions = 2,
                                                          .regions = {HostDcRegion{0x10000000, 2, 0x20000000,
                                                                                   0x200000, 0x0a0b, 1}},
                                                          .supported_extents = 16,
                                                          .available_extents = 15,
                                                          .supported_tags = 8,
                                                          .available_tags = 7},
                  "02 01 00 00 00 00 00 00 " + region +
                      "0b 0a 00 00 01 00 00 00 10 00 00 00 0f 00 00 00 08 00 00 00 07 00 00 00");
}

TEST(GoldenBytes, DcExtentsAreFortyBytes) {
    const std::string tag = "10 0f 0e 0d 0c 0b 0a 09 08 07 06 05 04 03 02 01 ";
    const std::string extent =
        "00 00 00 10 00 00 00 00 00 00 20 00 00 00 00 00 " + tag + "02 01 00 00 00 00 00 00";
    const DcExtent value{0x10000000, 0x200000, test::kSomeTag, 0x0102};
    expect_golden(GetDcRegionExtentListsRequest{1, 100, 2}, "01 00 00 00 64 00 00 00 02 00 00 00");
    expect_golden(GetDcRegionExtentListsResponse{1, 2, {value}, 4, 9},
                  "01 00 00 00 02 00 00 00 01 00 00 00 04 00 00 00 09 00 00 00 00 00 00 00 " + extent);
    expect_golden(
        InitiateDynamicCapacityAddRequest{1, DcSelection::kContiguous, 2, 0x200000, test::kSomeTag, {}},
        "01 00 01 02 00 00 20 00 00 00 00 00 " + tag + "00 00 00 00");
    expect_golden(InitiateDynamicCapacityReleaseRequest{1, 0x31, 0x200000, test::kSomeTag, {value}},
                  "01 00 31 00 00 00 20 00 00 00 00 00 " + tag + "01 00 00 00 " + extent);
    expect_golden(GetDynamicCapacityExtentListRequest{100, 2}, "64 00 00 00 02 00 00 00");
    expect_golden(GetDynamicCapacityExtentListResponse{{value}, 3, 9},
                  "01 00 00 00 03 00 00 00 09 00 00 00 00 00 00 00 " + extent);
    expect_golden(
        UpdatedDcExtents{{{0x10000000, 0x200000}}, 1},
        "01 00 00 00 01 00 00 00 00 00 00 10 00 00 00 00 00 00 20 00 00 00 00 00 00 00 00 00 00 00 00 00");
    expect_golden(DcReferenceRequest{test::kSomeTag}, tag.substr(0, tag.size() - 1));
}

TEST(GoldenBytes, TagsHaveTwoBitmapsOfHosts) {
    expect_golden(DynamicCapacityListTagsRequest{1, 2}, "01 00 00 00 02 00 00 00");
    std::string golden = "07 00 00 00 03 00 00 00 01 00 00 00 03 00 00 00 ";
    golden += "10 0f 0e 0d 0c 0b 0a 09 08 07 06 05 04 03 02 01 01 00 00 00 02";
    for (int i = 1; i < 32; ++i) golden += " 00";
    golden += " 04";
    for (int i = 1; i < 32; ++i) golden += " 00";
    expect_golden(DynamicCapacityListTagsResponse{7, 3, {DcTagInformation{test::kSomeTag, 1, {2}, {4}}}, 3},
                  golden);
}

TEST(GoldenBytes, PbrSwitchesNameTwelveBitPids) {
    expect_golden(IdentifyPbrSwitchResponse{0x0105, 1, 2, kRandomRouting},
                  "05 01 00 00 00 00 00 00 01 02 00 01");
    expect_golden(GetPidBindingRequest{1, 2}, "01 02");
    const std::string cost = "e8 03 00 00 00 00 00 00 96 00 40 00 00 00 00 00 00 00 90 01";
    expect_golden(GetPidBindingResponse{0x123, RouteCost{1000, 150, 64, 400}}, "23 01 00 00 " + cost);
    expect_golden(
        ConfigurePidBindingRequest{PidBindingOperation::kUnbind, 1, 2, 0x123, RouteCost{1000, 150, 64, 400}},
        "01 01 02 00 23 01 00 00 " + cost);
}

}  // namespace
}  // namespace memtide::fmapi
