#include "cxl-emul/hosts/manager_config.h"

#include <gtest/gtest.h>

#include "cxl-emul/hosts/fleet_plan.h"
#include "fabric-manager/app/config.h"

namespace memtide::emul {
namespace {

Topology fleet_of(std::uint64_t hosts) {
    FleetOptions options;
    options.count = hosts;
    options.listen = "tcp://127.0.0.1:2650";
    return *plan_fleet(options);
}

TEST(ManagerConfig, IsOneThatTheManagerTakes) {
    const auto text = manager_config(fleet_of(100), "http://127.0.0.1:8080", {"/tmp/state \"1\".db"});
    ASSERT_TRUE(text.has_value());
    const auto config = fm::parse_config(*text, "fm.yaml");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->listen, std::vector<std::string>{"127.0.0.1:8080"});
    EXPECT_EQ(config->state, "/tmp/state \"1\".db");
    EXPECT_EQ(config->manager.switches.size(), 4U);
    EXPECT_EQ(config->manager.hosts.size(), 100U);
    EXPECT_GT(config->http.connections, 200U);
}

TEST(ManagerConfig, HostAtSeveralSwitchesIsOneHost) {
    FleetOptions options;
    options.topology = MEMTIDE_CONFIG "/topologies/two-switches-two-paths.yaml";
    options.listen = "tcp://127.0.0.1:2650";
    const auto text = manager_config(*plan_fleet(options), "http://127.0.0.1:8080", {"/tmp/state.db"});
    ASSERT_TRUE(text.has_value());
    const auto config = fm::parse_config(*text, "fm.yaml");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->manager.switches.size(), 2U);
    EXPECT_EQ(config->manager.hosts.size(), 2U);
    EXPECT_NE(text->find("{name: host1, attach: [{switch: switch0, vcs: 1}, {switch: switch1, vcs: 1}]}"),
              std::string::npos)
        << *text;
}

TEST(ManagerConfig, TheManagerListensWhereTheAgentsAsk) {
    const auto text = manager_config(fleet_of(1), "unix:/run/manager.sock", {"/tmp/state.db"});
    ASSERT_TRUE(text.has_value());
    const auto config = fm::parse_config(*text, "fm.yaml");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->listen, std::vector<std::string>{"unix:/run/manager.sock"});
    EXPECT_FALSE(manager_config(fleet_of(1), "127.0.0.1:8080", {"/tmp/state.db"}).has_value());
}

TEST(ManagerConfig, AManagerAtHttpsSpeaksTlsAndAsksWhoItIs) {
    const auto text = manager_config(fleet_of(1), "https://127.0.0.1:8443",
                                     {"/tmp/state.db", "/c/server.pem", "/c/server.key", "/c/ca.pem", ""});
    ASSERT_TRUE(text.has_value());
    const auto config = fm::parse_config(*text, "fm.yaml");
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->listen, std::vector<std::string>{"127.0.0.1:8443"});
    ASSERT_TRUE(config->security.tls.has_value());
    EXPECT_EQ(config->security.tls->certificate, "/c/server.pem");
    EXPECT_EQ(config->security.tls->client_ca, "/c/ca.pem");
    EXPECT_EQ(config->security.tls->revoked, "");
    EXPECT_NE(text->find("authentication:"), std::string::npos);
}

}  // namespace
}  // namespace memtide::emul
