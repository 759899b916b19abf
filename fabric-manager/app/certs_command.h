#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace memtide::fm {

// `certs init`, `certs issue` and `certs revoke`: a small CA in a folder, for racks that have no other. The
// one that was chosen sets `command`.
void add_certs_commands(CLI::App& app, std::function<int()>& command);

}  // namespace memtide::fm
