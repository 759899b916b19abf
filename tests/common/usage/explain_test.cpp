// What programs say about words that they do not understand.
#include "common/usage/explain.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace memtide {
namespace {

// A program with commands, commands of commands, and options in a group.
std::string complaint_about(std::vector<std::string> words) {
    CLI::App app{"", "program"};
    std::string value;
    app.require_subcommand(1);
    app.add_option("--config", value);
    CLI::App* const rack = app.add_subcommand("rack", "");
    rack->require_subcommand(1);
    CLI::App* const up = rack->add_subcommand("up", "");
    up->add_option_group("where")->add_option("--timeout", value);
    up->add_option("TOPOLOGY", value)->required();
    rack->add_subcommand("hidden", "")->group("");
    app.add_subcommand("switch", "");
    try {
        std::reverse(words.begin(), words.end());
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        return explain(app, error);
    }
    return "";
}

TEST(Explain, NamesACommandThatIsNoneAndWhatWasMeant) {
    EXPECT_EQ(complaint_about({"swich"}), "unknown command \"swich\"; did you mean \"switch\"?");
    EXPECT_EQ(complaint_about({"foo"}), "unknown command \"foo\"");
    EXPECT_EQ(complaint_about({"rack", "ups"}), "rack: unknown command \"ups\"; did you mean \"up\"?");
    EXPECT_EQ(complaint_about({"rack", "hiden"}), "rack: unknown command \"hiden\"");
}

TEST(Explain, NamesAnOptionThatIsNoneAndWhatWasMeant) {
    EXPECT_EQ(complaint_about({"--confg", "x", "switch"}),
              "unknown option \"--confg\"; did you mean \"--config\"?");
    EXPECT_EQ(complaint_about({"rack", "up", "a", "--timout=3"}),
              "unknown option \"--timout\"; did you mean \"--timeout\"?");
}

TEST(Explain, SaysWhatIsMissingOrTooMuch) {
    EXPECT_EQ(complaint_about({}), "a command is missing");
    EXPECT_EQ(complaint_about({"rack"}), "rack: a command is missing");
    EXPECT_EQ(complaint_about({"rack", "up"}), "rack up: TOPOLOGY is required");
    EXPECT_EQ(complaint_about({"rack", "up", "a", "b"}), "rack up: unexpected argument \"b\"");
    EXPECT_EQ(complaint_about({"rack", "up", "a"}), "");
}

TEST(Explain, SuggestsValuesThatAreNear) {
    EXPECT_EQ(did_you_mean("opertor", {"admin", "operator"}), "; did you mean \"operator\"?");
    EXPECT_EQ(did_you_mean("xyz", {"admin", "operator"}), "");
}

}  // namespace
}  // namespace memtide
