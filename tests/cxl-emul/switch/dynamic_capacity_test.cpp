#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/switch/commands.h"
#include "tests/cxl-emul/switch/dcd_switch.h"
#include "tests/cxl-emul/switch/fake_hotplug.h"
#include "tests/integration/eventually.h"

// A dynamic capacity device behind a switch: what a fabric manager and the hosts make of it, over the wire.
namespace memtide::emul::test {
namespace {

using fmapi::DcRemoval;
using fmapi::DcSelection;
using fmapi::DynamicCapacityEvent;
using fmapi::ReturnCode;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint8_t kByExtents = static_cast<std::uint8_t>(DcRemoval::kPrescriptive);
constexpr std::uint64_t kSharedBase = mebibytes(512).value;

class DynamicCapacityDevice : public testing::Test {
  protected:
    DcdSwitch dcd;

    // Memory that the host has accepted.
    std::vector<fmapi::DcExtent> give(std::uint8_t host, std::uint64_t length, const fmapi::DcTag& tag = {},
                                      std::uint8_t region = 0) {
        EXPECT_EQ(dcd.add({.host = host, .region = region, .length = length, .tag = tag}),
                  ReturnCode::kSuccess);
        EXPECT_EQ(accept_all(host), ReturnCode::kSuccess);
        return dcd.extents_of(host);
    }
    ReturnCode accept_all(std::uint8_t host) {
        std::vector<fmapi::UpdatedDcExtent> extents;
        for (const auto& event : dcd.events_of(host))
            extents.push_back({event.extent.dpa, event.extent.length});
        return dcd.respond(host, extents);
    }
    ReturnCode add_shared(std::uint8_t host, const fmapi::DcTag& tag) {
        return dcd.add({.host = host, .selection = DcSelection::kShared, .region = 1, .tag = tag});
    }
};

TEST_F(DynamicCapacityDevice, TellsWhatItHas) {
    const auto info = dcd.get<fmapi::GetDcdInfo>();
    EXPECT_EQ(info.hosts, 3);
    EXPECT_EQ(info.regions, 2);
    EXPECT_EQ(info.total_capacity, 3U);  // of 256 MiB
    EXPECT_NE(info.block_sizes[0] & kDcBlock, 0U);
    EXPECT_EQ(info.block_sizes[0] & gibibytes(1).value, 0U);
    EXPECT_EQ(info.block_sizes[2], 0U);

    const auto regions = dcd.get<fmapi::GetHostDcRegionConfiguration>({.host = 2});
    EXPECT_EQ(regions.available_regions, 2);
    ASSERT_THAT(regions.regions, SizeIs(2));
    EXPECT_EQ(regions.regions[0].length, mebibytes(512).value);
    EXPECT_EQ(regions.regions[0].sanitize_on_release, 1);
    EXPECT_EQ(regions.regions[1].base, kSharedBase);
    EXPECT_EQ(regions.regions[1].flags, fmapi::kDcRegionShareable);
    EXPECT_EQ(regions.supported_extents, 16U);
    EXPECT_EQ(regions.available_tags, 3U);
    const auto second = dcd.get<fmapi::GetHostDcRegionConfiguration>({.host = 0, .first_region = 1});
    ASSERT_THAT(second.regions, SizeIs(1));
    EXPECT_EQ(second.regions[0].base, kSharedBase);
    EXPECT_EQ(dcd.at_device<fmapi::GetHostDcRegionConfiguration>({.host = 3}).return_code,
              ReturnCode::kInvalidInput);

    const auto own = dcd.get_of<fmapi::GetDynamicCapacityConfiguration>(1);
    ASSERT_THAT(own.regions, SizeIs(2));
    EXPECT_EQ(own.regions[1].block_size, kDcBlock);
    EXPECT_EQ(own.regions[0].flags, 1);
    EXPECT_EQ(own.supported_tags, 3U);
}

TEST_F(DynamicCapacityDevice, HasNoOtherMemory) {
    EXPECT_EQ(dcd.get<fmapi::GetLdInfo>().memory_size, 0U);
    EXPECT_EQ(dcd.get<fmapi::GetLdInfo>().ld_count, 3);
    const auto memory = dcd.get_of<fmapi::IdentifyMemoryDevice>(0);
    EXPECT_EQ(memory.total_capacity, 0U);
    EXPECT_GT(memory.dynamic_capacity_events, 0);
    EXPECT_EQ(dcd.at_device<fmapi::SetLdAllocations>({0, {{1, 0}}}).return_code, ReturnCode::kUnsupported);
    EXPECT_EQ(dcd.at_ld<fmapi::Sanitize>(0).return_code, ReturnCode::kMediaDisabled);
}

TEST_F(DynamicCapacityDevice, OfferBecomesTheHostsWhenItAccepts) {
    const auto before = dcd.get<fmapi::GetDcRegionExtentLists>({.host = 0, .extents = 9}).generation;
    ASSERT_EQ(dcd.add({.host = 0, .length = 3 * kDcBlock, .tag = tag_of(7)}), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), IsEmpty());
    auto tags = dcd.get<fmapi::DynamicCapacityListTags>({.limit = 9});
    ASSERT_THAT(tags.tags, SizeIs(1));
    EXPECT_EQ(tags.tags[0].pending[0], 1);
    EXPECT_EQ(tags.tags[0].references[0], 0);

