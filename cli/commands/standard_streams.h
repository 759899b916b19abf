#pragma once

namespace memtide::cli {

// Opens what the caller left closed of standard input, output and error in a way that using it fails as
// before: else the next socket would get the number, and be what answers are written to.
void keep_standard_streams();

}  // namespace memtide::cli
