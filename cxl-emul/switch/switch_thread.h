#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "cxl-emul/switch/switch.h"

namespace memtide::emul {

// A switch that runs on a thread of its own: for tests and for programs without an executor.
//
//   auto running = SwitchThread::start(topology, topology.switches[0]);
//   connect to running->addresses()[0]
class SwitchThread {
  public:
    // As Switch::open() and start(). The backend's coroutines run on the switch's thread.
    static Result<SwitchThread> start(const Topology& topology, const SwitchConfig& config,
                                      std::shared_ptr<HotplugBackend> hotplug = no_hotplug(),
                                      ConnectionLimits limits = {});
    ~SwitchThread();  // stops the switch and joins the thread
    SwitchThread(SwitchThread&&) noexcept;
    SwitchThread& operator=(SwitchThread&&) noexcept;

    [[nodiscard]] const std::vector<std::string>& addresses() const;
    [[nodiscard]] Switch& get();

    // Blocks the calling thread, which must not be the switch's.
    fmapi::Message execute(fmapi::Message request);
    std::vector<VppbStatus> vppbs();

  private:
    struct Impl;
    explicit SwitchThread(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace memtide::emul