    const auto offered = dcd.events_of(0);
    ASSERT_THAT(offered, SizeIs(1));
    EXPECT_EQ(offered[0].event, DynamicCapacityEvent::kAddCapacity);
    EXPECT_EQ(offered[0].extent.length, 3 * kDcBlock);
    EXPECT_EQ(offered[0].extent.tag, tag_of(7));
    EXPECT_EQ(offered[0].available_extents, 15U);
    EXPECT_THAT(dcd.events_of(1), IsEmpty());

    EXPECT_EQ(dcd.respond(0, {{offered[0].extent.dpa, offered[0].extent.length}}), ReturnCode::kSuccess);
    const auto list = dcd.get<fmapi::GetDcRegionExtentLists>({.host = 0, .extents = 9});
    EXPECT_THAT(list.extents, ElementsAre(offered[0].extent));
    EXPECT_NE(list.generation, before);
    const auto own = dcd.get_of<fmapi::GetDynamicCapacityExtentList>(0, {.extents = 9});
    EXPECT_EQ(own.extents, list.extents);
    EXPECT_EQ(own.generation, list.generation);
    tags = dcd.get<fmapi::DynamicCapacityListTags>({.limit = 9});
    EXPECT_EQ(tags.tags.at(0).references[0], 1);
    EXPECT_EQ(tags.tags.at(0).pending[0], 0);
    const auto told = dcd.events();
    ASSERT_THAT(told, SizeIs(1));
    EXPECT_EQ(told[0].event, DynamicCapacityEvent::kAddCapacityResponse);
    EXPECT_EQ(told[0].host, 0);
    EXPECT_EQ(told[0].extent, list.extents[0]);
}

TEST_F(DynamicCapacityDevice, HostMayTakeAPartOrNothing) {
    ASSERT_EQ(dcd.add({.host = 1, .length = 4 * kDcBlock}), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.respond(1, {{kDcBlock, kDcBlock}}), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(1), ElementsAre(fmapi::DcExtent{kDcBlock, kDcBlock, {}, 0}));
    // The rest went back: it can be given to another.
    EXPECT_EQ(dcd.add({.host = 0,
                       .selection = DcSelection::kPrescriptive,
                       .extents = {{0, kDcBlock, {}, 0}, {2 * kDcBlock, 2 * kDcBlock, {}, 0}}}),
              ReturnCode::kSuccess);
    const auto events = dcd.events_of(0);
    ASSERT_THAT(events, SizeIs(2));
    EXPECT_EQ(events[0].flags, fmapi::kMoreDynamicCapacity);
    EXPECT_EQ(events[1].flags, 0);
    EXPECT_EQ(dcd.respond(0, {}), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), IsEmpty());
    EXPECT_EQ(dcd.respond(0, {}), ReturnCode::kInvalidInput) << "nothing was offered";
}

