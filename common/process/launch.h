#pragma once

#include <sys/types.h>

#include "common/base/error.h"
#include "common/process/child.h"

namespace memtide::process {

struct Launched {
    pid_t pid;
    int pidfd;
};

// Forks and executes. Returns when the program runs or could not be started.
Result<Launched> launch(const Command& command);

}  // namespace memtide::process
