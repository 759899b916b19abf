#pragma once

namespace memtide::emul {

// `memtide-cxl-emul guest`: the rack's helper inside a guest, started by the guest's init. It talks frames
// over the virtio-serial port "memtide.guest" with the supervisor, which asks it (kRequest, "op") to
//   configure   {"slots": N, "cxl": bool, "agent": [argv]|absent}: wait until the CXL bus is enumerated,
//   start
//               the agent and keep it running; answers {"kernel", "uptime_seconds", "memdevs": [...]}
//   exec        {"argv", "cwd", "env"}: run a program on this stream (see frame.h)
//   memdevs     {}: answers {"memdevs": [{"name", "serial", "size"}]}
//   check-slot, release-slot {"slot"}: see GuestHelper in qemu_host.h
//   power-off   {}: end the guest
// Runs until the port fails; returns the process's exit code. Needs root in the guest.
int run_guest_helper();

}  // namespace memtide::emul
