#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tiering-agent/app/agent_config.h"

namespace memtide::agent {
namespace {

using namespace std::chrono_literals;

class AgentConfigFile : public testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = testing::TempDir() + "agent-config.XXXXXX";
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    Result<AgentConfig> load(const std::string& text) {
        const std::string path = folder_ + "/agent.yaml";
        std::ofstream(path) << text;
        return load_config(path);
    }
    void expect_mistake(const std::string& text, const std::string& where, const std::string& what) {
        const auto config = load(text);
        ASSERT_FALSE(config.has_value()) << text;
        EXPECT_NE(config.error().message.find("agent.yaml:" + where), std::string::npos)
            << config.error().message;
        EXPECT_NE(config.error().message.find(what), std::string::npos) << config.error().message;
    }
    std::string folder_;
};

TEST_F(AgentConfigFile, OfTheRepositoryIsGoodAndHasTheDefaults) {
    const auto config = load_config(MEMTIDE_EXAMPLE_CONFIG);
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->manager, "http://127.0.0.1:8080");
    EXPECT_TRUE(config->load_modules);
    EXPECT_EQ(config->state, AgentConfig{}.state);
    EXPECT_EQ(config->tiering, TieringConfig{});
}

// The block that is commented out in the example is an example, too.
TEST_F(AgentConfigFile, OfTheRepositoryHasATieringBlockThatIsGood) {
    std::ifstream example(MEMTIDE_EXAMPLE_CONFIG);
    std::string text = "manager: http://a:1\n";
    bool is_block = false;
    for (std::string line; std::getline(example, line);) {
        is_block = line.starts_with("# tiering:") || (is_block && line.starts_with("#  "));
        if (is_block) text += line.substr(2) + "\n";
    }
    const auto config = load(text);
    ASSERT_TRUE(config.has_value()) << config.error().message << "\n" << text;
    EXPECT_EQ(config->tiering.mode, TieringMode::kMove);
    EXPECT_EQ(config->tiering.tiers.size(), 2U);
    EXPECT_EQ(config->tiering.targets.size(), 3U);
    EXPECT_EQ(config->tiering.targets.front().exclude.size(), 2U);
}

// Every block of YAML in the documentation with `tiering:` starts as it is.
TEST_F(AgentConfigFile, ExamplesOfTheDocumentationAreGood) {
    std::ifstream documentation(MEMTIDE_TIERING_DOCUMENTATION);
    int examples = 0;
    std::string text;
    bool is_yaml = false;
    for (std::string line; std::getline(documentation, line);) {
        if (line == "```yaml") {
            is_yaml = true;
            text = "";
        } else if (line == "```" && is_yaml) {
            is_yaml = false;
            ++examples;
            const auto config = load(text);
            EXPECT_TRUE(config.has_value()) << config.error().message << "\n" << text;
        } else if (is_yaml) {
            text += line + "\n";
        }
    }
    EXPECT_GE(examples, 3);
}

TEST_F(AgentConfigFile, TieringIsOffWithoutItsBlock) {
    EXPECT_EQ(load("manager: http://a:1\n")->tiering.mode, TieringMode::kOff);
    EXPECT_EQ(load("tiering: {mode: move}\n")->tiering.mode, TieringMode::kMove);
    expect_mistake("tiering:\n  targets:\n    - match: {unit: a}\n", "3:21", "a.service");
}

TEST_F(AgentConfigFile, IsReadInFull) {
    const auto config = load(
        "manager: unix:/run/fm.sock\nhost: host7\nstate: /run/x\nload_modules: false\n"
        "timing: {long_poll: 5s, heartbeat: 1s, request: 2s, retry_min: 50ms, retry_max: 1s, poll: 1s}\n");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_TRUE(check_config(*config).has_value());
    EXPECT_EQ(config->manager, "unix:/run/fm.sock");
    EXPECT_EQ(config->host.value, "host7");
    EXPECT_FALSE(config->load_modules);
    EXPECT_EQ(config->channel.long_poll, 5s);
    EXPECT_EQ(config->controller.poll, 1s);
}

TEST_F(AgentConfigFile, MistakesAreNamedWithLineAndColumn) {
    expect_mistake("manager: 127.0.0.1:8080\n", "1:", "http://HOST:PORT");
    expect_mistake("manager: http://a:1\nhost: UPPER\n", "2:", "");
    expect_mistake("manager: http://a:1\nstate: run\n", "2:", "absolute");
    expect_mistake("manager: http://a:1\nhots: a\n", "2:", "host");
    expect_mistake("timing:\n  poll: 0s\n", "2:", "between");
    expect_mistake("timing:\n  heartbeat: fast\n", "2:", "");
    expect_mistake("load_modules: perhaps\n", "1:", "");
}

TEST(AgentConfigCheck, NeedsAManagerAndAHost) {
    AgentConfig config{.manager = "http://a:1", .host = HostId{"h"}};
    EXPECT_TRUE(check_config(config).has_value());
    config.manager.clear();
    EXPECT_FALSE(check_config(config).has_value());
    config.manager = "ftp://a";
    EXPECT_FALSE(check_config(config).has_value());
    config = {.manager = "http://a:1", .host = {}};
    EXPECT_FALSE(check_config(config).has_value());
    config.host = HostId{"a/b"};
    EXPECT_FALSE(check_config(config).has_value());
}

}  // namespace
}  // namespace memtide::agent