TEST_F(DynamicCapacityDevice, ResponseIsCheckedBeforeItIsTaken) {
    ASSERT_EQ(dcd.add({.host = 0, .length = 4 * kDcBlock}), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.respond(0, {{0, 0}}), ReturnCode::kInvalidExtentList);
    EXPECT_EQ(dcd.respond(0, {{1, kDcBlock}}), ReturnCode::kInvalidExtentList);
    EXPECT_EQ(dcd.respond(0, {{0, kDcBlock}, {0, kDcBlock}}), ReturnCode::kInvalidExtentList);
    EXPECT_EQ(dcd.respond(0, {{UINT64_MAX - 1, kDcBlock}}), ReturnCode::kInvalidExtentList);
    EXPECT_EQ(dcd.respond(0, {{0, 8 * kDcBlock}}), ReturnCode::kInvalidPhysicalAddress);
    EXPECT_EQ(dcd.respond(1, {{0, kDcBlock}}), ReturnCode::kInvalidPhysicalAddress) << "another's offer";
    EXPECT_THAT(dcd.extents_of(0), IsEmpty());
    EXPECT_EQ(dcd.respond(0, {{0, kDcBlock}}, fmapi::kDcMoreExtents), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), IsEmpty()) << "the list is not complete";
    EXPECT_EQ(dcd.respond(0, {{2 * kDcBlock, kDcBlock}}), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), SizeIs(2));
}

TEST_F(DynamicCapacityDevice, MemoryIsErasedBeforeItIsOfferedAgain) {
    const auto had = give(0, mebibytes(512).value, tag_of(1));
    write_file(dcd.media(), 5 * kDcBlock + 17, "secret");
    EXPECT_EQ(dcd.release({.host = 0, .length = mebibytes(512).value, .tag = tag_of(1)}),
              ReturnCode::kSuccess);
    EXPECT_EQ(dcd.extents_of(0), had) << "asked back is not given back";
    const auto events = dcd.events_of(0);
    ASSERT_THAT(events, SizeIs(1));
    EXPECT_EQ(events[0].event, DynamicCapacityEvent::kReleaseCapacity);
    EXPECT_EQ(events[0].extent, had[0]);
    EXPECT_EQ(dcd.give_back(0, {{had[0].dpa, had[0].length}}), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), IsEmpty());
    EXPECT_EQ(dcd.add({.host = 1, .length = mebibytes(512).value}), ReturnCode::kSuccess);
    EXPECT_EQ(read_file(dcd.media(), 5 * kDcBlock + 17, 6), std::string(6, '\0'));
    EXPECT_THAT(dcd.events(), testing::Contains(Field(&fmapi::DynamicCapacityRecord::event,
                                                      DynamicCapacityEvent::kCapacityReleased)));
}

TEST_F(DynamicCapacityDevice, RegionThatDoesNotEraseDoesWhenItIsTold) {
    for (const bool sanitize : {false, true}) {
        give(0, mebibytes(256).value, tag_of(1), 1);
        write_file(dcd.media(), kSharedBase + 9, "secret");
        EXPECT_EQ(dcd.release({.host = 0,
                               .flags = static_cast<std::uint8_t>(sanitize ? fmapi::kDcSanitizeOnRelease : 0),
                               .tag = tag_of(1)}),
                  ReturnCode::kSuccess);
        dcd.events_of(0);
        EXPECT_EQ(dcd.give_back(0, {{kSharedBase, mebibytes(256).value}}), ReturnCode::kSuccess);
        EXPECT_EQ(dcd.add({.host = 1, .region = 1, .length = mebibytes(256).value}), ReturnCode::kSuccess);
        EXPECT_EQ(read_file(dcd.media(), kSharedBase + 9, 6),
                  sanitize ? std::string(6, '\0') : std::string("secret"));
        EXPECT_EQ(dcd.respond(1, {}), ReturnCode::kSuccess);
    }
}

TEST_F(DynamicCapacityDevice, ForcedReleaseTakesAtOnceAndWithdrawsOffers) {
    give(0, 2 * kDcBlock, tag_of(1));
    EXPECT_EQ(dcd.release({.host = 0, .flags = fmapi::kDcForcedRemoval, .tag = tag_of(1)}),
              ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), IsEmpty());
    EXPECT_THAT(dcd.events_of(0), ElementsAre(Field(&fmapi::DynamicCapacityRecord::event,
                                                    DynamicCapacityEvent::kForcedRelease)));

    ASSERT_EQ(dcd.add({.host = 0, .length = 2 * kDcBlock, .tag = tag_of(2)}), ReturnCode::kSuccess);
    const auto offered = dcd.events_of(0);
    EXPECT_EQ(dcd.release({.host = 0, .tag = tag_of(2)}), ReturnCode::kInvalidPhysicalAddress)
        << "what the host has not accepted cannot be asked back";
    EXPECT_EQ(dcd.release({.host = 0, .flags = fmapi::kDcForcedRemoval, .tag = tag_of(2)}),
              ReturnCode::kSuccess);
    EXPECT_EQ(dcd.respond(0, {{offered[0].extent.dpa, offered[0].extent.length}}),
              ReturnCode::kInvalidPhysicalAddress);
    EXPECT_EQ(dcd.get<fmapi::DynamicCapacityListTags>().total, 0U);
}

