#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "cxl-emul/switch/dynamic_capacity.h"

// Whatever a fabric manager and three hosts do: the memory is where a model of single blocks, which knows
// nothing of extents' bookkeeping, says that it is.
namespace memtide::emul::test {
namespace {

using fmapi::ReturnCode;

constexpr std::uint64_t kBlock = 64;
constexpr int kBlocksPerRegion = 12;
constexpr int kBlocks = 2 * kBlocksPerRegion;
constexpr int kHosts = 3;
constexpr DynamicCapacity::Limits kLimits{.extents = 14, .tags = 5};

using Blocks = std::set<int>;
struct Run {  // of blocks: [begin, end)
    int begin;
    int end;
};
using Runs = std::vector<Run>;

Blocks blocks_of(const Runs& runs) {
    Blocks all;
    for (const Run& run : runs)
        for (int block = run.begin; block < run.end; ++block) all.insert(block);
    return all;
}

template <typename Extents>
Runs runs_of(const Extents& extents) {
    Runs runs;
    for (const auto& extent : extents)
        runs.push_back(
            {static_cast<int>(extent.dpa / kBlock), static_cast<int>((extent.dpa + extent.length) / kBlock)});
    return runs;
}

fmapi::DcTag numbered_tag(unsigned number) {
    fmapi::DcTag tag{};
    tag[15] = static_cast<std::uint8_t>(number);
    return tag;
}

// The model. Region 0 sanitizes, region 1 does not and is shareable.
struct BlockLedger {
    struct Offer {
        Runs runs;  // none: withdrawn
        unsigned tag = 0;
        bool shared = false;
    };
    struct Host {
        Blocks accepted;
        std::map<int, unsigned> tag_of_block;
        std::deque<Offer> offers;
        Blocks sanitize;  // when given back
    };
    std::vector<Host> hosts{kHosts};
    std::map<unsigned, Blocks> shared;  // what a tag in the shareable region is
    std::set<unsigned> referenced;
    std::set<unsigned> sanitize_tags;
    // What somebody wrote there, and whether it must be gone before the next offer.
    std::vector<bool> written = std::vector<bool>(kBlocks);
    std::vector<bool> must_be_erased = std::vector<bool>(kBlocks);

    [[nodiscard]] bool has(const Host& host, unsigned tag) const {
        return std::ranges::any_of(host.tag_of_block, [&](auto& one) { return one.second == tag; }) ||
               std::ranges::any_of(host.offers,
                                   [&](auto& one) { return !one.runs.empty() && one.tag == tag; });
    }
    [[nodiscard]] bool is_used(unsigned tag) const {
        return shared.contains(tag) ||
               std::ranges::any_of(hosts, [&](const Host& host) { return has(host, tag); });
    }
    // Blocks that are somebody's.
    [[nodiscard]] Blocks used() const {
        Blocks all;
        for (const Host& host : hosts) {
            all.insert(host.accepted.begin(), host.accepted.end());
            for (const Offer& offer : host.offers) all.merge(blocks_of(offer.runs));
        }
        for (const auto& [tag, blocks] : shared) all.insert(blocks.begin(), blocks.end());
        return all;
    }
    void leave(int block, bool sanitize) {
        if (block < kBlocksPerRegion || sanitize) must_be_erased[static_cast<std::size_t>(block)] = true;
    }
    void take(Host& host, const Blocks& gone, bool sanitize) {
        for (const int block : gone) {
            if (!host.accepted.erase(block)) continue;
            const unsigned tag = host.tag_of_block[block];
            const bool erase = (host.sanitize.erase(block) != 0) || sanitize;
            host.tag_of_block.erase(block);
            if (!shared.contains(tag)) leave(block, erase);
            if (shared.contains(tag) && erase) sanitize_tags.insert(tag);
        }
    }
    void withdraw(Host& host, const Blocks& gone) {
        for (Offer& offer : host.offers)
            std::erase_if(offer.runs, [&](const Run& run) { return gone.contains(run.begin); });
    }
    void settle() {
        for (auto it = shared.begin(); it != shared.end();) {
            const unsigned tag = it->first;
            const bool needed = referenced.contains(tag) ||
                                std::ranges::any_of(hosts, [&](auto& host) { return has(host, tag); });
            if (needed) {
                ++it;
                continue;
            }
            for (const int block : it->second) leave(block, sanitize_tags.contains(tag));
            sanitize_tags.erase(tag);
            it = shared.erase(it);
        }
    }
    [[nodiscard]] bool splits_shared(const Blocks& of, const std::map<int, unsigned>& tags,
                                     const Blocks& gone) const {
        for (const int block : of) {
            const auto tag = tags.find(block);
            if (!gone.contains(block) || tag == tags.end() || !shared.contains(tag->second)) continue;
            if (!std::ranges::includes(gone, shared.at(tag->second))) return true;
        }
        return false;
    }
};

class Life {
  public:
    explicit Life(unsigned seed) : random_(seed) {
        erase_all();
        memory_.take_events();
    }

