#include "fabric-manager/app/config.h"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

constexpr std::string_view kGood =
    "listen: 127.0.0.1:8080\n"
    "state: /var/lib/memtide/fabric-manager.db\n"
    "switches:\n"
    "  - {name: switch0, address: tcp://127.0.0.1:2650}\n"
    "hosts:\n"
    "  - {name: host0, attach: [{switch: switch0, vcs: 0}]}\n";

// The complaint about kGood with `from` replaced by `to`; empty when there is none.
std::string complaint(std::string_view from, std::string_view to) {
    std::string text(kGood);
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto config = parse_config(text, "x.yaml");
    return config ? "" : config.error().message;
}

TEST(ManagerConfig, ValuesAreRead) {
    const auto config = parse_config(std::string(kGood) +
                                         "timing: {drain_deadline: 2s, command_timeout: 300ms}\n"
                                         "limits: {body: 64KiB, state: 8MiB}\n"
                                         "placement: {reserve: 12%}\n"
                                         "capture: /tmp/session.pcap\n"
                                         "log_level: debug\n"
                                         "log: {format: json}\n",
                                     "x.yaml");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->manager.reserve_percent, 12);
    EXPECT_EQ(config->listen, std::vector<std::string>{"127.0.0.1:8080"});
    EXPECT_EQ(config->state, "/var/lib/memtide/fabric-manager.db");
    ASSERT_EQ(config->manager.switches.size(), 1U);
    EXPECT_EQ(config->manager.switches[0].address, "tcp://127.0.0.1:2650");
    ASSERT_EQ(config->manager.hosts.size(), 1U);
    EXPECT_EQ(config->manager.hosts[0].attach[0], (HostAttachment{SwitchId("switch0"), 0}));
    EXPECT_EQ(config->manager.timing.drain_deadline, Milliseconds(2000));
    EXPECT_EQ(config->command_timeout, Milliseconds(300));
    EXPECT_EQ(config->http.body_bytes, 65536U);
    EXPECT_EQ(config->state_limit, mebibytes(8));
    EXPECT_EQ(config->capture, "/tmp/session.pcap");
    EXPECT_EQ(config->log_level, log::Level::kDebug);
    EXPECT_EQ(config->log_format, log::Format::kJson);
}

TEST(ManagerConfig, LimitsOfThePlacementHaveDefaultsByHostAndTenant) {
    std::string text(kGood);
    text.replace(text.find("vcs: 0}]}"), 9, "vcs: 0}], placement: {max_percent_per_switch: 60}}");
    const auto config = parse_config(text +
                                         "placement: {defaults: {max_percent_per_device: 50}}\n"
                                         "tenants: [{name: blue, placement: {exclusive_devices: true}}]\n",
                                     "x.yaml");
    ASSERT_TRUE(config) << config.error().message;
    const PlacementDefaults& defaults = config->manager.placement_defaults;
    EXPECT_EQ(defaults.all, (PlacementLimits{50, {}, {}}));
    EXPECT_EQ(defaults.hosts.at(HostId("host0")), (PlacementLimits{{}, 60, {}}));
    EXPECT_EQ(defaults.tenants.at("blue"), (PlacementLimits{{}, {}, true}));
    EXPECT_NE(complaint("vcs: 0}]}", "vcs: 0}], placement: {max_percent_per_device: 0}}"), "");
    EXPECT_NE(complaint("vcs: 0}]}", "vcs: 0}], placement: {reserve: 1GiB}}"), "");
}

