#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace memtide::emul {

// Adds `rack`, and the hidden `relay` and `guest`, to the program. When the user chose one of them, `chosen`
// is set to what carries it out; that returns the program's exit code.
void add_rack_commands(CLI::App& app, std::function<int()>& chosen);

}  // namespace memtide::emul
