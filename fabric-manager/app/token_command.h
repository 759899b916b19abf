#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace memtide::fm {

// `token create`, `token list` and `token revoke`. The one that was chosen sets `command`.
void add_token_commands(CLI::App& app, std::function<int()>& command);

}  // namespace memtide::fm