TEST(ManagerConfig, TheExampleIsGoodAndItsOptionalValuesAreTheDefaults) {
    const auto example = load_config(EXAMPLE_CONFIG);
    ASSERT_TRUE(example) << example.error().message;
    const AppConfig defaults;
    EXPECT_EQ(example->capture, defaults.capture);
    EXPECT_EQ(example->manager.timing.drain_deadline, defaults.manager.timing.drain_deadline);
    EXPECT_EQ(example->manager.timing.exchange_deadline, defaults.manager.timing.exchange_deadline);
    EXPECT_EQ(example->manager.timing.switch_poll, defaults.manager.timing.switch_poll);
    EXPECT_EQ(example->manager.timing.retry_min, defaults.manager.timing.retry_min);
    EXPECT_EQ(example->manager.timing.retry_max, defaults.manager.timing.retry_max);
    EXPECT_EQ(example->manager.timing.background_poll_min, defaults.manager.timing.background_poll_min);
    EXPECT_EQ(example->manager.timing.background_poll_max, defaults.manager.timing.background_poll_max);
    EXPECT_EQ(example->manager.timing.background_timeout, defaults.manager.timing.background_timeout);
    EXPECT_EQ(example->manager.timing.quarantine_retry, defaults.manager.timing.quarantine_retry);
    EXPECT_EQ(example->manager.timing.gone_after, defaults.manager.timing.gone_after);
    EXPECT_EQ(example->manager.verify_erased, defaults.manager.verify_erased);
    EXPECT_EQ(example->manager.timing.readers, defaults.manager.timing.readers);
    EXPECT_EQ(example->manager.flapping.limit, defaults.manager.flapping.limit);
    EXPECT_EQ(example->manager.flapping.window, defaults.manager.flapping.window);
    EXPECT_EQ(example->manager.flapping.hold, defaults.manager.flapping.hold);
    EXPECT_EQ(example->manager.flapping.hold_max, defaults.manager.flapping.hold_max);
    EXPECT_EQ(example->manager.keep_ended, defaults.manager.keep_ended);
    EXPECT_EQ(example->manager.keep_events, defaults.manager.keep_events);
    EXPECT_EQ(example->manager.keep_idempotency, defaults.manager.keep_idempotency);
    EXPECT_EQ(example->connect_timeout, defaults.connect_timeout);
    EXPECT_EQ(example->command_timeout, defaults.command_timeout);
    EXPECT_EQ(example->shutdown_grace, defaults.shutdown_grace);
    EXPECT_EQ(example->http.connections, defaults.http.connections);
    EXPECT_EQ(example->http.body_bytes, defaults.http.body_bytes);
    EXPECT_EQ(example->http.request_timeout, defaults.http.request_timeout);
    EXPECT_EQ(example->http.idle_timeout, defaults.http.idle_timeout);
    EXPECT_EQ(example->log_level, defaults.log_level);
    EXPECT_EQ(example->log_format, defaults.log_format);
}

TEST(ManagerConfig, SaysHowMemoryIsVerified) {
    const auto with = [](const std::string& verify) {
        return complaint("listen: 127.0.0.1:8080\n",
                         "listen: 127.0.0.1:8080\nverify_erased: {" + verify + "}\n");
    };
    for (const auto* good :
         {"", "samples: 1", "samples: 65536, erased_pattern: uniform", "erased_pattern: any"})
        EXPECT_EQ(with(good), "") << good;
    EXPECT_NE(with("erased_pattern: ones").find("must be zeros, uniform or any"), std::string::npos);
    EXPECT_NE(with("samples: 0").find("must be a whole number"), std::string::npos);
    EXPECT_NE(with("sample: 1").find("did you mean \"samples\"?"), std::string::npos);
}

TEST(ManagerConfig, OtherThanLoopbackAddressesAreRefusedWithTheReason) {
    for (const auto* address : {"0.0.0.0:8080", "192.168.1.4:8080", "\"[::]:8080\"", "\"[2001:db8::1]:80\""})
        EXPECT_NE(complaint("127.0.0.1:8080", address).find("is not a loopback address"), std::string::npos)
            << address;
    EXPECT_TRUE(complaint("127.0.0.1:8080", "0.0.0.0:8080").starts_with("x.yaml:1:9: "));
    for (const auto* address : {"127.0.0.1:0", "127.9.9.9:80", "\"[::1]:8080\"", "unix:/run/memtide.sock",
                                "[\"127.0.0.1:8080\", \"unix:/run/memtide.sock\"]"})
        EXPECT_EQ(complaint("127.0.0.1:8080", address), "") << address;
}

