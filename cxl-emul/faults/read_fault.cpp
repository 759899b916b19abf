#include "cxl-emul/faults/read_fault.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "cxl-emul/faults/fault_names.h"
#include "cxl-emul/faults/fault_place.h"
#include "cxl-emul/faults/fault_table.h"

namespace memtide::emul {
namespace {

constexpr std::uint64_t kMostTimes = 1'000'000'000;
constexpr std::uint64_t kMostBytes = 64 * 1024;
constexpr std::uint64_t kLastPort = 254;
constexpr Bytes kCacheLine{64};  // what is poisoned at once (CXL 3.1, 8.2.9.9.4)

std::optional<FaultKind> read_kind(const YamlMap& map) {
    const YamlValue value = map.require("fault");
    const auto kind = parse_fault_kind(value.string());
    if (kind) return *kind;
    value.reject(kind.error().message);
    (void)map.entries();  // nobody knows what it may have
    return std::nullopt;
}

double read_probability(const YamlValue& value) {
    const std::string text = value.string();
    double probability = 1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), probability);
    if (error == std::errc{} && end == text.data() + text.size() && probability > 0 && probability <= 1)
        return probability;
    value.reject("must be a probability above 0, and at most 1");
    return 1;
}

std::string hint(const std::string& nearest) {
    return nearest.empty() ? std::string() : fmt::format("; did you mean \"{}\"?", nearest);
}

fmapi::Opcode read_opcode(const YamlValue& value) {
    const std::string text = value.string();
    const auto opcode = parse_opcode(text);
    if (!opcode)
        value.reject(fmt::format("\"{}\" is no command: bind-vppb, 5201h or 0x5201{}", text.substr(0, 80),
                                 hint(nearest_opcode(text))));
    return opcode.value_or(fmapi::Opcode{});
}

fmapi::ReturnCode read_code(const YamlValue& value) {
    const std::string text = value.string();
    const auto code = parse_return_code(text);
    if (!code)
        value.reject(fmt::format("\"{}\" is no return code: busy, 06h or 0x6{}", text.substr(0, 80),
                                 hint(nearest_return_code(text))));
    else if (*code == fmapi::ReturnCode::kSuccess || *code == fmapi::ReturnCode::kBackgroundStarted)
        value.reject(fmt::format("{} is no error", text));
    return code.value_or(fmapi::ReturnCode::kInternalError);
}

template <typename Value, std::size_t kCount>
Value read_one_of(const YamlValue& value, const std::pair<std::string_view, Value> (&known)[kCount]) {
    const std::string text = value.string();
    std::string names;
    for (const auto& [name, meaning] : known) {
        if (text == name) return meaning;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    }
    value.reject(fmt::format("\"{}\" is none of {}", text.substr(0, 80), names));
    return known[0].second;
}

constexpr std::pair<std::string_view, OperationKind> kOperations[] = {{"bind", OperationKind::kBind},
                                                                      {"unbind", OperationKind::kUnbind},
                                                                      {"sanitize", OperationKind::kSanitize}};
constexpr std::pair<std::string_view, bool> kStates[] = {{"lost", false}, {"kept", true}};
constexpr std::pair<std::string_view, fmapi::MldPortEvent> kSeverities[] = {
    {"correctable", fmapi::MldPortEvent::kCorrectable},
    {"non-fatal", fmapi::MldPortEvent::kNonFatal},
    {"fatal", fmapi::MldPortEvent::kFatal}};

// The keys of a fault's kind; every other one is refused.
class KeyReader {
  public:
    KeyReader(const YamlMap& map, const FaultRow& row) : map_(map), row_(row) {}

    // Calls `read` with the value of the key, if it is there and the kind has it.
    template <typename Read>
    void key(std::string_view name, Read read) const {
        const KeyUse use = use_of(row_, name);
        if (use == KeyUse::kRequired) {
            read(map_.require(name));
            return;
        }
        const auto value = map_.get(name);
        if (!value) return;
        if (use == KeyUse::kNone)
            value->reject(fmt::format("a fault of kind {} has no \"{}\"", row_.name, name));
        else
            read(*value);
    }

  private:
    const YamlMap& map_;
    const FaultRow& row_;
};

std::chrono::milliseconds time_of(const YamlValue& value) {
    return std::chrono::milliseconds(value.milliseconds());
}

void read_target(const KeyReader& reader, Fault& fault) {
    reader.key("switch", [&](const YamlValue& v) { fault.switch_name = SwitchId(v.name()); });
    reader.key("port",
               [&](const YamlValue& v) { fault.port = static_cast<std::uint8_t>(v.integer(0, kLastPort)); });
    reader.key("device", [&](const YamlValue& v) { fault.device = DeviceId(v.name()); });
    reader.key("host", [&](const YamlValue& v) { fault.host = HostId(v.name()); });
}

