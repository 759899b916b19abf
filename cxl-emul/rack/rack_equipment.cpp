#include "cxl-emul/rack/rack_equipment.h"

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "common/log/log.h"
#include "cxl-emul/faults/fault_text.h"

namespace memtide::emul {
namespace asio = boost::asio;

namespace {

const char* event_log_of(fmapi::MldPortEvent severity) {
    switch (severity) {
        case fmapi::MldPortEvent::kCorrectable:
            return "warning";
        case fmapi::MldPortEvent::kNonFatal:
            return "failure";
        case fmapi::MldPortEvent::kFatal:
            return "fatal";
    }
    return "failure";
}

// General Media Event Record (CXL 3.1, table 8-45): [0] of the descriptor is an uncorrectable event, type 0
// an ECC error, transaction type 1 a read by the host.
constexpr unsigned kUncorrectable = 1;
constexpr unsigned kEccError = 0;
constexpr unsigned kHostRead = 1;

}  // namespace

InjectCommand inject_command(const Fault& fault) {
    InjectCommand command;
    if (fault.kind == FaultKind::kPoison) {
        command.name = "cxl-inject-poison";
        command.arguments["start"] = fault.offset.value;
        command.arguments["length"] = fault.length.value;
        return command;
    }
    command.name = "cxl-inject-general-media-event";
    command.arguments["log"] = event_log_of(fault.severity);
    command.arguments["flags"] = 0;
    command.arguments["dpa"] = fault.offset.value;
    command.arguments["descriptor"] =
        fault.severity == fmapi::MldPortEvent::kCorrectable ? 0 : kUncorrectable;
    command.arguments["type"] = kEccError;
    command.arguments["transaction-type"] = kHostRead;
    return command;
}

void RackEquipment::tell_hosts(const DeviceId& device, const Fault& fault) {
    asio::co_spawn(executor_, inject(device, fault), asio::detached);
}

asio::awaitable<void> RackEquipment::inject(DeviceId device, Fault fault) {
    for (Switch* sw : rack_.switches()) {
        const std::vector<VppbStatus> vppbs = co_await sw->vppbs();
        for (const VppbStatus& one : vppbs) {
            const bool this_one = one.state == VppbStatus::State::kBound && one.device == device &&
                                  (!fault.ld || one.ld == kWholeDevice || one.ld.value == *fault.ld);
            const auto host = rack_.host(one.host.value);
            if (!this_one || !host) continue;
            InjectCommand command = inject_command(fault);
            HotplugSlot slot{sw->name(), one.host, one.vcs, one.vppb};
            const auto keep = *host;
            const auto done = co_await keep->qemu().device_command(std::move(slot), std::move(command.name),
                                                                   std::move(command.arguments));
            if (!done)
                log::warning("a fault did not reach the host",
                             {{"host", one.host}, {"fault", to_string(fault)}, {"error", done.error()}});
        }
    }
}

}  // namespace memtide::emul
