#include "tiering-agent/app/agent_config.h"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "common/config/yaml.h"
#include "tiering-agent/policy/tiering_config.h"

namespace memtide::agent {
namespace {

// At least `least`: a zero would mean a tight loop.
void read_duration(const YamlMap& map, std::string_view key, std::chrono::milliseconds least,
                   std::chrono::milliseconds& into) {
    const auto value = map.get(key);
    if (!value) return;
    into = std::chrono::milliseconds{value->milliseconds()};
    if (into < least || into > std::chrono::hours{24})
        value->reject("must be between " + std::to_string(least.count()) + "ms and 24 hours");
}

void read_timing(const YamlMap& timing, AgentConfig& config) {
    using std::chrono::milliseconds;
    read_duration(timing, "long_poll", milliseconds{1'000}, config.channel.long_poll);
    read_duration(timing, "heartbeat", milliseconds{100}, config.channel.heartbeat);
    read_duration(timing, "request", milliseconds{100}, config.channel.request);
    read_duration(timing, "retry_min", milliseconds{10}, config.channel.retry_min);
    read_duration(timing, "retry_max", milliseconds{10}, config.channel.retry_max);
    read_duration(timing, "poll", milliseconds{50}, config.controller.poll);
    config.channel.retry_max = std::max(config.channel.retry_max, config.channel.retry_min);
}

bool is_manager_url(std::string_view url) {
    if (url.starts_with("unix:")) return url.size() > 5;
    return (url.starts_with("http://") && url.size() > 7) || (url.starts_with("https://") && url.size() > 8);
}

}  // namespace

Result<AgentConfig> load_config(const std::string& path) {
    auto document = YamlDocument::load(path);
    if (!document) return std::unexpected(std::move(document.error()));
    AgentConfig config;
    const YamlMap root = document->root();
    if (const auto manager = root.get("manager")) {
        config.manager = manager->string();
        if (!is_manager_url(config.manager))
            manager->reject("must be https://HOST:PORT, http://HOST:PORT or unix:/PATH");
    }
    const auto read_path = [&root](std::string_view key, std::string& into) {
        if (const auto path = root.get(key)) into = path->string();
    };
    read_path("ca", config.credentials.tls.ca);
    read_path("cert", config.credentials.tls.certificate);
    read_path("key", config.credentials.tls.key);
    read_path("token_file", config.credentials.token_file);
    if (const auto host = root.get("host")) config.host = HostId{host->name()};
    if (const auto state = root.get("state")) {
        config.state = state->string();
        if (!config.state.starts_with('/')) state->reject("must be an absolute path");
    }
    if (const auto load = root.get("load_modules")) config.load_modules = load->boolean();
    if (const auto timing = root.get("timing")) read_timing(timing->map(), config);
    if (const auto tiering = root.get("tiering")) config.tiering = read_tiering(*tiering, system_users());
    if (auto good = document->check(); !good) return std::unexpected(std::move(good.error()));
    return config;
}

Result<> check_config(const AgentConfig& config) {
    if (config.manager.empty() && config.tiering.mode == TieringMode::kOff)
        return fail(
            ErrorCode::kInvalidArgument,
            "nothing to do: no fabric manager given (--manager URL, or \"manager\" in the config), and "
            "no tiering (\"tiering\" in the config)");
    if (!config.manager.empty() && !is_manager_url(config.manager))
        return fail(ErrorCode::kInvalidArgument,
                    "\"" + config.manager + "\" is not https://HOST:PORT, http://HOST:PORT or unix:/PATH");
    if (config.credentials.tls.certificate.empty() != config.credentials.tls.key.empty())
        return fail(ErrorCode::kInvalidArgument, "a certificate needs its key: give both of cert and key");
    if (config.host.value.empty())
        return fail(ErrorCode::kInvalidArgument,
                    "this machine's name cannot be used as the host's name: use --host NAME or \"host\" in "
                    "the config");
    if (auto good = check_name(config.host.value); !good)
        return std::unexpected(std::move(good.error()).with_context("host \"" + config.host.value + "\""));
    return {};
}

HostId default_host() {
    std::array<char, 256> name{};
    if (gethostname(name.data(), name.size() - 1) != 0) return {};
    std::string text = name.data();
    text.resize(std::min(text.find('.'), text.size()));
    return check_name(text) ? HostId{text} : HostId{};
}

}  // namespace memtide::agent
