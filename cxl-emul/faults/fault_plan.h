#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "cxl-emul/faults/fault.h"
#include "cxl-emul/faults/fault_place.h"
#include "cxl-emul/faults/spoilt_packets.h"
#include "cxl-emul/faults/tunnel_levels.h"
#include "cxl-emul/switch/disturbance.h"

namespace memtide::emul {

// A fault that has begun. Those that strike answers or operations decide here whether they strike this one.
class ActiveFault {
  public:
    // Without a seed of its own the fault has `seed`.
    ActiveFault(Fault fault, FaultPlace place, std::uint64_t seed);

    [[nodiscard]] const Fault& fault() const { return fault_; }
    [[nodiscard]] const FaultPlace& place() const { return place_; }
    [[nodiscard]] FaultRandom& random() { return random_; }
    [[nodiscard]] std::uint64_t hits() const { return hits_; }

    // Asked about everything that it could strike, once each.
    bool strikes();
    // It struck so many times as it was to.
    [[nodiscard]] bool exhausted() const { return fault_.times && hits_ >= *fault_.times; }

    // True until end(); what it holds goes on then.
    [[nodiscard]] std::shared_ptr<const bool> holds() const { return holding_; }
    void end() { *holding_ = false; }

  private:
    Fault fault_;
    FaultPlace place_;
    FaultRandom random_;
    std::uint64_t seen_ = 0;
    std::uint64_t hits_ = 0;
    std::shared_ptr<bool> holding_ = std::make_shared<bool>(true);
};

// The faults between a switch's answers and its connections, and those of its background operations. All
// calls come from the switch's thread.
class FaultPlan final : public Disturbance {
  public:
    explicit FaultPlan(const SwitchConfig& config) : config_(config) {}

    void add(std::shared_ptr<ActiveFault> fault) { faults_.push_back(std::move(fault)); }
    void remove(const std::shared_ptr<ActiveFault>& fault) { faults_.remove(fault); }

    std::optional<fmapi::Message> refuse(const fmapi::MctpMessage& request) override;
    Delivery deliver(const fmapi::MctpMessage& request, fmapi::MctpMessage answer,
                     const fmapi::WireFormat& format) override;
    bool swallows_notification() override;
    Course course_of(const SwitchModel& model, const Operation& operation) override;

  private:
    [[nodiscard]] bool is_about(const FaultPlace& place, const TunnelLevel& level) const;
    void lie(const std::vector<TunnelLevel>& levels, fmapi::Message& answer);

    SwitchConfig config_;
    std::list<std::shared_ptr<ActiveFault>> faults_;  // in the order in which they began
};

}  // namespace memtide::emul
