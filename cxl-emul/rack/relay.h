#pragma once

#include <string>

namespace memtide::emul {

// `memtide-cxl-emul relay 127.0.0.1:PORT`: carries one connection between standard input and output, which
// QEMU has connected to a guest's, and that address. QEMU runs it once for each connection of a guest. Ends
// when both directions have; returns the exit code.
int run_relay(const std::string& address);

}  // namespace memtide::emul