TEST_F(DynamicCapacityDevice, PartsAreReleasedByTheirExtents) {
    give(0, 4 * kDcBlock);
    EXPECT_EQ(dcd.release({.host = 0, .flags = kByExtents, .extents = {{8 * kDcBlock, kDcBlock, {}, 0}}}),
              ReturnCode::kInvalidPhysicalAddress);
    EXPECT_EQ(dcd.release({.host = 0, .flags = kByExtents, .extents = {{1, kDcBlock, {}, 0}}}),
              ReturnCode::kInvalidExtentList);
    EXPECT_EQ(dcd.release({.host = 0,
                           .flags = kByExtents | fmapi::kDcForcedRemoval,
                           .extents = {{kDcBlock, kDcBlock, {}, 0}}}),
              ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), ElementsAre(fmapi::DcExtent{0, kDcBlock, {}, 0},
                                               fmapi::DcExtent{2 * kDcBlock, 2 * kDcBlock, {}, 0}));
    EXPECT_EQ(dcd.give_back(0, {{kDcBlock, kDcBlock}}), ReturnCode::kInvalidPhysicalAddress);
    EXPECT_EQ(dcd.give_back(0, {}), ReturnCode::kInvalidInput);
    EXPECT_EQ(dcd.give_back(0, {{0, kDcBlock}}, fmapi::kDcMoreExtents), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.give_back(0, {{2 * kDcBlock, kDcBlock}}), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), ElementsAre(fmapi::DcExtent{3 * kDcBlock, kDcBlock, {}, 0}));
}

TEST_F(DynamicCapacityDevice, SharedMemoryIsTheSameForEveryHost) {
    const auto first = give(0, 2 * kDcBlock, tag_of(5), 1);
    ASSERT_THAT(first, SizeIs(1));
    EXPECT_EQ(first[0].shared_sequence, 1);
    EXPECT_EQ(add_shared(0, tag_of(5)), ReturnCode::kInvalidInput) << "it has it";
    EXPECT_EQ(add_shared(1, tag_of(6)), ReturnCode::kInvalidInput) << "no such tag";
    ASSERT_EQ(add_shared(1, tag_of(5)), ReturnCode::kSuccess);
    dcd.events_of(1);
    EXPECT_EQ(dcd.respond(1, {{first[0].dpa, kDcBlock}}), ReturnCode::kInvalidExtentList) << "all or nothing";
    EXPECT_EQ(dcd.respond(1, {{first[0].dpa, first[0].length}}), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.extents_of(1), first);

    EXPECT_EQ(dcd.give_back(0, {{first[0].dpa, kDcBlock}}), ReturnCode::kInvalidExtentList);
    EXPECT_EQ(dcd.give_back(0, {{first[0].dpa, first[0].length}}), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.extents_of(1), first);
    EXPECT_EQ(dcd.add({.host = 2, .region = 1, .length = 2 * kDcBlock, .tag = tag_of(5)}),
              ReturnCode::kInvalidInput)
        << "the tag is in use";
}

TEST_F(DynamicCapacityDevice, ReferenceKeepsSharedMemoryThatNoHostHas) {
    const auto had = give(0, 2 * kDcBlock, tag_of(5), 1);
    EXPECT_EQ(dcd.at_device<fmapi::DynamicCapacityAddReference>({tag_of(5)}).return_code,
              ReturnCode::kSuccess);
    EXPECT_EQ(dcd.give_back(0, {{had[0].dpa, had[0].length}}), ReturnCode::kSuccess);
    const auto tags = dcd.get<fmapi::DynamicCapacityListTags>({.limit = 9});
    ASSERT_THAT(tags.tags, SizeIs(1));
    EXPECT_EQ(tags.tags[0].flags, 1);
    ASSERT_EQ(add_shared(1, tag_of(5)), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.respond(1, {}), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.at_device<fmapi::DynamicCapacityRemoveReference>({tag_of(5)}).return_code,
              ReturnCode::kSuccess);
    EXPECT_EQ(dcd.get<fmapi::DynamicCapacityListTags>().total, 0U);
    EXPECT_EQ(add_shared(1, tag_of(5)), ReturnCode::kInvalidInput);
    EXPECT_EQ(dcd.at_device<fmapi::DynamicCapacityAddReference>({tag_of(5)}).return_code,
              ReturnCode::kInvalidInput);
}

