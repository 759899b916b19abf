#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::LdAllocation;
using fmapi::Opcode;
using fmapi::ReturnCode;

class Mld : public OverBothTransports {
  protected:
    fmapi::Message set(std::uint8_t first, std::vector<LdAllocation> allocations) {
        return manager_.call_device(
            kMldPort, fmapi::make_request(
                          Opcode::kSetLdAllocations, 0,
                          fmapi::encode(fmapi::SetLdAllocationsPayload{first, std::move(allocations)})));
    }
    fmapi::GetLdAllocationsResponse allocations(fmapi::GetLdAllocationsRequest request = {}) {
        return Manager::decode_success<fmapi::GetLdAllocationsResponse>(manager_.call_device(
            kMldPort, fmapi::make_request(Opcode::kGetLdAllocations, 0, fmapi::encode(request))));
    }
    std::vector<std::uint64_t> multiples() {
        std::vector<std::uint64_t> all;
        for (const LdAllocation& ld : allocations().allocations) all.push_back(ld.range1);
        return all;
    }
};
INSTANTIATE_TEST_SUITE_P(, Mld, both_transports(), transport_name);

TEST_P(Mld, TellsItsSizeAndLds) {
    const auto info = Manager::decode_success<fmapi::GetLdInfoResponse>(
        manager_.call_device(kMldPort, fmapi::make_request(Opcode::kGetLdInfo, 0)));
    EXPECT_EQ(info.memory_size, gibibytes(1).value);
    EXPECT_EQ(info.ld_count, 4);
}

TEST_P(Mld, TellsItsAllocations) {
    const auto all = allocations();
    EXPECT_EQ(all.total_lds, 4);
    EXPECT_EQ(all.granularity, fmapi::LdGranularity::k256MiB);
    EXPECT_EQ(all.allocations, (std::vector<LdAllocation>{{1, 0}, {1, 0}, {0, 0}, {0, 0}}));
    const auto some = allocations({.first_ld = 1, .limit = 2});
    EXPECT_EQ(some.first_ld, 1);
    EXPECT_EQ(some.allocations, (std::vector<LdAllocation>{{1, 0}, {0, 0}}));
    const auto empty_request = fmapi::make_request(Opcode::kGetLdAllocations, 0);  // as in CXL 2.0
    EXPECT_EQ(Manager::decode_success<fmapi::GetLdAllocationsResponse>(
                  manager_.call_device(kMldPort, empty_request))
                  .allocations.size(),
              4U);
}

TEST_P(Mld, AllocationsFromAnLdThatDoesNotExistAreRefused) {
    const auto request = fmapi::make_request(Opcode::kGetLdAllocations, 0,
                                             fmapi::encode(fmapi::GetLdAllocationsRequest{4, 255}));
    EXPECT_EQ(manager_.call_device(kMldPort, request).return_code, ReturnCode::kInvalidInput);
}

TEST_P(Mld, GivesUnusedMemoryToAnLd) {
    const auto answer = Manager::decode_success<fmapi::SetLdAllocationsPayload>(set(2, {{2, 0}}));
    EXPECT_EQ(answer.first_ld, 2);
    EXPECT_EQ(answer.allocations, (std::vector<LdAllocation>{{2, 0}}));
    EXPECT_EQ(multiples(), (std::vector<std::uint64_t>{1, 1, 2, 0}));
    EXPECT_EQ(manager_.bind(0, 0, kMldPort, 2), ReturnCode::kSuccess);
    EXPECT_EQ(switch_.thread().vppbs().at(0).offset, mebibytes(512));
    EXPECT_EQ(switch_.thread().vppbs().at(0).size, mebibytes(512));
}

TEST_P(Mld, CarvesAllLdsAnewInOneCommand) {
    EXPECT_EQ(set(0, {{0, 0}, {4, 0}, {0, 0}, {0, 0}}).return_code, ReturnCode::kSuccess);
    EXPECT_EQ(multiples(), (std::vector<std::uint64_t>{0, 4, 0, 0}));
}

TEST_P(Mld, MoreThanIsFreeIsRefusedAsAWhole) {
    EXPECT_EQ(set(0, {{0, 0}, {1, 0}, {2, 0}, {2, 0}}).return_code, ReturnCode::kResourcesExhausted);
    EXPECT_EQ(multiples(), (std::vector<std::uint64_t>{1, 1, 0, 0}));
}

TEST_P(Mld, MoreThanTheDeviceHasIsRefused) {
    EXPECT_EQ(set(2, {{5, 0}}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(set(2, {{UINT64_MAX, 0}}).return_code, ReturnCode::kInvalidInput);
}

TEST_P(Mld, MemoryInTwoPiecesIsRefused) {
    EXPECT_EQ(set(2, {{1, 1}}).return_code, ReturnCode::kInvalidInput);
    // LD 0 gives up the first quarter and the third is free too, but they are not contiguous.
    ASSERT_EQ(set(2, {{0, 0}, {1, 0}}).return_code, ReturnCode::kSuccess);
    ASSERT_EQ(set(2, {{1, 0}}).return_code, ReturnCode::kSuccess);
    ASSERT_EQ(set(3, {{0, 0}}).return_code, ReturnCode::kSuccess);
    ASSERT_EQ(set(0, {{0, 0}}).return_code, ReturnCode::kSuccess);
    EXPECT_EQ(set(0, {{2, 0}}).return_code, ReturnCode::kResourcesExhausted);
}

TEST_P(Mld, AllocationOfALdThatAHostHasIsNotChanged) {
    ASSERT_EQ(manager_.bind(0, 0, kMldPort, 1), ReturnCode::kSuccess);
    EXPECT_EQ(set(1, {{2, 0}}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(set(1, {{0, 0}}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(set(0, {{0, 0}, {1, 0}, {2, 0}}).return_code, ReturnCode::kSuccess);  // it stays as it is
    EXPECT_EQ(switch_.thread().vppbs().at(0).offset, mebibytes(256));
}

TEST_P(Mld, LdsThatDoNotExistAreRefused) {
    EXPECT_EQ(set(4, {{0, 0}}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(set(3, {{0, 0}, {0, 0}}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(set(255, {{0, 0}}).return_code, ReturnCode::kInvalidInput);
    EXPECT_EQ(set(0, {}).return_code, ReturnCode::kInvalidInput);
}

}  // namespace
}  // namespace memtide::emul::test
