// What the real program says about what was typed.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/commands/rack.h"
#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

using Words = std::vector<std::string>;

std::string refusal_of(const Words& words) {
    const auto output = memtide("http://127.0.0.1:1", words);
    EXPECT_EQ(output.exit.code, 2) << output.standard_error;
    EXPECT_EQ(output.standard_output, "");
    return output.standard_error.substr(0, output.standard_error.find('\n'));
}

std::string help_of(const Words& words) {
    const auto output = memtide("", words);
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    EXPECT_EQ(output.standard_error, "");
    return output.standard_output;
}

TEST(Usage, MistypedNamesAreNamedWithWhatWasMeant) {
    EXPECT_EQ(refusal_of({"poool"}), "memtide: unknown command \"poool\"; did you mean \"pool\"?");
    EXPECT_EQ(refusal_of({"bogus"}), "memtide: unknown command \"bogus\"");
    EXPECT_EQ(refusal_of({"--jsno", "pool"}), "memtide: unknown option \"--jsno\"; did you mean \"--json\"?");
    EXPECT_EQ(refusal_of({"compose", "--tenent", "x", "host0", "256MiB"}),
              "memtide: unknown option \"--tenent\"; did you mean \"--tenant\"?");
    EXPECT_EQ(refusal_of({"help", "lisst"}), "memtide: unknown command \"lisst\"; did you mean \"list\"?");
}

TEST(Usage, EveryComplaintBeginsWithTheProgramsName) {
    for (const Words& words : {Words{},
                               {"compose"},
                               {"compose", "host0"},
                               {"compose", "host0", "1GiB", "--label", "x"},
                               {"compose", "host0", "1GiB", "--ttl", "0"},
                               {"release", "c-1", "--timeout", "x"},
                               {"release", "c-1", "--timeout", "86401"},
                               {"list", "--state"},
                               {"pool", "extra"},
                               {"events", "--since", "-5"},
                               {"compose", "", "256MiB"}})
        EXPECT_TRUE(refusal_of(words).starts_with("memtide: ")) << refusal_of(words);
    EXPECT_EQ(refusal_of({"pool", "extra"}), "memtide: pool: unexpected argument \"extra\"");
}

TEST(Usage, TimesAreUnderstoodAsTheManagerDoes) {
    EXPECT_EQ(refusal_of({"lease", "c-1", "soon"}),
              "memtide: lease: TIME: \"soon\" is not a duration such as 250ms, 60s, 5min, 2h or 7d");
    EXPECT_NE(refusal_of({"compose", "host0", "256MiB", "--ttl", "250ms"}).find("whole seconds"),
              std::string::npos);
}

TEST(Usage, TheCommandsOfRackAreNamedTooWhenMistyped) {
    const auto output = memtide("", {"rack", "ups"});
    EXPECT_EQ(output.exit.code, 2);
    EXPECT_TRUE(output.standard_error.starts_with(
        "memtide-cxl-emul: rack: unknown command \"ups\"; did you mean \"up\"?\n"))
        << output.standard_error;
    EXPECT_NE(memtide("", {"rack", "--help"}).standard_output.find("memtide-cxl-emul rack"),
              std::string::npos);
}

TEST(Usage, AnEmptyIdIsRefused) {
    EXPECT_EQ(refusal_of({"release", ""}), "memtide: release: ID: must not be empty");
    EXPECT_EQ(refusal_of({"show", ""}), "memtide: show: ID: must not be empty");
}

TEST(Usage, SizesAreCheckedBeforeTheManagerIsAsked) {
    EXPECT_EQ(refusal_of({"compose", "host0", "256"}),
              "memtide: compose: SIZE: 256 is not a multiple of 256MiB; did you mean 256MiB?");
    EXPECT_NE(refusal_of({"compose", "host0", "256MB"}).find("did you mean 256MiB?"), std::string::npos);
    EXPECT_NE(refusal_of({"compose", "host0", "abc"}).find("\"abc\" is not a size"), std::string::npos);
}

TEST(Usage, HelpIsAlsoACommand) {
    EXPECT_EQ(help_of({"help"}), help_of({"--help"}));
    EXPECT_EQ(help_of({"help", "compose"}), help_of({"compose", "--help"}));
    EXPECT_NE(help_of({"help", "rack"}).find("exec"), std::string::npos);
    EXPECT_EQ(help_of({"-V"}), help_of({"--version"}));
}

TEST(Usage, EachCommandHasExamplesOfItsOwnAndPlainOptions) {
    EXPECT_NE(help_of({"--help"}).find("MEMTIDE_URL    "), std::string::npos);
    for (const char* command : {"pool", "hosts", "switches", "devices", "tenants", "topology", "compose",
                                "release", "list", "show", "history", "events"}) {
        const std::string help = help_of({command, "--help"});
        EXPECT_NE(help.find("Examples:\n  memtide "), std::string::npos) << help;
        EXPECT_NE(help.find(std::string(" ") + command), std::string::npos) << help;
        EXPECT_EQ(help.find("Exit codes"), std::string::npos) << help;
        for (const char* noise : {"UINT", "INT in", "TEXT", "REQUIRED"})
            EXPECT_EQ(help.find(noise), std::string::npos) << help;
    }
    EXPECT_NE(help_of({"compose", "--help"}).find("How long to wait for it"), std::string::npos);
}

TEST(Usage, JsonBeforeRackGoesToItsAction) {
    const Words with_json{"status", "--json", "T"};
    EXPECT_EQ(rack_arguments({"--json", "rack", "status", "T"}), with_json);
    EXPECT_EQ(rack_arguments({"--url", "http://x", "--json", "rack", "status", "T"}), with_json);
    EXPECT_EQ(rack_arguments({"rack", "status", "T", "--json"}), (Words{"status", "T", "--json"}));
    EXPECT_EQ(rack_arguments({"rack", "exec", "T", "host0", "--", "ls", "--json"}),
              (Words{"exec", "T", "host0", "--", "ls", "--json"}));
    EXPECT_EQ(rack_arguments({"pool", "rack"}), std::nullopt);
    EXPECT_EQ(rack_arguments({"--url", "rack"}), std::nullopt);
    EXPECT_EQ(rack_arguments({}), std::nullopt);
    const auto output = memtide("", {"--json", "rack", "status", "/no/such/topology"});
    EXPECT_EQ(output.standard_error.find("not expected"), std::string::npos) << output.standard_error;
}

}  // namespace
}  // namespace memtide::cli
