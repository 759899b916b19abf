#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "common/base/error.h"
#include "cxl-emul/faults/equipment.h"
#include "cxl-emul/faults/scenario.h"

namespace memtide::emul {

struct FaultStatus {
    std::uint64_t id = 0;
    Fault fault;
    enum class State { kWaiting, kActive, kOver } state = State::kWaiting;
    std::uint64_t hits = 0;  // answers or operations that it has struck
};

// All faults of some equipment: those that wait for their time, those that are there, those that are over.
// Not thread safe: one executor with one thread, which is the equipment's.
//
//   FaultBoard board(executor, equipment);
//   board.play(scenario);                           // its times count from now
//   const auto id = board.inject(fault);
//   board.clear(*id);
class FaultBoard {
  public:
    FaultBoard(boost::asio::any_io_executor executor, Equipment& equipment);
    ~FaultBoard();  // as stop()
    FaultBoard(const FaultBoard&) = delete;
    FaultBoard& operator=(const FaultBoard&) = delete;

    [[nodiscard]] const Topology& topology() const;

    // Begins the fault after `wait`. Its number, from 1. kInvalidArgument when it cannot happen here,
    // kExhausted when there are too many.
    Result<std::uint64_t> inject(Fault fault, std::chrono::milliseconds wait = {});
    // Every fault of the scenario, or none. With `speed` 10 all its times, delays of answers and operations
    // not counted, are a tenth.
    Result<std::vector<std::uint64_t>> play(const Scenario& scenario, double speed = 1);

    // By number; of those that are over, the last ones.
    [[nodiscard]] std::vector<FaultStatus> list();
    // Ends it, or keeps it from beginning. kNotFound when there is none of this number that is not over.
    Result<> clear(std::uint64_t id);
    void clear_all();
    // Nothing begins or ends any more, and nothing is asked of the equipment. Idempotent.
    void stop();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace memtide::emul