void read_frequency(const KeyReader& reader, Fault& fault) {
    reader.key("for", [&](const YamlValue& v) { fault.lasts = time_of(v); });
    reader.key("times", [&](const YamlValue& v) { fault.times = v.integer(1, kMostTimes); });
    reader.key("skip", [&](const YamlValue& v) { fault.skip = v.integer(0, kMostTimes); });
    reader.key("probability", [&](const YamlValue& v) { fault.probability = read_probability(v); });
    reader.key("seed", [&](const YamlValue& v) { fault.seed = v.integer(0, UINT64_MAX); });
}

void read_strike(const KeyReader& reader, Fault& fault) {
    reader.key("opcode", [&](const YamlValue& v) { fault.opcode = read_opcode(v); });
    reader.key("code", [&](const YamlValue& v) { fault.code = read_code(v); });
    reader.key("delay", [&](const YamlValue& v) { fault.delay = time_of(v); });
    reader.key("bytes", [&](const YamlValue& v) {
        fault.bytes = static_cast<std::uint32_t>(v.integer(1, kMostBytes));
    });
    reader.key("operation", [&](const YamlValue& v) { fault.operation = read_one_of(v, kOperations); });
    reader.key("state", [&](const YamlValue& v) { fault.keeps_state = read_one_of(v, kStates); });
}

void read_device_trouble(const KeyReader& reader, Fault& fault) {
    reader.key("severity", [&](const YamlValue& v) { fault.severity = read_one_of(v, kSeverities); });
    reader.key("ld",
               [&](const YamlValue& v) { fault.ld = static_cast<std::uint8_t>(v.integer(0, kMaxLds - 1)); });
    if (fault.kind == FaultKind::kPoison) fault.length = kCacheLine;
    reader.key("offset", [&](const YamlValue& v) {
        fault.offset = v.bytes();
        if (!fault.offset.is_multiple_of(kCacheLine)) v.reject("must be a multiple of 64 bytes");
    });
    reader.key("length", [&](const YamlValue& v) { fault.length = v.bytes_multiple_of(kCacheLine); });
    reader.key("serial", [&](const YamlValue& v) { fault.serial = v.serial(); });
    reader.key("lds", [&](const YamlValue& v) { fault.lds = static_cast<std::uint8_t>(v.integer(1, 255)); });
    reader.key("ld_size", [&](const YamlValue& v) { fault.ld_size = v.bytes_multiple_of(kCxlGranule); });
    reader.key("capacity", [&](const YamlValue& v) { fault.capacity = v.bytes_multiple_of(kCxlGranule); });
}

// What no key says by itself.
void check_sense(const YamlMap& map, const FaultRow& row, const Fault& fault) {
    const int targets = (fault.port ? 1 : 0) + (fault.device ? 1 : 0) + (fault.host ? 1 : 0);
    const bool needs_target = use_of(row, "switch") == KeyUse::kOptional &&
                              row.targets.ends_with("switch?") && row.targets != "switch?";
    if (targets > 1) map.reject("a fault happens to one of port, device and host");
    if (targets == 0 && needs_target)
        map.reject(fmt::format("{} of what? It needs one of: {}", row.name,
                               row.targets.substr(0, row.targets.rfind(' '))));
    if (row.kind == FaultKind::kLyingDevice && !fault.serial && !fault.lds && !fault.ld_size &&
        !fault.capacity)
        map.reject("lying-device about what? It needs one of: serial lds ld_size capacity");
}

void check_place(const YamlMap& map, const Fault& fault, const Topology& topology) {
    const auto place = place_of(fault, topology);
    if (place) return;
    if (const auto value = map.get(place.error().key))
        value->reject(place.error().message);
    else
        map.reject(place.error().message);
}

}  // namespace

Fault read_fault(const YamlMap& map, const Topology* topology) {
    Fault fault;
    const auto kind = read_kind(map);
    if (!kind) return fault;
    fault.kind = *kind;
    const FaultRow& row = row_of(fault.kind);
    const KeyReader reader(map, row);
    read_target(reader, fault);
    read_frequency(reader, fault);
    read_strike(reader, fault);
    read_device_trouble(reader, fault);
    check_sense(map, row, fault);
    if (topology != nullptr) check_place(map, fault, *topology);
    return fault;
}

Result<Fault> parse_fault(std::string_view text, std::string name, const Topology* topology) {
    auto document = YamlDocument::parse(text, std::move(name));
    if (!document) return std::unexpected(document.error());
    Fault fault = read_fault(document->root(), topology);
    if (auto checked = document->check(); !checked) return std::unexpected(checked.error());
    return fault;
}

}  // namespace memtide::emul