TEST_F(DynamicCapacityDevice, ImpossibleAddsAreRefused) {
    give(2, kDcBlock);
    const auto code = [&](const fmapi::InitiateDynamicCapacityAddRequest& request) {
        return dcd.add(request);
    };
    EXPECT_EQ(code({.host = 3, .length = kDcBlock}), ReturnCode::kInvalidInput);
    EXPECT_EQ(code({.host = 0, .region = 2, .length = kDcBlock}), ReturnCode::kInvalidInput);
    EXPECT_EQ(code({.host = 0, .selection = DcSelection{4}, .length = kDcBlock}), ReturnCode::kInvalidInput);
    EXPECT_EQ(code({.host = 0, .length = 0}), ReturnCode::kInvalidInput);
    EXPECT_EQ(code({.host = 0, .length = kDcBlock / 2}), ReturnCode::kInvalidInput);
    EXPECT_EQ(code({.host = 0, .length = kDcBlock, .extents = {{}}}), ReturnCode::kInvalidInput);
    EXPECT_EQ(code({.host = 0, .selection = DcSelection::kPrescriptive}), ReturnCode::kInvalidInput);
    EXPECT_EQ(code({.host = 0, .length = gibibytes(1).value}), ReturnCode::kResourcesExhausted);
    const auto prescribe = [&](std::uint64_t dpa, std::uint64_t length) {
        return code({.host = 0,
                     .selection = DcSelection::kPrescriptive,
                     .length = length,
                     .extents = {{dpa, length, {}, 0}}});
    };
    EXPECT_EQ(prescribe(0, kDcBlock), ReturnCode::kResourcesExhausted) << "another host has it";
    EXPECT_EQ(prescribe(1, kDcBlock), ReturnCode::kInvalidExtentList);
    EXPECT_EQ(prescribe(kSharedBase, kDcBlock), ReturnCode::kInvalidExtentList) << "in another region";
    EXPECT_EQ(prescribe(gibibytes(7).value, kDcBlock), ReturnCode::kInvalidExtentList);
    EXPECT_THAT(dcd.extents_of(0), IsEmpty());
    EXPECT_THAT(dcd.events_of(0), IsEmpty());
}

TEST_F(DynamicCapacityDevice, ContiguousMemoryIsInOnePiece) {
    ASSERT_EQ(dcd.add({.host = 2,
                       .selection = DcSelection::kPrescriptive,
                       .extents = {{mebibytes(256).value, kDcBlock, {}, 0}}}),
              ReturnCode::kSuccess);
    const std::uint64_t most = mebibytes(510).value;
    EXPECT_EQ(dcd.add({.host = 0, .selection = DcSelection::kContiguous, .length = most}),
              ReturnCode::kResourcesExhausted);
    EXPECT_EQ(dcd.add({.host = 0, .selection = DcSelection::kFree, .length = most}), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.events_of(0), SizeIs(2));
}

TEST_F(DynamicCapacityDevice, ExtentsAndTagsAreLimited) {
    for (std::uint8_t tag = 1; tag <= 3; ++tag)
        ASSERT_EQ(dcd.add({.host = 0, .length = kDcBlock, .tag = tag_of(tag)}), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.add({.host = 0, .length = kDcBlock, .tag = tag_of(4)}), ReturnCode::kResourcesExhausted);
    EXPECT_EQ(dcd.add({.host = 1, .length = kDcBlock, .tag = tag_of(1)}), ReturnCode::kInvalidInput);
    for (int i = 0; i < 13; ++i)
        ASSERT_EQ(dcd.add({.host = 1, .length = kDcBlock}), ReturnCode::kSuccess) << i;
    EXPECT_EQ(dcd.add({.host = 1, .length = kDcBlock}), ReturnCode::kResourcesExhausted);
    const auto regions = dcd.get<fmapi::GetHostDcRegionConfiguration>({.host = 0});
    EXPECT_EQ(regions.available_extents, 0U);
    EXPECT_EQ(regions.available_tags, 0U);
}

