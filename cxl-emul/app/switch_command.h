#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace memtide::emul {

// Adds `switch` to the program. When the user chose it, `chosen` is set to what carries it out; that returns
// the program's exit code.
void add_switch_command(CLI::App& app, std::function<int()>& chosen);

}  // namespace memtide::emul