    void step() {
        switch (number(9)) {
            case 0:
            case 1:
            case 2:
                add();
                break;
            case 3:
            case 4:
            case 5:
                respond();
                break;
            case 6:
                release();
                break;
            case 7:
                give_back();
                break;
            default:
                refer_or_detach();
        }
        if (number(2) == 0) erase_all();
        memory_.take_events();
        compare();
    }
    [[nodiscard]] int accepted() const { return accepted_; }
    [[nodiscard]] int shared() const { return shared_; }
    [[nodiscard]] int forced() const { return forced_; }

  private:
    unsigned number(unsigned below) { return static_cast<unsigned>(random_() >> 8) % below; }
    Run run() {
        const int begin = static_cast<int>(number(kBlocks));
        return {begin, begin + 1 + static_cast<int>(number(4))};
    }

    void erase_all() {
        while (const auto range = memory_.take_dirty()) {
            for (auto block = range->begin / kBlock; block < range->end / kBlock; ++block) {
                ASSERT_FALSE(model_.used().contains(static_cast<int>(block))) << "erased under a host";
                model_.written[block] = model_.must_be_erased[block] = false;
            }
            memory_.erased(*range, true);
        }
    }

    void add() {
        fmapi::InitiateDynamicCapacityAddRequest request;
        request.host = static_cast<std::uint16_t>(number(kHosts));
        request.selection = fmapi::DcSelection{static_cast<std::uint8_t>(number(4))};
        request.region = static_cast<std::uint8_t>(number(2));
        const unsigned tag = number(4) == 0 ? 0 : 1 + number(6);
        request.tag = numbered_tag(tag);
        request.length = (1 + number(5)) * kBlock;
        if (request.selection == fmapi::DcSelection::kShared) request.length = 0;
        if (request.selection == fmapi::DcSelection::kPrescriptive)
            for (unsigned i = 0; i <= number(2); ++i) {
                const Run one = run();
                request.extents.push_back({static_cast<std::uint64_t>(one.begin) * kBlock,
                                           static_cast<std::uint64_t>(one.end - one.begin) * kBlock,
                                           {},
                                           0});
            }
        const Blocks used = model_.used();
        const bool was_used = model_.is_used(tag);
        const bool shares = request.selection == fmapi::DcSelection::kShared;
        if (memory_.add(request, 100) != ReturnCode::kSuccess) return;

        BlockLedger::Host& host = model_.hosts[request.host];
        BlockLedger::Offer offer;
        offer.tag = tag;
        std::uint64_t length = 0;
        for (const auto& event : memory_.take_events()) {
            EXPECT_EQ(event.host, request.host);
            EXPECT_EQ(event.record.extent.tag, request.tag);
            offer.runs.push_back(runs_of(std::vector{event.record.extent}).front());
            length += event.record.extent.length;
        }
        offer.shared = tag != 0 && request.region == 1;
        const Blocks blocks = blocks_of(offer.runs);
        EXPECT_EQ(blocks.size() * kBlock, length) << "extents overlap";
        if (shares) {
            ++shared_;
            ASSERT_TRUE(model_.shared.contains(tag));
            EXPECT_EQ(blocks, model_.shared[tag]);
            EXPECT_FALSE(model_.has(host, tag));
        } else {
            EXPECT_FALSE(tag != 0 && was_used) << "a tag was given twice";
            const bool prescribed = request.selection == fmapi::DcSelection::kPrescriptive;
            EXPECT_TRUE(prescribed || length == request.length);
            EXPECT_TRUE(!prescribed || blocks == blocks_of(runs_of(request.extents)));
            EXPECT_TRUE(request.selection != fmapi::DcSelection::kContiguous || offer.runs.size() == 1);
            for (const int block : blocks) {
                EXPECT_FALSE(used.contains(block)) << "block " << block << " is somebody's";
                EXPECT_EQ(block / kBlocksPerRegion, request.region);
                EXPECT_FALSE(model_.must_be_erased[static_cast<std::size_t>(block)])
                    << "block " << block << " was not erased";
            }
            if (offer.shared) model_.shared[tag] = blocks;
        }
        host.offers.push_back(std::move(offer));
    }

