#pragma once

namespace memtide::emul {

// `rack list`: the racks that run in this user's default run folders. Gives the exit code.
int run_list(bool as_json);

}  // namespace memtide::emul
