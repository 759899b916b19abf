#include <csignal>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/cxl-emul/switch/over_both_transports.h"

// Sanitize where the media does not do as it should.
namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;

const fmapi::Message kSanitize = fmapi::make_request(fmapi::Opcode::kSanitize, 0);

class SanitizeFault : public ::testing::Test {
  protected:
    TestSwitch switch_;
    Manager manager_{switch_.tcp()};
    const std::string media_ = switch_.media_file("mld0");

    ReturnCode sanitize(std::uint8_t ld) {
        const ReturnCode started = manager_.call_ld(kMldPort, ld, kSanitize).return_code;
        return started == ReturnCode::kBackgroundStarted ? manager_.wait_for_ld(kMldPort, ld) : started;
    }
};

TEST_F(SanitizeFault, MissingMediaIsDisabledMedia) {
    ASSERT_EQ(unlink(media_.c_str()), 0);
    EXPECT_EQ(sanitize(0), ReturnCode::kMediaDisabled);
    EXPECT_FALSE(manager_.background().running());  // the switch goes on
}

TEST_F(SanitizeFault, MediaThatWasCutShortHasFailed) {
    ASSERT_EQ(truncate(media_.c_str(), 4096), 0);
    EXPECT_EQ(sanitize(1), ReturnCode::kPermanentMediaFailure);
}

TEST_F(SanitizeFault, FullDiskIsToldAndTriedAgain) {
    write_file(media_, 300'000'000, "secret");
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit full{1'000'000, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
    const ReturnCode while_full = sanitize(1);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_EQ(while_full, ReturnCode::kResourcesExhausted);
    EXPECT_EQ(read_file(media_, 300'000'000, 6), "secret");
    EXPECT_EQ(sanitize(1), ReturnCode::kSuccess);
    EXPECT_EQ(read_file(media_, 300'000'000, 6), std::string(6, '\0'));
}

TEST_F(SanitizeFault, BytesThatAHostWroteThroughAMappingAreErased) {
    const int fd = open(media_.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    const std::size_t size = mebibytes(256).value;
    auto* const memory = static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    close(fd);
    ASSERT_NE(memory, MAP_FAILED);
    for (std::size_t page = 0; page < size; page += std::size_t{1} << 20) memory[page + 77] = 'x';
    EXPECT_EQ(sanitize(0), ReturnCode::kSuccess);
    for (std::size_t page = 0; page < size; page += std::size_t{1} << 20) ASSERT_EQ(memory[page + 77], 0);
    munmap(memory, size);
}

TEST_F(SanitizeFault, SecureEraseErasesAsSanitizeDoes) {
    const fmapi::Message secure_erase = fmapi::make_request(fmapi::Opcode::kSecureErase, 0);
    write_file(media_, 300'000'000, "secret");
    ASSERT_EQ(manager_.call_ld(kMldPort, 1, secure_erase).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager_.wait_for_ld(kMldPort, 1), ReturnCode::kSuccess);
    EXPECT_EQ(read_file(media_, 300'000'000, 6), std::string(6, '\0'));
    write_file(switch_.media_file("sld0"), 12345, "secret");
    ASSERT_EQ(manager_.call_device(kSldPort, secure_erase, fmapi::MctpType::kCci).return_code,
              ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager_.wait_for_ld(kSldPort, std::nullopt), ReturnCode::kSuccess);
    EXPECT_EQ(read_file(switch_.media_file("sld0"), 12345, 6), std::string(6, '\0'));
}

TEST_F(SanitizeFault, SecureEraseIsRefusedWhereSanitizeIs) {
    const fmapi::Message secure_erase = fmapi::make_request(fmapi::Opcode::kSecureErase, 0);
    EXPECT_EQ(manager_.call_ld(kMldPort, 2, secure_erase).return_code, ReturnCode::kMediaDisabled);
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(manager_.call_ld(kMldPort, 0, secure_erase).return_code, ReturnCode::kInvalidSecurityState);
}

TEST(SecureErase, IsTheLdsBackgroundOperationUnderItsOwnName) {
    TestSwitch slow({.sanitize = "20s"});
    Manager manager(slow.tcp());
    const fmapi::Message secure_erase = fmapi::make_request(fmapi::Opcode::kSecureErase, 0);
    ASSERT_EQ(manager.call_ld(kMldPort, 0, secure_erase).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.call_ld(kMldPort, 0, kSanitize).return_code, ReturnCode::kBusy);
    const auto status = Manager::decode_success<fmapi::BackgroundOperationStatusResponse>(
        manager.call_ld(kMldPort, 0, fmapi::make_request(fmapi::Opcode::kBackgroundOperationStatus, 0)));
    EXPECT_TRUE(status.running());
    EXPECT_EQ(status.opcode, fmapi::Opcode::kSecureErase);
}

// As some real ones do.
TEST(SanitizeEffects, OneThatDoesNothingSucceedsAndLeavesEveryByte) {
    TestSwitch liar({.effect = "does-nothing"});
    Manager manager(liar.tcp());
    write_file(liar.media_file("mld0"), 4711, "secret");
    ASSERT_EQ(manager.call_ld(kMldPort, 0, kSanitize).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.wait_for_ld(kMldPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(read_file(liar.media_file("mld0"), 4711, 6), "secret");
}

TEST(SanitizeEffects, OneThatFailsSaysSo) {
    TestSwitch broken({.effect = "fails"});
    Manager manager(broken.tcp());
    ASSERT_EQ(manager.call_ld(kMldPort, 0, kSanitize).return_code, ReturnCode::kBackgroundStarted);
    EXPECT_EQ(manager.wait_for_ld(kMldPort, 0), ReturnCode::kPermanentMediaFailure);
}

}  // namespace
}  // namespace memtide::emul::test
