#include "common/fmapi/codec.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fmapi/commands.h"
#include "tests/common/fmapi/hex.h"
#include "tests/common/fmapi/samples.h"

namespace memtide::fmapi {
namespace {

using test::bytes;
using testing::HasSubstr;

template <typename Visitor>
void for_each_sample(Visitor&& visit) {
    std::apply([&](const auto&... sample) { (visit(sample), ...); }, test::all_samples());
}

TEST(Codec, EveryPayloadReadsBackAsItWasWritten) {
    for_each_sample([]<typename T>(const T& sample) {
        const auto decoded = decode<T>(encode(sample));
        ASSERT_TRUE(decoded) << decoded.error().message;
        EXPECT_EQ(*decoded, sample) << T::kName;
    });
}

TEST(Codec, EveryPayloadOfEveryCommandHasASample) {
    std::set<std::string_view> sampled;
    for_each_sample([&]<typename T>(const T&) { sampled.insert(T::kName); });
    for_each_command([&]<typename C>(C) {
        EXPECT_TRUE(sampled.contains(C::Request::kName)) << C::Request::kName;
        EXPECT_TRUE(sampled.contains(C::Response::kName)) << C::Response::kName;
    });
}

TEST(Codec, TrailingBytesAreTolerated) {
    for_each_sample([]<typename T>(const T& sample) {
        auto longer = encode(sample);
        longer.resize(longer.size() + 20, std::byte{0xee});
        const auto decoded = decode<T>(longer);
        ASSERT_TRUE(decoded) << decoded.error().message;
        EXPECT_EQ(*decoded, sample) << T::kName;
    });
}

TEST(Codec, TrailingBytesAreKeptForThoseWhoAsk) {
    for_each_sample([]<typename T>(const T& sample) {
        const auto whole = encode(sample);
        auto longer = whole;
        longer.insert(longer.end(), {std::byte{1}, std::byte{2}});
        const auto decoded = decode_keeping<T>(longer);
        ASSERT_TRUE(decoded) << decoded.error().message;
        EXPECT_EQ(decoded->payload, sample) << T::kName;
        EXPECT_EQ(decoded->trailing, (std::vector{std::byte{1}, std::byte{2}})) << T::kName;
        EXPECT_TRUE(decode_keeping<T>(whole)->trailing.empty()) << T::kName;
    });
}

// The name that an error must have when only the first `cut` of `size` bytes are there: of the fixed field
// that the cut goes through, or of the list. What stands behind the list is behind its elements, too.
template <typename T>
const FieldDescription* field_at(const std::vector<FieldDescription>& rows, std::size_t cut,
                                 std::size_t size) {
    const FieldDescription* list = nullptr;
    for (const auto& row : rows) {
        if (row.is_list && list == nullptr) list = &row;
        if (row.is_list || row.name.find("[].") != std::string::npos) continue;
        const std::size_t offset = row.offset + (list != nullptr ? size - T::kWireSize : 0);
        if (cut >= offset && cut < offset + row.width) return &row;
    }
    return list;
}

TEST(Codec, EveryTruncationIsRefusedWithTheNameOfTheMissingField) {
    for_each_sample([]<typename T>(const T& sample) {
        const auto whole = encode(sample);
        const auto rows = describe<T>();
        for (std::size_t cut = 0; cut < whole.size(); ++cut) {
            const FieldDescription* missing = field_at<T>(rows, cut, whole.size());
            ASSERT_NE(missing, nullptr);
            const auto decoded = decode<T>(std::span(whole).first(cut));
            if (missing->optional_tail && cut == missing->offset) {
                EXPECT_TRUE(decoded) << T::kName << " of " << cut << " bytes";
                continue;
            }
            ASSERT_FALSE(decoded) << T::kName << " of " << cut << " bytes";
            EXPECT_EQ(decoded.error().code, ErrorCode::kProtocol);
            const std::string name = missing->name.substr(0, missing->name.find("[]"));
            EXPECT_THAT(decoded.error().message, HasSubstr(T::kName));
            EXPECT_THAT(decoded.error().message, HasSubstr("\"" + name)) << "cut at " << cut;
        }
    });
}

TEST(Codec, AMissingElementIsNamedWithItsIndexAndField) {
    GetPhysicalPortStateResponse response;
    response.ports.resize(3);
    auto short_by_two = encode(response);
    short_by_two.resize(short_by_two.size() - 2);
    EXPECT_EQ(decode<GetPhysicalPortStateResponse>(short_by_two).error().message,
              "Get Physical Port State response too short: \"ports[2].link_flags\" needs bytes 49 to 50, the "
              "payload has 50");
}

TEST(Codec, ACountThatPromisesMoreThanIsThereCostsNoMemory) {
    // 65535 bytes of command promised, two there.
    const auto decoded = decode<TunnelRequest>(bytes("00 00 ff ff 08 01 02"));
    ASSERT_FALSE(decoded);
    EXPECT_THAT(decoded.error().message, HasSubstr("\"command\""));
}

TEST(Codec, IdentifyWithoutComponentTypeIsWhatCxl20ComponentsSend) {
    auto whole = encode(IdentifyResponse{1, 2, 3, 4, 5, 6, ComponentType::kSwitch});
    whole.pop_back();
    const auto decoded = decode<IdentifyResponse>(whole);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->serial, 5U);
    EXPECT_EQ(decoded->component_type, ComponentType::kUnknown);
}

TEST(Codec, OlderAnswersWithoutPayloadAreAccepted) {
    EXPECT_TRUE(decode<SetResponseMessageLimitResponse>({}));
    const auto all = decode<GetLdAllocationsRequest>({});
    ASSERT_TRUE(all);
    EXPECT_EQ(all->first_ld, 0);
    EXPECT_EQ(all->limit, 255);
}

TEST(Codec, VcsInfoListsOnlyTheVppbsThatWereAskedFor) {
    GetVirtualSwitchInfoRequest request;
    request.first_vppb = 1;
    request.vppb_limit = 2;
    request.vcss = {0, 1, 2};
    // VCS 0 has 4 vPPBs, of which 1 and 2 are listed; VCS 1 has only one; VCS 2 does not exist.
    const auto payload = bytes("03 00 00 00  00 01 00 04 02 05 ff 00 03 06 01 00  01 01 01 01  02 ff 00 09");
    const auto decoded = decode(payload, GetVirtualSwitchInfoResponse::answering(request));
    ASSERT_TRUE(decoded) << decoded.error().message;
    ASSERT_EQ(decoded->vcss.size(), 3U);
    ASSERT_EQ(decoded->vcss[0].vppbs.size(), 2U);
    EXPECT_EQ(decoded->vcss[0].vppbs[1], (Vppb{VppbBinding::kBoundLd, 6, 1}));
    EXPECT_TRUE(decoded->vcss[1].vppbs.empty());
    EXPECT_EQ(decoded->vcss[2].state, VcsState::kInvalidVcs);
    EXPECT_TRUE(decoded->vcss[2].vppbs.empty());
}

TEST(Codec, AListLongerThanItsCountCanSayIsCutNotCorrupted) {
    GetPhysicalPortStateRequest request;
    request.ports.resize(300, 7);
    const auto encoded = encode(request);
    EXPECT_EQ(encoded.size(), 256U);
    EXPECT_EQ(decode<GetPhysicalPortStateRequest>(encoded)->ports.size(), 255U);
}

TEST(Codec, WhateverDecodesEncodesToBytesThatDecodeTheSame) {
    std::minstd_rand random(1);
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> noise(random() % 120);
        for (auto& byte : noise) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : random() % 3);
        for_each_sample([&]<typename T>(const T&) {
            const auto first = decode<T>(noise);
            if (!first) return;
            const auto second = decode<T>(encode(*first));
            ASSERT_TRUE(second) << T::kName;
            EXPECT_EQ(*first, *second) << T::kName;
        });
    }
}

TEST(Codec, DescriptionsAddUpToTheWireSize) {
    for_each_sample([]<typename T>(const T&) {
        std::size_t total = 0;
        for (const auto& row : describe<T>())
            if (!row.is_list && row.name.find("[].") == std::string::npos) total += row.width;
        EXPECT_EQ(total, T::kWireSize) << T::kName;
    });
}

TEST(LdGranularity, IsIn256MiBSteps) {
    EXPECT_EQ(bytes_of(LdGranularity::k256MiB), mebibytes(256));
    EXPECT_EQ(bytes_of(LdGranularity::k1GiB), gibibytes(1));
    EXPECT_EQ(bytes_of(static_cast<LdGranularity>(3)).value, 0U);
}

}  // namespace
}  // namespace memtide::fmapi