TEST_F(DynamicCapacityDevice, ListsComeInPages) {
    for (int i = 0; i < 3; ++i) {
        dcd.add({.host = 0, .length = kDcBlock});
        accept_all(0);
    }
    const auto part = dcd.get<fmapi::GetDcRegionExtentLists>({.host = 0, .extents = 1, .first = 1});
    EXPECT_EQ(part.total, 3U);
    ASSERT_THAT(part.extents, SizeIs(1));
    EXPECT_EQ(part.extents[0].dpa, kDcBlock);
    EXPECT_EQ(dcd.get<fmapi::GetDcRegionExtentLists>({.host = 0}).total, 3U);
    EXPECT_EQ(dcd.at_device<fmapi::GetDcRegionExtentLists>({.host = 0, .extents = 1, .first = 4}).return_code,
              ReturnCode::kInvalidInput);
    // No more than fits into a response of the size that was agreed on.
    dcd.at_device<fmapi::SetResponseMessageLimit>({8});
    dcd.at_ld<fmapi::SetResponseMessageLimit>(0, {8});
    for (int i = 0; i < 6; ++i) {
        dcd.add({.host = 0, .length = kDcBlock});
        accept_all(0);
    }
    EXPECT_THAT(dcd.extents_of(0), SizeIs(5));
    EXPECT_THAT(dcd.get_of<fmapi::GetDynamicCapacityExtentList>(0, {.extents = 100}).extents, SizeIs(5));
}

TEST_F(DynamicCapacityDevice, RegionIsConfiguredWhileNobodyHasAnyOfIt) {
    const auto configure = [&](std::uint8_t region, std::uint64_t block, std::uint8_t sanitize) {
        auto code = ReturnCode::kRetryRequired;
        while (code == ReturnCode::kRetryRequired)
            code = dcd.at_device<fmapi::SetDcRegionConfiguration>({region, block, sanitize}).return_code;
        return code;
    };
    EXPECT_EQ(configure(2, kDcBlock, 0), ReturnCode::kUnsupported);
    EXPECT_EQ(configure(1, 3 * kDcBlock, 0), ReturnCode::kInvalidInput);
    EXPECT_EQ(configure(1, kDcBlock, 2), ReturnCode::kInvalidInput);
    write_file(dcd.media(), kSharedBase, "secret");
    EXPECT_EQ(configure(1, 2 * kDcBlock, 1), ReturnCode::kSuccess);
    const auto events = dcd.events_of(1);
    ASSERT_THAT(events, SizeIs(1));
    EXPECT_EQ(events[0].event, DynamicCapacityEvent::kRegionConfigurationUpdated);
    EXPECT_EQ(events[0].region, 1);
    dcd.events_of(0);
    dcd.events_of(2);
    EXPECT_EQ(dcd.add({.host = 0, .region = 1, .length = kDcBlock}), ReturnCode::kInvalidInput);
    give(0, 2 * kDcBlock, {}, 1);
    EXPECT_EQ(read_file(dcd.media(), kSharedBase, 6), std::string(6, '\0')) << "erased from now on";
    EXPECT_EQ(configure(1, kDcBlock, 0), ReturnCode::kUnsupported);
}

TEST_F(DynamicCapacityDevice, HostThatIsUnboundLeavesNothing) {
    ASSERT_EQ(dcd.manager.bind(0, 0, kDcdPort, 0), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.manager.vppb(0, 0).binding, fmapi::VppbBinding::kBoundLd);
    give(0, 2 * kDcBlock, tag_of(1));
    dcd.add({.host = 0, .length = kDcBlock});
    give(1, kDcBlock);
    ASSERT_EQ(dcd.manager.unbind(0, 0), ReturnCode::kSuccess);
    EXPECT_THAT(dcd.extents_of(0), IsEmpty());
    EXPECT_THAT(dcd.events_of(0), IsEmpty()) << "the next host reads none of it";
    EXPECT_EQ(dcd.get<fmapi::DynamicCapacityListTags>().total, 0U);
    EXPECT_THAT(dcd.extents_of(1), SizeIs(1));
}

