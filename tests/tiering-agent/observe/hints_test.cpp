#include "tiering-agent/observe/hints.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/hints/hint_table.h"
#include "tests/tiering-agent/observe/fake_tree.h"

namespace memtide::agent {
namespace {

using hint_table::Entry;
using hint_table::Header;
using testing::ElementsAre;
using testing::IsEmpty;

std::string table(std::uint32_t sequence, const std::vector<Entry>& entries) {
    Header header;
    std::memcpy(header.magic, hint_table::kMagic, sizeof header.magic);
    header.sequence = sequence;
    header.entries = static_cast<std::uint32_t>(entries.size());
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.append(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof(Entry));
    return bytes;
}
std::vector<HintRange> of(const std::optional<HintRanges>& hints) {
    return hints ? std::vector(hints->ranges().begin(), hints->ranges().end())
                 : std::vector<HintRange>{{0, 0, Hint::kNone}};
}

TEST(HintTable, RangesAndWhatIsSaidOfThem) {
    EXPECT_THAT(
        of(parse_hints(table(2, {{0x10000 | 1, 0x12000}, {0x12000 | 3, 0x13000}, {0x20000 | 2, 0x21000}}))),
        ElementsAre(HintRange{0x10, 0x12, Hint::kHot}, HintRange{0x12, 0x13, Hint::kPin},
                    HintRange{0x20, 0x21, Hint::kCold}));
    EXPECT_THAT(of(parse_hints(table(0, {}))), IsEmpty());
}

TEST(HintTable, NothingInItIsTrusted) {
    const std::string good = table(2, {{0x10000 | 1, 0x12000}});
    for (std::size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(parse_hints(good.substr(0, size)));
    EXPECT_FALSE(parse_hints(std::string(good.size(), '\0')));
    EXPECT_FALSE(parse_hints(table(3, {}))) << "it is being written";
    EXPECT_FALSE(parse_hints(table(2, {{0x10000 | 4, 0x12000}})));
    EXPECT_FALSE(parse_hints(table(2, {{0x10000, 0x12000}})));
    EXPECT_FALSE(parse_hints(table(2, {{0x10000 | 1, 0x10000}})));
    EXPECT_FALSE(parse_hints(table(2, {{0x10000 | 1, 0x12001}})));
    EXPECT_FALSE(parse_hints(table(2, {{0x10000 | 1, 0x12000}, {0x11000 | 1, 0x13000}})));
    std::string many = good;
    const std::uint32_t entries = 0xffff'ffff;
    std::memcpy(many.data() + offsetof(Header, entries), &entries, sizeof entries);
    EXPECT_FALSE(parse_hints(many));
}

class ReadHints : public testing::Test {
  protected:
    void put(const std::string& bytes) { tree_.put("proc/100/mem", std::string(kAddress, '\0') + bytes); }
    std::vector<HintRange> read() {
        reader_.refresh(tree_.files(), 100, vmas_);
        return {reader_.hints().ranges().begin(), reader_.hints().ranges().end()};
    }
    static constexpr std::uint64_t kAddress = 0x3000;
    FakeTree tree_;
    HintReader reader_;
    std::vector<Vma> vmas_{
        {.range = {kAddress, kAddress + hint_table::kSize}, .name = hint_table::kMappingName}};
};

TEST_F(ReadHints, FollowsWhatTheProcessSays) {
    put(table(2, {{0x10000 | 1, 0x12000}}));
    EXPECT_THAT(read(), ElementsAre(HintRange{0x10, 0x12, Hint::kHot}));
    put(table(2, {{0x10000 | 2, 0x12000}}));
    EXPECT_THAT(read(), ElementsAre(HintRange{0x10, 0x12, Hint::kHot})) << "it is not said to have changed";
    put(table(3, {}));
    EXPECT_THAT(read(), ElementsAre(HintRange{0x10, 0x12, Hint::kHot})) << "it is being written";
    put(table(4, {{0x10000 | 2, 0x12000}}));
    EXPECT_THAT(read(), ElementsAre(HintRange{0x10, 0x12, Hint::kCold}));
    put("something else altogether, and longer than a header");
    EXPECT_THAT(read(), ElementsAre(HintRange{0x10, 0x12, Hint::kCold}));
    vmas_.clear();
    EXPECT_THAT(read(), IsEmpty()) << "another program runs there now";
}

TEST_F(ReadHints, AProcessThatCannotBeReadSaysNothing) {
    EXPECT_THAT(read(), IsEmpty());
    put(table(2, {{0x10000 | 1, 0x12000}}));
    vmas_[0].range.end = vmas_[0].range.begin + 4096;
    EXPECT_THAT(read(), IsEmpty()) << "of another size";
}

}  // namespace
}  // namespace memtide::agent
