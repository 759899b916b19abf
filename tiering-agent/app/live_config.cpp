#include "tiering-agent/app/live_config.h"

#include <utility>

namespace memtide::agent {
namespace {

auto timing_of(const AgentConfig& config) {
    const ChannelTiming& channel = config.channel;
    return std::tuple(channel.long_poll, channel.heartbeat, channel.request, channel.retry_min,
                      channel.retry_max, config.controller.poll);
}

}  // namespace

std::vector<std::string> changed_keys(const TieringConfig& before, const TieringConfig& now) {
    std::vector<std::string> keys;
    const auto compare = [&](const char* key, const auto& old, const auto& current) {
        if (old != current) keys.emplace_back(key);
    };
    compare("mode", before.mode, now.mode);
    compare("processor_share", before.processor_share, now.processor_share);
    compare("processor_share_changing", before.processor_share_changing, now.processor_share_changing);
    compare("slowdown", before.slowdown, now.slowdown);
    compare("slowdown_changing", before.slowdown_changing, now.slowdown_changing);
    compare("tiers", before.tiers, now.tiers);
    compare("targets", before.targets, now.targets);
    // What the others do not have yet.
    if (keys.empty() && before != now) keys.emplace_back("tiering");
    return keys;
}

std::vector<std::string> keys_for_restart(const AgentConfig& running, const AgentConfig& now) {
    std::vector<std::string> keys;
    const auto compare = [&](const char* key, const auto& old, const auto& current) {
        if (old != current) keys.emplace_back(key);
    };
    compare("manager", running.manager, now.manager);
    compare("ca", running.credentials.tls.ca, now.credentials.tls.ca);
    compare("cert", running.credentials.tls.certificate, now.credentials.tls.certificate);
    compare("key", running.credentials.tls.key, now.credentials.tls.key);
    compare("token_file", running.credentials.token_file, now.credentials.token_file);
    compare("host", running.host, now.host);
    compare("state", running.state, now.state);
    compare("load_modules", running.load_modules, now.load_modules);
    compare("timing", timing_of(running), timing_of(now));
    compare("tiering.tracker", running.tiering.tracker, now.tiering.tracker);
    return keys;
}

LiveConfig::LiveConfig(AgentConfig config, std::string file, Load load)
    : config_(std::move(config)), file_(std::move(file)), load_(std::move(load)), loaded_at_(Clock::now()) {}

Result<LiveConfig::Change> LiveConfig::reload() {
    if (file_.empty())
        return fail(ErrorCode::kConflict,
                    "this agent was started without --config: there is no file to read again");
    auto loaded = load_();
    if (!loaded) {
        failure_ = Failure{Clock::now(), loaded.error().message};
        return std::unexpected(std::move(loaded.error()));
    }
    Change change{.keys = changed_keys(config_.tiering, loaded->tiering),
                  .keys_for_restart = agent::keys_for_restart(config_, *loaded)};
    const TrackerChoice tracker = config_.tiering.tracker;
    config_.tiering = std::move(loaded->tiering);
    config_.tiering.tracker = tracker;
    loaded_at_ = Clock::now();
    failure_.reset();
    keys_for_restart_ = change.keys_for_restart;
    return change;
}

}  // namespace memtide::agent