TEST(DynamicCapacityFault, WhatCannotBeErasedIsNotOffered) {
    DcdSwitch dcd("        sanitize: fails\n");
    EXPECT_EQ(dcd.add({.host = 0, .length = kDcBlock}), ReturnCode::kResourcesExhausted);
    EXPECT_EQ(dcd.add({.host = 0, .region = 1, .length = kDcBlock}), ReturnCode::kSuccess);
    EXPECT_EQ(dcd.at_device<fmapi::SetDcRegionConfiguration>({0, 2 * kDcBlock, 0}).return_code,
              ReturnCode::kPermanentMediaFailure);
}

TEST(DynamicCapacityFault, OtherDevicesDoNotKnowTheCommands) {
    TestSwitch mld;
    Manager manager(mld.tcp());
    EXPECT_EQ(manager.call_device(2, fmapi::make_request(fmapi::Opcode::kGetDcdInfo, 0)).return_code,
              ReturnCode::kUnsupported);
    EXPECT_EQ(manager
                  .call_ld(2, 0,
                           fmapi::make_request(fmapi::Opcode::kGetDynamicCapacityExtentList, 0,
                                               fmapi::encode(fmapi::GetDynamicCapacityExtentListRequest{})))
                  .return_code,
              ReturnCode::kUnsupported);
}

TEST(DynamicCapacityHotplug, TheHostIsToldWhatItGotAndOfEachRecordWhileItIsBound) {
    const auto hosts = std::make_shared<FakeHotplug>();
    DcdSwitch dcd("", hosts);
    const auto add = [&](std::uint16_t host) {
        return dcd.add({.host = host, .region = 1, .length = kDcBlock});
    };
    ASSERT_EQ(add(0), ReturnCode::kSuccess);
    EXPECT_THAT(hosts->interrupted(), IsEmpty());
    ASSERT_EQ(dcd.manager.bind(0, 1, kDcdPort, 0), ReturnCode::kSuccess);
    const HotplugDevice device = hosts->attached().at(0);
    EXPECT_TRUE(device.dynamic);
    EXPECT_EQ(device.size, Bytes());
    EXPECT_EQ(device.serial.value, 0x201U);
    const std::size_t before = hosts->interrupted().size();
    ASSERT_EQ(add(0), ReturnCode::kSuccess);
    ASSERT_EQ(add(1), ReturnCode::kSuccess);
    EXPECT_TRUE(memtide::test::eventually([&] { return hosts->interrupted().size() > before; }));
    for (const HotplugSlot& slot : hosts->interrupted()) {
        EXPECT_EQ(slot.host.value, "host0");
        EXPECT_EQ(slot.vppb, 1);
    }
}

std::string complaint(const std::string& what, const std::string& by) {
    std::string text = dcd_topology("/media");
    text.replace(text.find(what), what.size(), by);
    const auto topology = parse_topology(text, "test.yaml");
    return topology ? "" : topology.error().message;
}

TEST(DynamicCapacityTopology, SaysWhatIsWrong) {
    using testing::HasSubstr;
    EXPECT_EQ(complaint("hosts: 3", "hosts: 16"), "");
    EXPECT_THAT(complaint("hosts: 3", "hosts: 17"), HasSubstr("from 1 to 16"));
    EXPECT_THAT(complaint("hosts: 3", "size: 1GiB"), HasSubstr("as large as its regions"));
    EXPECT_THAT(complaint("kind: dcd", "kind: mld"), HasSubstr("only a dcd has this"));
    EXPECT_THAT(complaint("512MiB, block: 2MiB", "512MiB, block: 3MiB"), HasSubstr("a power of two"));
    EXPECT_THAT(complaint("512MiB, block: 2MiB", "512MiB, block: 1GiB"), HasSubstr("divides"));
    EXPECT_THAT(complaint("512MiB", "500MiB"), HasSubstr("multiple of 256MiB"));
    EXPECT_THAT(complaint("extents: 16", "extents: 0"), HasSubstr("from 1 to 1024"));
    EXPECT_THAT(complaint("kind: dcd", "kind: dcx"), HasSubstr("none of sld, mld and dcd"));
}

TEST(DynamicCapacityTopology, ExampleIsGood) {
    const auto example = load_topology(MEMTIDE_CONFIG "/topologies/one-switch-one-dcd.yaml");
    ASSERT_TRUE(example) << example.error().message;
    EXPECT_EQ(example->switches[0].devices[0].kind, DeviceKind::kDcd);
}

