#include "cxl-emul/rack/rack_equipment.h"

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

TEST(RackEquipment, PoisonIsInjectedWhereTheFaultSays) {
    Fault fault;
    fault.kind = FaultKind::kPoison;
    fault.offset = Bytes{65536};
    fault.length = Bytes{4096};
    const InjectCommand command = inject_command(fault);
    EXPECT_EQ(command.name, "cxl-inject-poison");
    EXPECT_EQ(boost::json::serialize(command.arguments), R"({"start":65536,"length":4096})");
}

TEST(RackEquipment, AMediaErrorIsAnEventInTheLogOfItsSeverity) {
    Fault fault;
    fault.kind = FaultKind::kMediaError;
    for (const auto& [severity, log] : {std::pair{fmapi::MldPortEvent::kCorrectable, "warning"},
                                        std::pair{fmapi::MldPortEvent::kNonFatal, "failure"},
                                        std::pair{fmapi::MldPortEvent::kFatal, "fatal"}}) {
        fault.severity = severity;
        const InjectCommand command = inject_command(fault);
        EXPECT_EQ(command.name, "cxl-inject-general-media-event");
        EXPECT_EQ(command.arguments.at("log"), log);
    }
}

}  // namespace
}  // namespace memtide::emul
