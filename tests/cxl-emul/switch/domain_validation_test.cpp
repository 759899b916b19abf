#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/in_process.h"

namespace memtide::emul::test {
namespace {

using fmapi::DomainValidationState;
using fmapi::ReturnCode;

fmapi::DomainValidationSecret secret(std::uint8_t last) {
    fmapi::DomainValidationSecret secret;
    secret.value.back() = last;
    return secret;
}

TEST(DomainValidation, IsNotSetAtFirst) {
    InProcess fabric;
    EXPECT_EQ(fabric.get<fmapi::GetDomainValidationSvState>().state, DomainValidationState::kNotSet);
    EXPECT_EQ(fabric.get<fmapi::GetVcsDomainValidationSvState>({1}).state, DomainValidationState::kNotSet);
    EXPECT_EQ(fabric.code<fmapi::GetDomainValidationSv>({1}), ReturnCode::kInvalidInput);
}

TEST(DomainValidation, EveryVcsShowsTheValueOfTheSwitch) {
    InProcess fabric;
    EXPECT_EQ(fabric.code<fmapi::SetDomainValidationSv>(secret(7)), ReturnCode::kSuccess);
    EXPECT_EQ(fabric.get<fmapi::GetDomainValidationSvState>().state, DomainValidationState::kSet);
    for (const std::uint8_t vcs : {std::uint8_t{0}, std::uint8_t{1}}) {
        EXPECT_EQ(fabric.get<fmapi::GetVcsDomainValidationSvState>({vcs}).state, DomainValidationState::kSet);
        EXPECT_EQ(fabric.get<fmapi::GetDomainValidationSv>({vcs}), secret(7));
    }
}

TEST(DomainValidation, IsSetOnce) {
    InProcess fabric;
    EXPECT_EQ(fabric.code<fmapi::SetDomainValidationSv>(secret(7)), ReturnCode::kSuccess);
    EXPECT_EQ(fabric.code<fmapi::SetDomainValidationSv>(secret(8)), ReturnCode::kInvalidInput);
    EXPECT_EQ(fabric.code<fmapi::SetDomainValidationSv>(secret(7)), ReturnCode::kInvalidInput);
    EXPECT_EQ(fabric.get<fmapi::GetDomainValidationSv>({0}), secret(7));
}

TEST(DomainValidation, AVcsThatDoesNotExistHasNone) {
    InProcess fabric;
    EXPECT_EQ(fabric.code<fmapi::GetVcsDomainValidationSvState>({2}), ReturnCode::kInvalidInput);
    ASSERT_EQ(fabric.code<fmapi::SetDomainValidationSv>(secret(7)), ReturnCode::kSuccess);
    EXPECT_EQ(fabric.code<fmapi::GetDomainValidationSv>({2}), ReturnCode::kInvalidInput);
}

TEST(DomainValidation, AValueOfAnotherLengthIsNone) {
    InProcess fabric;
    for (const std::size_t length : {0, 15, 17})
        EXPECT_EQ(
            fabric.call(fmapi::make_request(fmapi::Opcode::kSetDomainValidationSv, 0, fmapi::Payload(length)))
                .return_code,
            ReturnCode::kInvalidPayloadLength);
}

}  // namespace
}  // namespace memtide::emul::test
