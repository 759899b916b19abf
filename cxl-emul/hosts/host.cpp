#include "cxl-emul/hosts/host.h"

#include <algorithm>
#include <utility>

namespace memtide::emul {

Host::Host(boost::asio::any_io_executor executor, HostId name, HostDelays delays, std::uint64_t seed,
           Ledger& ledger, ClientPool& pool, Agent::Identity identity, Agent::Neighbour neighbour)
    : model_(std::move(name), delays, seed, ledger),
      agent_(std::make_shared<Agent>(std::move(executor), model_, ledger, pool, std::move(identity),
                                     std::move(neighbour))) {}

void Host::start() {
    started_ = true;
    run_agent();
}

// The agent runs on a host that is up, unless it died.
void Host::run_agent() {
    const bool runs =
        started_ && !model_.faults().has(HostFault::kReboot) && !model_.faults().has(HostFault::kAgentDies);
    agent_->set_network(!model_.faults().has(HostFault::kSilence));
    agent_->impersonate(model_.faults().has(HostFault::kWrongCertificate));
    if (runs)
        agent_->start();
    else
        agent_->stop();
}

// --- Slots and links ---

bool Host::is_reachable(const BoundDevice& one) const { return one.link_up && reaches(one.slot.switch_name); }

void Host::show(const BoundDevice& one, HostModel::Arrival arrival) {
    if (!is_reachable(one) || model_.use_of(one.device.serial)) return;
    model_.plug(one.device, arrival);
    agent_->wake();
}

void Host::hide(const BoundDevice& one) {
    if (is_reachable(one)) return;
    model_.unplug(one.device.serial, HostModel::Removal::kLinkDown);
    agent_->wake();
}

void Host::bind(BoundDevice device) {
    const SerialNumber serial = device.device.serial;
    show(bound_[serial] = std::move(device), HostModel::Arrival::kFresh);
}

std::map<SerialNumber, BoundDevice>::iterator Host::find(const HotplugSlot& slot) {
    return std::ranges::find_if(bound_, [&](const auto& one) {
        return one.second.slot.switch_name == slot.switch_name && one.second.slot.vcs == slot.vcs &&
               one.second.slot.vppb == slot.vppb;
    });
}

// Seen by the host whatever its agent does; one that is bound while its link is down has nothing in the
// model.
void Host::interrupt(const HotplugSlot& slot) {
    const auto found = find(slot);
    if (found == bound_.end()) return;
    model_.interrupt(found->first);
    agent_->wake();
}

void Host::unbind(const HotplugSlot& slot, HostModel::Removal how) {
    const auto found = find(slot);
    if (found == bound_.end()) return;
    model_.unplug(found->first, how);
    bound_.erase(found);
    agent_->wake();
}

void Host::lose_switch(const SwitchId& id) {
    std::erase_if(bound_, [&](const auto& one) {
        if (one.second.slot.switch_name != id) return false;
        model_.unplug(one.first, HostModel::Removal::kLinkDown);
        return true;
    });
    agent_->wake();
}

void Host::set_device_link(const std::string& media, bool up) {
    for (auto& [serial, one] : bound_) {
        if (one.device.media->path() != media) continue;
        one.link_up = up;
        if (up)
            show(one, HostModel::Arrival::kLinkUp);
        else
            hide(one);
    }
}

bool Host::reaches(const SwitchId& id) const {
    return !cut_off_.contains(id) && !model_.faults().has(HostFault::kLinkDown);
}

void Host::set_path(const SwitchId& id, bool there) {
    if (there)
        cut_off_.erase(id);
    else
        cut_off_.insert(id);
    for (auto& [serial, one] : bound_) {
        if (one.slot.switch_name != id) continue;
        if (there)
            show(one, HostModel::Arrival::kLinkUp);
        else
            hide(one);
    }
}

// --- Faults ---

std::uint64_t Host::begin_fault(HostFault fault) {
    model_.faults().set(fault, true);
    if (fault == HostFault::kLinkDown)
        for (const auto& [serial, one] : bound_) hide(one);
    run_agent();
    agent_->wake();
    return ++begun_[static_cast<std::size_t>(fault)];
}

void Host::end_fault(HostFault fault) {
    if (!model_.faults().has(fault)) return;
    model_.faults().set(fault, false);
    if (fault == HostFault::kReboot) model_.reboot();
    if (fault == HostFault::kLinkDown)
        for (const auto& [serial, one] : bound_) show(one, HostModel::Arrival::kLinkUp);
    run_agent();
    agent_->wake();
}

}  // namespace memtide::emul
