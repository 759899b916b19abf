#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace memtide::emul {

// Adds `fault` to the program, as add_switch_command() adds `switch`.
void add_fault_command(CLI::App& app, std::function<int()>& chosen);

}  // namespace memtide::emul
