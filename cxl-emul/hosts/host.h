#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include <boost/asio/any_io_executor.hpp>

#include "cxl-emul/hosts/agent.h"
#include "cxl-emul/hosts/host_model.h"
#include "cxl-emul/switch/hotplug.h"

namespace memtide::emul {

// A device bound to a host, whether the host can reach it now or not.
struct BoundDevice {
    HotplugSlot slot;
    PluggedDevice device;
    bool link_up = true;  // of the device's port
};

// One emulated host: its slots, its links, its agent. Not thread safe.
class Host {
  public:
    Host(boost::asio::any_io_executor executor, HostId name, HostDelays delays, std::uint64_t seed,
         Ledger& ledger, ClientPool& pool, Agent::Identity identity, Agent::Neighbour neighbour);

    [[nodiscard]] const HostId& name() const { return model_.name(); }
    [[nodiscard]] const HostModel& model() const { return model_; }
    [[nodiscard]] bool agent_runs() const { return agent_->is_running(); }

    void start();
    void stop() { agent_->stop(); }

    // The switch's side.
    void bind(BoundDevice device);
    void unbind(const HotplugSlot& slot, HostModel::Removal how);
    // The switch lost its power: all that was bound there is gone.
    void lose_switch(const SwitchId& id);
    // Its device has something to say.
    void interrupt(const HotplugSlot& slot);
    void set_device_link(const std::string& media, bool up);
    // The way to a switch, over a cable from the one above it, is cut or there again.
    void set_path(const SwitchId& id, bool there);
    [[nodiscard]] bool reaches(const SwitchId& id) const;
    [[nodiscard]] const std::map<SerialNumber, BoundDevice>& bound() const { return bound_; }

    // Returns a number by which end_fault() knows whether the fault was begun again meanwhile.
    std::uint64_t begin_fault(HostFault fault);
    void end_fault(HostFault fault);
    [[nodiscard]] std::uint64_t begun(HostFault fault) const {
        return begun_[static_cast<std::size_t>(fault)];
    }

  private:
    void show(const BoundDevice& one, HostModel::Arrival arrival);
    void hide(const BoundDevice& one);
    [[nodiscard]] bool is_reachable(const BoundDevice& one) const;
    void run_agent();
    std::map<SerialNumber, BoundDevice>::iterator find(const HotplugSlot& slot);

    HostModel model_;
    std::shared_ptr<Agent> agent_;
    std::map<SerialNumber, BoundDevice> bound_;
    std::set<SwitchId> cut_off_;  // switches that it does not reach
    std::array<std::uint64_t, kHostFaults> begun_{};
    bool started_ = false;
};

}  // namespace memtide::emul
