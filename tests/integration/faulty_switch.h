#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "common/fmapi/opcode.h"
#include "cxl-emul/switch/switch.h"
#include "tests/integration/background.h"
#include "tests/integration/daemons.h"

namespace memtide::test {

// What a switch does with a command; each carries it out first, which is the harder case: the manager does
// not learn whether it was.
enum class Fault {
    kNone,
    kSilent,    // never answers
    kLate,      // answers after 3 s
    kGarbage,   // answers with bytes that are no MCTP packets
    kWrongTag,  // answers with another tag
    kHangUp,    // closes the connection
};

// An emulated switch at switch_address(folder) whose answers are spoilt on their way.
class FaultySwitch {
  public:
    FaultySwitch(Background& background, const TempFolder& folder, const SwitchOptions& options = {});
    ~FaultySwitch();
    FaultySwitch(const FaultySwitch&) = delete;
    FaultySwitch& operator=(const FaultySwitch&) = delete;

    // For the next `times` commands, of this opcode only when one is given. The inner command of a tunnel
    // does not count.
    void set_fault(Fault fault, std::optional<fmapi::Opcode> only = std::nullopt, int times = 1'000'000);
    // How many answers were spoilt since set_fault().
    int spoilt();
    // How many commands with that opcode came in.
    int commands(fmapi::Opcode opcode);
    std::vector<emul::VppbStatus> bound();

  private:
    struct State;
    Background& background_;
    std::shared_ptr<State> state_;
};

}  // namespace memtide::test
