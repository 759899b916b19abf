#pragma once

#include <iostream>
#include <string_view>

#include "common/base/error.h"
#include "common/daemon/exit_code.h"

namespace memtide::emul {

// What a command of `rack` has to say beside its output: the same words, whichever program it was typed to.
inline void note(std::string_view text) { std::cerr << "rack: " << text << '\n'; }

// Says what failed; gives the exit code.
inline int report(const Error& error) {
    note(error.message);
    return daemon::kExitFailure;
}

}  // namespace memtide::emul
