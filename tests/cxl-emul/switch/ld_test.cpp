#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;

class LogicalDevice : public OverBothTransports {
  protected:
    const fmapi::Message sanitize_ = fmapi::make_request(Opcode::kSanitize, 0);
};
INSTANTIATE_TEST_SUITE_P(, LogicalDevice, both_transports(), transport_name);

TEST_P(LogicalDevice, ErasesItsSliceAndNothingElse) {
    const std::string media = switch_.media_file("mld0");
    const std::uint64_t quarter = mebibytes(256).value;
    write_file(media, quarter - 6, "before");
    write_file(media, quarter, "secret at the start");
    write_file(media, quarter + 100'000'000, "secret in the middle");
    write_file(media, 2 * quarter - 6, "secret");
    write_file(media, 2 * quarter, "behind");
    EXPECT_EQ(manager_.call_ld(kMldPort, 1, sanitize_).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager_.wait_for_ld(kMldPort, 1), ReturnCode::kSuccess);
    EXPECT_EQ(read_file(media, quarter - 6, 6), "before");
    EXPECT_EQ(read_file(media, quarter, 19), std::string(19, '\0'));
    EXPECT_EQ(read_file(media, quarter + 100'000'000, 20), std::string(20, '\0'));
    EXPECT_EQ(read_file(media, 2 * quarter - 6, 6), std::string(6, '\0'));
    EXPECT_EQ(read_file(media, 2 * quarter, 6), "behind");
}

TEST_P(LogicalDevice, SldIsErasedThroughThePortsTunnel) {
    const std::string media = switch_.media_file("sld0");
    write_file(media, 12345, "secret");
    EXPECT_EQ(manager_.call_device(kSldPort, sanitize_, fmapi::MctpType::kCci).return_code,
              ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager_.wait_for_ld(kSldPort, std::nullopt), ReturnCode::kSuccess);
    EXPECT_EQ(read_file(media, 12345, 6), std::string(6, '\0'));
}

TEST_P(LogicalDevice, IsNotErasedWhileAHostHasIt) {
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, sanitize_).return_code, ReturnCode::kInvalidSecurityState);
    ASSERT_EQ(manager_.unbind(0, 0), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, sanitize_).return_code, ReturnCode::kBackgroundStarted);
}

TEST_P(LogicalDevice, WithoutMemoryIsNotErased) {
    EXPECT_EQ(manager_.call_ld(kMldPort, 2, sanitize_).return_code, ReturnCode::kMediaDisabled);
}

TEST_P(LogicalDevice, TellsItsCapacityInMultiplesOf256MiB) {
    const auto ask = fmapi::make_request(Opcode::kIdentifyMemoryDevice, 0);
    const auto capacity = [](const fmapi::Message& answer) {
        return Manager::decode_success<fmapi::IdentifyMemoryDeviceResponse>(answer).total();
    };
    EXPECT_EQ(capacity(manager_.call_device(kSldPort, ask, fmapi::MctpType::kCci)), mebibytes(256));
    EXPECT_EQ(capacity(manager_.call_ld(kMldPort, 1, ask)), mebibytes(256));
    EXPECT_EQ(capacity(manager_.call_ld(kMldPort, 2, ask)), Bytes{0});
}

TEST_P(LogicalDevice, SaysOfItsHealthWhatItsDeviceSays) {
    const fmapi::GetHealthInfoResponse worn{.health_status = fmapi::kMaintenanceNeeded, .life_used = 93};
    for (const char* device : {"mld0", "sld0"})
        switch_.thread().get().set_device_health(DeviceId(device), worn);
    const auto ask = fmapi::make_request(Opcode::kGetHealthInfo, 0);
    const auto health = [](const fmapi::Message& answer) {
        return Manager::decode_success<fmapi::GetHealthInfoResponse>(answer);
    };
    EXPECT_EQ(health(manager_.call_device(kSldPort, ask, fmapi::MctpType::kCci)), worn);
    EXPECT_EQ(health(manager_.call_device(kMldPort, ask, fmapi::MctpType::kCci)), worn);
    EXPECT_EQ(health(manager_.call_ld(kMldPort, 1, ask)), worn);
}

TEST_P(LogicalDevice, HasALimitForResponsesOfItsOwn) {
    const auto set = fmapi::make_request(Opcode::kSetResponseMessageLimit, 0,
                                         fmapi::encode(fmapi::ResponseMessageLimit{9}));
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, set).return_code, ReturnCode::kSuccess);
    const auto get = fmapi::make_request(Opcode::kGetResponseMessageLimit, 0);
    const auto limit = [](const fmapi::Message& answer) {
        return Manager::decode_success<fmapi::ResponseMessageLimit>(answer).limit;
    };
    EXPECT_EQ(limit(manager_.call_ld(kMldPort, 0, get)), 9);
    EXPECT_EQ(limit(manager_.call_ld(kMldPort, 1, get)), 16);
    EXPECT_EQ(limit(manager_.call_device(kMldPort, get)), 16);
}

TEST_P(LogicalDevice, PayloadOfTheWrongLengthIsRefused) {
    const auto longer = fmapi::make_request(Opcode::kSanitize, 0, fmapi::Payload(1));
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, longer).return_code, ReturnCode::kInvalidPayloadLength);
}

}  // namespace
}  // namespace memtide::emul::test