TEST(ManagerConfig, AddressesThatAreNoneAreRefused) {
    for (const auto* address : {"8080", "localhost:80", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:x",
                                "unix:relative", "[]", "\"::1:80\"", "{a: b}"})
        EXPECT_TRUE(complaint("127.0.0.1:8080", address).starts_with("x.yaml:1:9: ")) << address;
    for (const auto* address :
         {"127.0.0.1:2650", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "unix://relative", "http://127.0.0.1:80"})
        EXPECT_TRUE(complaint("tcp://127.0.0.1:2650", address).starts_with("x.yaml:4:30: ")) << address;
}

TEST(ManagerConfig, WrongKeysAreNamedWithTheirPlace) {
    EXPECT_EQ(complaint("vcs: 0", "vc: 0"),
              "x.yaml:6:28: missing \"vcs\"\nx.yaml:6:46: unknown key \"vc\"; did you mean \"vcs\"?");
    EXPECT_NE(complaint("state:", "sate:").find("x.yaml:2:1: unknown key \"sate\""), std::string::npos);
}

TEST(ManagerConfig, WrongTypesAreNamedWithTheirPlace) {
    EXPECT_TRUE(complaint("vcs: 0", "vcs: 256").starts_with("x.yaml:6:51: must be a whole number"));
    EXPECT_TRUE(complaint("vcs: 0", "vcs: zero").starts_with("x.yaml:6:51: must be a whole number"));
    EXPECT_TRUE(
        complaint("[{switch: switch0, vcs: 0}]", "switch0").starts_with("x.yaml:6:27: must be a list"));
    EXPECT_TRUE(complaint("listen: 127.0.0.1:8080\n", "listen: 127.0.0.1:8080\ntiming: {switch_poll: fast}\n")
                    .starts_with("x.yaml:2:23: "));
    EXPECT_TRUE(complaint("listen: 127.0.0.1:8080\n", "listen: 127.0.0.1:8080\ntiming: {readers: 0}\n")
                    .starts_with("x.yaml:2:19: "));
    EXPECT_TRUE(
        complaint("listen: 127.0.0.1:8080\n", "listen: 127.0.0.1:8080\nflapping: {hold: 2h, hold_max: 1h}\n")
            .contains("hold_max must not be shorter than hold"));
    EXPECT_TRUE(complaint("listen: 127.0.0.1:8080\n", "listen: 127.0.0.1:8080\nflapping: {limits: 3}\n")
                    .contains("limits"));
    EXPECT_TRUE(complaint("listen: 127.0.0.1:8080\n", "listen: 127.0.0.1:8080\ntiming: {switch_poll: 0ms}\n")
                    .starts_with("x.yaml:2:23: must be longer"));
    for (const char* reserve : {"110%", "x%", "%", "-1%"})
        EXPECT_TRUE(
            complaint("listen: 127.0.0.1:8080\n",
                      std::string("listen: 127.0.0.1:8080\nplacement: {reserve: \"") + reserve + "\"}\n")
                .find("0% to 100%") != std::string::npos)
            << reserve;
    EXPECT_TRUE(complaint("listen: 127.0.0.1:8080\n", "listen: 127.0.0.1:8080\nlimits: {body: 1GiB}\n")
                    .starts_with("x.yaml:2:16: must be from"));
}

TEST(ManagerConfig, HostsAndSwitchesMustFitTogether) {
    EXPECT_EQ(complaint("{switch: switch0,", "{switch: switch1,"),
              "x.yaml:6:37: there is no switch named switch1");
    EXPECT_EQ(complaint("hosts:\n", "hosts:\n  - {name: host1, attach: [{switch: switch0, vcs: 0}]}\n"),
              "x.yaml:7:28: VCS 0 of switch0 is already attached to host1");
    EXPECT_EQ(complaint("hosts:\n", "hosts:\n  - {name: host0, attach: [{switch: switch0, vcs: 1}]}\n"),
              "x.yaml:7:12: another host is already named host0");
    EXPECT_EQ(complaint("switches:\n", "switches:\n  - {name: switch0, address: tcp://127.0.0.1:2651}\n"),
              "x.yaml:5:12: another switch is already named switch0");
    EXPECT_EQ(complaint("switches:\n", "switches:\n  - {name: switch1, address: tcp://127.0.0.1:2650}\n"),
              "x.yaml:5:30: another switch already has the address tcp://127.0.0.1:2650");
    EXPECT_NE(complaint("[{switch: switch0, vcs: 0}]", "[]").find("must name at least one"),
              std::string::npos);
}

