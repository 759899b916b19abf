#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "tiering-agent/app/agent_config.h"

namespace memtide::agent {

// Keys of `tiering` whose values differ: "mode", "targets", ... Pure.
std::vector<std::string> changed_keys(const TieringConfig& before, const TieringConfig& now);
// Keys that differ and are only read at the start: "manager", "state", "timing", ... Pure.
std::vector<std::string> keys_for_restart(const AgentConfig& running, const AgentConfig& now);

// The configuration that is in service, and the way to read it anew. Not thread safe.
class LiveConfig {
  public:
    using Clock = std::chrono::system_clock;
    // Reads the file and whatever was given beside it; mistakes as FILE:LINE:COLUMN, one a line.
    using Load = std::function<Result<AgentConfig>()>;

    // `file` is empty when there is none: what was given on the command line cannot be read again.
    LiveConfig(AgentConfig config, std::string file, Load load);

    struct Change {
        std::vector<std::string> keys{};              // of `tiering`, that are other than before
        std::vector<std::string> keys_for_restart{};  // that are other than this agent was started with
    };
    // kInvalidArgument with every mistake in it: the configuration of before stays. kConflict without a file.
    Result<Change> reload();

    [[nodiscard]] const AgentConfig& config() const { return config_; }
    [[nodiscard]] const std::string& file() const { return file_; }
    [[nodiscard]] Clock::time_point loaded_at() const { return loaded_at_; }
    struct Failure {
        Clock::time_point at{};
        std::string why{};
    };
    // Of the last reload(), when it failed.
    [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
    // What would need a restart, as of the last reload() that did not fail.
    [[nodiscard]] const std::vector<std::string>& keys_for_restart() const { return keys_for_restart_; }

  private:
    AgentConfig config_;  // `tiering` of the last good reload, all else of the start
    std::string file_;
    Load load_;
    Clock::time_point loaded_at_;
    std::optional<Failure> failure_;
    std::vector<std::string> keys_for_restart_;
};

}  // namespace memtide::agent
