#include "cxl-emul/faults/fault_text.h"

#include <string_view>

#include <fmt/format.h>

#include "cxl-emul/faults/fault_names.h"
#include "cxl-emul/faults/fault_table.h"

namespace memtide::emul {
namespace {

constexpr std::string_view kOperationNames[] = {"bind", "unbind", "sanitize"};
constexpr std::string_view kSeverityNames[] = {"correctable", "non-fatal", "fatal"};

// Writes the members that a fault of this kind has, when they are not what they are anyway.
class FaultWriter {
  public:
    explicit FaultWriter(const Fault& fault)
        : row_(row_of(fault.kind)), text_(fmt::format("{{fault: {}", row_.name)) {}

    template <typename Value>
    void member(std::string_view key, const Value& value, bool worth_it) {
        const KeyUse use = use_of(row_, key);
        if (use == KeyUse::kRequired || (use == KeyUse::kOptional && worth_it))
            text_ += fmt::format(", {}: {}", key, value);
    }
    [[nodiscard]] std::string text() const { return text_ + "}"; }

  private:
    const FaultRow& row_;
    std::string text_;
};

std::string milliseconds_text(std::chrono::milliseconds time) { return fmt::format("{}ms", time.count()); }

void write_target(FaultWriter& writer, const Fault& fault) {
    if (fault.switch_name) writer.member("switch", fault.switch_name->value, true);
    if (fault.port) writer.member("port", *fault.port, true);
    if (fault.device) writer.member("device", fault.device->value, true);
    if (fault.host) writer.member("host", fault.host->value, true);
}

void write_frequency(FaultWriter& writer, const Fault& fault) {
    if (fault.lasts) writer.member("for", milliseconds_text(*fault.lasts), true);
    if (fault.times) writer.member("times", *fault.times, true);
    writer.member("skip", fault.skip, fault.skip != 0);
    writer.member("probability", fault.probability, fault.probability != 1);
    if (fault.seed) writer.member("seed", *fault.seed, true);
}

void write_rest(FaultWriter& writer, const Fault& fault) {
    if (fault.opcode) writer.member("opcode", name_in_scenario(*fault.opcode), true);
    writer.member("code", name_in_scenario(fault.code), fault.code != fmapi::ReturnCode::kInternalError);
    writer.member("delay", milliseconds_text(fault.delay), fault.delay.count() != 0);
    writer.member("bytes", fault.bytes, fault.bytes != 0);
    if (fault.operation)
        writer.member("operation", kOperationNames[static_cast<std::size_t>(*fault.operation)], true);
    writer.member("state", "kept", fault.keeps_state);
    writer.member("severity", kSeverityNames[static_cast<std::size_t>(fault.severity)],
                  fault.severity != fmapi::MldPortEvent::kNonFatal);
    if (fault.ld) writer.member("ld", *fault.ld, true);
    writer.member("offset", fault.offset.value, fault.offset.value != 0);
    writer.member("length", fault.length.value, fault.length.value != 0);
    if (fault.serial) writer.member("serial", format_serial(*fault.serial), true);
    if (fault.lds) writer.member("lds", *fault.lds, true);
    if (fault.ld_size) writer.member("ld_size", fault.ld_size->value, true);
    if (fault.capacity) writer.member("capacity", fault.capacity->value, true);
}

}  // namespace

std::string to_string(const Fault& fault) {
    FaultWriter writer(fault);
    write_target(writer, fault);
    write_frequency(writer, fault);
    write_rest(writer, fault);
    return writer.text();
}

}  // namespace memtide::emul