constexpr std::string_view kSecure =
    "listen: 127.0.0.1:8080\n"
    "tls: {certificate: /c.pem, key: /k.pem, client_ca: /ca.pem}\n"
    "authentication: {}\n";

TEST(ManagerConfig, OthersThanLoopbackNeedTlsAndAuthentication) {
    const auto with = [](std::string_view sections) {
        return complaint("listen: 127.0.0.1:8080\n", fmt::format("listen: 10.0.0.1:8443\n{}", sections));
    };
    constexpr std::string_view kTls = "tls: {certificate: /c.pem, key: /k.pem}\n";
    constexpr std::string_view kAuthentication = "authentication: {}\n";
    EXPECT_TRUE(with("").starts_with("x.yaml:1:9: 10.0.0.1:8443 is not a loopback address"));
    EXPECT_TRUE(with(kTls).starts_with("x.yaml:1:9: "));
    EXPECT_TRUE(with(kAuthentication).starts_with("x.yaml:1:9: "));
    EXPECT_EQ(with(fmt::format("{}{}", kTls, kAuthentication)), "");
}

TEST(ManagerConfig, SecurityIsReadAndItsFilesLieBesideTheState) {
    std::string text(kGood);
    text.replace(0, text.find("state:"), kSecure);
    const auto config = parse_config(text +
                                         "tenants:\n  - {name: blue, bytes: 1GiB, hosts: [host0], "
                                         "requests_per_second: 5}\n",
                                     "x.yaml");
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->security.tls->client_ca, "/ca.pem");
    EXPECT_FALSE(config->security.tls->client_certificate_required);
    EXPECT_EQ(config->security.gate.tokens, "/var/lib/memtide/tokens");
    EXPECT_EQ(config->security.audit->path, "/var/lib/memtide/audit.log");
    EXPECT_EQ(config->security.gate.tenants.at("blue").per_second, 5);
    EXPECT_EQ(config->manager.tenants.at("blue").bytes, gibibytes(1));
    EXPECT_EQ(config->manager.tenants.at("blue").hosts, std::set<HostId>{HostId("host0")});
}

TEST(ManagerConfig, MistakesInSecurityAreNamedWithTheirPlace) {
    const auto with = [](std::string_view line) {
        return complaint("listen: 127.0.0.1:8080\n", fmt::format("listen: 127.0.0.1:8080\n{}\n", line));
    };
    EXPECT_TRUE(with("tls: {certificate: /c.pem}").starts_with("x.yaml:2:6: missing \"key\""));
    EXPECT_TRUE(
        with("tls: {certificate: /c, key: /k, min_version: 1.1}").starts_with("x.yaml:2:46: must be 1.2"));
    EXPECT_TRUE(with("tls: {certificate: /c, key: /k, client_certificate: required}")
                    .starts_with("x.yaml:2:53: needs client_ca"));
    EXPECT_TRUE(
        with("tls: {certificate: /c, key: /k, revoked: /r}").starts_with("x.yaml:2:42: needs client_ca"));
    EXPECT_TRUE(with("audit: {sync: never}").starts_with("x.yaml:2:15: must be each or second"));
    EXPECT_TRUE(with("authentification: {}").find("did you mean \"authentication\"") != std::string::npos);
    EXPECT_TRUE(with("tenants: [{name: a}, {name: a}]").starts_with("x.yaml:2:29: another tenant"));
    EXPECT_TRUE(with("tenants: [{name: a, hosts: [host9]}]").starts_with("x.yaml:2:29: there is no host"));
}

TEST(ManagerConfig, AStateThatIsNoFileIsRefused) {
    for (const auto* path : {"\":memory:\"", "file:x", "/var/lib/"})
        EXPECT_TRUE(complaint("/var/lib/memtide/fabric-manager.db", path).starts_with("x.yaml:2:8: "))
            << path;
}

}  // namespace
}  // namespace memtide::fm
