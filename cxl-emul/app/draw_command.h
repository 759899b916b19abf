#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace memtide::emul {

// Adds `draw` to the program, as add_switch_command() does.
void add_draw_command(CLI::App& app, std::function<int()>& chosen);

}  // namespace memtide::emul