    fmapi::UpdatedDcExtents list_of(const Runs& runs) {
        fmapi::UpdatedDcExtents list;
        for (const Run& one : runs)
            list.extents.push_back({static_cast<std::uint64_t>(one.begin) * kBlock,
                                    static_cast<std::uint64_t>(one.end - one.begin) * kBlock});
        return list;
    }

    // Mostly all or some of an offer, sometimes nothing or anything.
    void respond() {
        const std::size_t index = number(kHosts);
        BlockLedger::Host& host = model_.hosts[index];
        Runs wanted;
        if (!host.offers.empty() && number(6) != 0) {
            wanted = host.offers[number(static_cast<unsigned>(host.offers.size()))].runs;
            if (number(4) == 0 && !wanted.empty()) wanted.pop_back();
            if (number(4) == 0 && !wanted.empty()) wanted.back().end = wanted.back().begin + 1;
        } else if (number(2) == 0) {
            wanted = {run()};
        }
        const ReturnCode code = memory_.respond(index, list_of(wanted));
        if (wanted.empty()) {
            EXPECT_EQ(code == ReturnCode::kSuccess, !host.offers.empty());
            if (!host.offers.empty()) host.offers.pop_front();
            model_.settle();
            return;
        }
        const auto offer = std::ranges::find_if(host.offers, [&](const BlockLedger::Offer& one) {
            return std::ranges::includes(blocks_of(one.runs), blocks_of(wanted));
        });
        if (code != ReturnCode::kSuccess) {
            const bool was_withdrawn = !host.offers.empty() && host.offers.front().runs.empty();
            if (code == ReturnCode::kInvalidPhysicalAddress && was_withdrawn) host.offers.pop_front();
            return;
        }
        ASSERT_NE(offer, host.offers.end()) << "what was not offered was accepted";
        EXPECT_TRUE(!offer->shared || blocks_of(wanted) == blocks_of(offer->runs));
        ++accepted_;
        for (const int block : blocks_of(wanted)) {
            host.accepted.insert(block);
            host.tag_of_block[block] = offer->tag;
            model_.written[static_cast<std::size_t>(block)] = true;
        }
        // Withdrawn offers before it are passed.
        auto before = offer - host.offers.begin();
        host.offers.erase(offer);
        for (; before > 0 && host.offers.front().runs.empty(); --before) host.offers.pop_front();
        model_.settle();
    }

    void release() {
        fmapi::InitiateDynamicCapacityReleaseRequest request;
        request.host = static_cast<std::uint16_t>(number(kHosts));
        BlockLedger::Host& host = model_.hosts[request.host];
        const bool forced = number(2) == 0;
        const bool sanitize = number(2) == 0;
        request.flags = static_cast<std::uint8_t>((forced ? fmapi::kDcForcedRemoval : 0) |
                                                  (sanitize ? fmapi::kDcSanitizeOnRelease : 0));
        const unsigned tag = 1 + number(6);
        Runs runs;
        if (number(2) == 0) {
            request.tag = numbered_tag(tag);
        } else {
            request.flags |= static_cast<std::uint8_t>(fmapi::DcRemoval::kPrescriptive);
            runs = {run()};
            if (!host.offers.empty() && number(2) == 0) runs = host.offers.front().runs;
            for (const auto& one : list_of(runs).extents)
                request.extents.push_back({one.dpa, one.length, {}, 0});
        }
        if (memory_.release(request, 100) != ReturnCode::kSuccess) return;

        Blocks gone = blocks_of(runs);
        if (runs.empty()) {
            for (const auto& [block, own] : host.tag_of_block)
                if (own == tag) gone.insert(block);
            for (const auto& offer : host.offers)
                if (forced && offer.tag == tag) gone.merge(blocks_of(offer.runs));
        }
        EXPECT_FALSE(gone.empty());
        EXPECT_FALSE(model_.splits_shared(host.accepted, host.tag_of_block, gone));
        if (!forced) {
            EXPECT_TRUE(std::ranges::includes(host.accepted, gone));
            if (sanitize) host.sanitize.insert(gone.begin(), gone.end());
            return;
        }
        ++forced_;
        model_.take(host, gone, sanitize);
        model_.withdraw(host, gone);
        model_.settle();
    }