// As when the switch or the device loses its power: no operation unbinds then.
TEST(DynamicCapacity, AHostThatIsUnboundAtOnceLeavesNothingToTheNext) {
    TemporaryFolder folder;
    const Topology topology = parse_topology(dcd_topology(folder.path()), "test.yaml").value();
    SwitchModel model(topology.switches[0]);
    const fmapi::BindVppbRequest bind{.vcs = 0, .vppb = 0, .port = kDcdPort, .ld = 0};
    const Answer started = handle(model, fmapi::MctpType::kFmApi,
                                  fmapi::make_request(fmapi::Opcode::kBindVppb, 0, fmapi::encode(bind)));
    finish(model, started.started.value(), ReturnCode::kSuccess);

    const auto at_device = [&](const fmapi::Message& request) {
        const fmapi::TunnelRequest tunnel{.id = kDcdPort, .command = fmapi::encode_message(request)};
        const Answer answer =
            handle(model, fmapi::MctpType::kFmApi,
                   fmapi::make_request(fmapi::Opcode::kTunnelManagementCommand, 0, fmapi::encode(tunnel)));
        const auto inside = fmapi::decode<fmapi::TunnelResponse>(answer.response.payload).value();
        return fmapi::decode_message(inside.response).value();
    };
    const fmapi::InitiateDynamicCapacityAddRequest add{
        .host = 0, .region = 1, .length = 4 * kDcBlock, .tag = tag_of(1), .extents = {}};
    ASSERT_EQ(
        at_device(fmapi::make_request(fmapi::Opcode::kInitiateDynamicCapacityAdd, 0, fmapi::encode(add)))
            .return_code,
        ReturnCode::kSuccess);
    const auto tags = [&] {
        const auto answer =
            at_device(fmapi::make_request(fmapi::Opcode::kDynamicCapacityListTags, 0,
                                          fmapi::encode(fmapi::DynamicCapacityListTagsRequest{})));
        return fmapi::decode<fmapi::DynamicCapacityListTagsResponse>(answer.payload).value().total;
    };
    ASSERT_EQ(tags(), 1U);

    unbind_at_once(model, {0, 0});
    EXPECT_EQ(tags(), 0U);
    EXPECT_FALSE(model.devices[0].lds[0].taken_by.has_value());
}

// A device that comes back with its state lost; what is being erased meanwhile is erased to its end.
TEST(DynamicCapacityPower, NothingIsRememberedWithoutPower) {
    const TemporaryFolder folder("/dev/shm");
    const Topology topology = parse_topology(dcd_topology(folder.path()), "test.yaml").value();
    const std::shared_ptr<Device> device = make_device(topology.switches[0].devices[0]);
    DynamicCapacity& memory = device->dynamic->memory;
    ASSERT_EQ(memory.add({.host = 0, .region = 1, .length = 2 * kDcBlock, .tag = tag_of(1)}, 9),
              ReturnCode::kSuccess);
    ASSERT_EQ(memory.respond(0, {{{kSharedBase, 2 * kDcBlock}}, 0}), ReturnCode::kSuccess);
    ASSERT_EQ(memory.add({.host = 1, .region = 1, .length = kDcBlock, .tag = tag_of(2)}, 9),
              ReturnCode::kSuccess);
    device->dynamic->log_events();
    const std::uint32_t generation = memory.generation(0);
    const ByteRange erasing = memory.take_dirty().value();
    reset(*device);

    EXPECT_THAT(memory.accepted(0), IsEmpty());
    EXPECT_NE(memory.generation(0), generation);
    EXPECT_THAT(memory.offered(1), IsEmpty());
    EXPECT_THAT(memory.tags(), IsEmpty());
    EXPECT_EQ(device->dynamic->host_events[0].room(fmapi::EventLog::kDynamicCapacity),
              EventLogs::kDynamicCapacityRecords);
    EXPECT_EQ(memory.free_memory().size(), mebibytes(256).value);
    EXPECT_FALSE(memory.take_dirty());
    memory.erased(erasing, false);
    reset(*device);
    EXPECT_EQ(memory.take_dirty(), std::optional(erasing));
}

}  // namespace
}  // namespace memtide::emul::test