    void give_back() {
        const std::size_t index = number(kHosts);
        BlockLedger::Host& host = model_.hosts[index];
        Runs runs{run()};
        const auto own = memory_.accepted(index);
        if (!own.empty() && number(4) != 0) {
            runs = runs_of(std::vector{own[number(static_cast<unsigned>(own.size()))]});
            if (number(3) == 0) runs[0].begin = runs[0].end - 1;
        }
        const Blocks gone = blocks_of(runs);
        if (memory_.give_back(index, list_of(runs)) != ReturnCode::kSuccess) return;
        EXPECT_TRUE(std::ranges::includes(host.accepted, gone));
        EXPECT_FALSE(model_.splits_shared(host.accepted, host.tag_of_block, gone));
        model_.take(host, gone, false);
        model_.settle();
    }

    void refer_or_detach() {
        const unsigned tag = 1 + number(6);
        const unsigned what = number(12);
        if (what == 0) {
            const std::size_t index = number(kHosts);
            BlockLedger::Host& host = model_.hosts[index];
            memory_.detach(index);
            model_.take(host, Blocks(host.accepted), false);
            host.offers.clear();
            model_.settle();
        } else if (what < 5) {
            const bool done = memory_.add_reference(numbered_tag(tag)) == ReturnCode::kSuccess;
            EXPECT_EQ(done, model_.shared.contains(tag));
            if (done) model_.referenced.insert(tag);
        } else {
            const bool done = memory_.remove_reference(numbered_tag(tag)) == ReturnCode::kSuccess;
            EXPECT_EQ(done, model_.referenced.erase(tag) != 0);
            model_.settle();
        }
    }

    void compare() {
        std::size_t extents = 0;
        for (std::size_t i = 0; i < kHosts; ++i) {
            const BlockLedger::Host& host = model_.hosts[i];
            EXPECT_EQ(blocks_of(runs_of(memory_.accepted(i))), host.accepted) << "host " << i;
            Blocks offered;
            for (const auto& offer : host.offers) offered.merge(blocks_of(offer.runs));
            EXPECT_EQ(blocks_of(runs_of(memory_.offered(i))), offered) << "host " << i;
            extents += memory_.accepted(i).size() + memory_.offered(i).size();
            check_exclusive(i);
        }
        EXPECT_EQ(extents + memory_.available_extents(), kLimits.extents);
        EXPECT_LE(extents, kLimits.extents);
        EXPECT_EQ(memory_.tags().size() + memory_.available_tags(), kLimits.tags);
        EXPECT_LE(memory_.tags().size(), kLimits.tags);
        for (unsigned tag = 1; tag <= 6; ++tag)
            EXPECT_EQ(std::ranges::count(memory_.tags(), numbered_tag(tag), &fmapi::DcTagInformation::tag),
                      model_.is_used(tag) ? 1 : 0);
        const Blocks used = model_.used();
        for (int block = 0; block < kBlocks; ++block) {
            const auto begin = static_cast<std::uint64_t>(block) * kBlock;
            const bool free = memory_.free_memory().contains({begin, begin + kBlock});
            EXPECT_EQ(free, !used.contains(block) && !model_.must_be_erased[static_cast<std::size_t>(block)])
                << "block " << block;
        }
    }

    // No byte in two hosts' lists, unless both have it under its shared tag.
    void check_exclusive(std::size_t index) {
        for (std::size_t other = index + 1; other < kHosts; ++other)
            for (const auto& a : memory_.accepted(index))
                for (const auto& b : memory_.accepted(other)) {
                    if (a.dpa >= b.dpa + b.length || b.dpa >= a.dpa + a.length) continue;
                    EXPECT_EQ(a, b);
                    EXPECT_NE(a.shared_sequence, 0);
                }
    }

    std::minstd_rand random_;
    DynamicCapacity memory_{{{{0, kBlocksPerRegion* kBlock}, kBlock, false, true},
                             {{kBlocksPerRegion * kBlock, kBlocks* kBlock}, kBlock, true, false}},
                            kHosts,
                            kLimits};
    BlockLedger model_;
    int accepted_ = 0;
    int shared_ = 0;
    int forced_ = 0;
};

TEST(DynamicCapacityProperty, MemoryIsWhereAModelOfBlocksSaysThatItIs) {
    int accepted = 0;
    int shared = 0;
    int forced = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
        Life life(seed);
        for (int i = 0; i < 400; ++i) {
            life.step();
            ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " step " << i;
        }
        accepted += life.accepted();
        shared += life.shared();
        forced += life.forced();
    }
    // Or nothing was tested.
    EXPECT_GT(accepted, 500);
    EXPECT_GT(shared, 40);
    EXPECT_GT(forced, 60);
}

}  // namespace
}  // namespace memtide::emul::test
