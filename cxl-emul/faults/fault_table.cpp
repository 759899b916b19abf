#include "cxl-emul/faults/fault_table.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "common/base/nearest.h"

namespace memtide::emul {
namespace {

// Of faults that strike again and again.
constexpr std::string_view kStrikingKeys[] = {"for", "times", "probability", "skip", "seed"};
constexpr std::string_view kLastingKeys[] = {"for"};

// "a b! c" has "b", which is needed.
KeyUse use_in(std::string_view words, std::string_view key) {
    while (!words.empty()) {
        const std::string_view word = words.substr(0, words.find(' '));
        words.remove_prefix(std::min(words.size(), word.size() + 1));
        const bool marked = word.ends_with('!') || word.ends_with('?');
        if (word.substr(0, word.size() - (marked ? 1 : 0)) == key)
            return word.ends_with('!') ? KeyUse::kRequired : KeyUse::kOptional;
    }
    return KeyUse::kNone;
}

}  // namespace

const std::array<FaultRow, kFaultKinds> kFaultTable = [] {
    using enum FaultKind;
    using enum FaultLayer;
    return std::array<FaultRow, kFaultKinds>{{
        {kLinkDown, "link-down", kEquipment, "port device host switch?", "",
         "the link of a port, of all heads of a device, or of a host goes down; what is bound stays bound"},
        {kSurpriseRemoval, "surprise-removal", kEquipment, "device port switch?", "",
         "a device is pulled out of its port, whoever has it; put back at the end"},
        {kPowerCycle, "power-cycle", kEquipment, "switch? device", "state",
         "a switch or a device has no power for that time; with state: kept it remembers what it was told"},
        {kSlowOperation, "slow-operation", kOperation, "switch? device", "operation delay!",
         "background operations take that much longer"},
        {kStuckOperation, "stuck-operation", kOperation, "switch? device", "operation",
         "background operations stand still until the fault is over, or they are aborted"},
        {kFailingOperation, "failing-operation", kOperation, "switch? device", "operation code",
         "background operations end with this return code, and nothing is done"},
        {kEraseDoesNothing, "erase-does-nothing", kOperation, "switch? device", "",
         "a sanitize succeeds and leaves every byte as it is"},
        {kWorn, "worn", kEquipment, "device port switch?", "",
         "Get Health Info says that 93 % of the device's life are used and that it needs maintenance"},
        {kFailing, "failing", kEquipment, "device port switch?", "",
         "Get Health Info says that data will be lost and that the device has to be replaced"},
        {kMediaError, "media-error", kEquipment, "device port switch?", "severity ld offset",
         "the switch records an error message of the device; in racks the host's device records it, too"},
        {kPoison, "poison", kEquipment, "device port switch?", "ld offset length",
         "Get Health Info says that data is lost; in racks the host reads poison at that address"},
        {kLyingDevice, "lying-device", kEquipment, "device port switch?", "serial lds ld_size capacity",
         "the device says another serial number, other LDs or another size than it has"},
        {kError, "error", kAnswer, "switch?", "opcode code",
         "commands are not carried out and answered with this return code"},
        {kSilence, "silence", kAnswer, "switch?", "opcode",
         "commands are carried out and not answered; event notifications are not sent"},
        {kLate, "late", kAnswer, "switch?", "opcode delay!", "answers come that much later"},
        {kDrip, "drip", kAnswer, "switch?", "opcode delay!",
         "answers come one byte at a time, with that pause behind each"},
        {kCorrupt, "corrupt", kAnswer, "switch?", "opcode bytes", "bits are flipped in this many bytes (1)"},
        {kTruncate, "truncate", kAnswer, "switch?", "opcode bytes",
         "only the first bytes of an answer are sent; the next answer follows them"},
        {kReorder, "reorder", kAnswer, "switch?", "opcode",
         "the packets of an answer come in another order; answers of one packet are left alone"},
        {kDuplicate, "duplicate", kAnswer, "switch?", "opcode", "a packet of an answer comes twice"},
        {kWrongTag, "wrong-tag", kAnswer, "switch?", "opcode",
         "answers carry another tag, in the message and in the packets"},
        {kHangUp, "hang-up", kAnswer, "switch?", "opcode bytes",
         "the connection is closed after the first bytes of an answer"},
    }};
}();

const FaultRow& row_of(FaultKind kind) { return kFaultTable.at(static_cast<std::size_t>(kind)); }

std::string_view to_string(FaultKind kind) { return row_of(kind).name; }

Result<FaultKind> parse_fault_kind(std::string_view text) {
    const auto found = std::ranges::find(kFaultTable, text, &FaultRow::name);
    if (found != kFaultTable.end()) return found->kind;
    std::set<std::string, std::less<>> names;
    for (const FaultRow& row : kFaultTable) names.emplace(row.name);
    const std::string_view nearest = nearest_name(text, names);
    return fail(ErrorCode::kNotFound,
                fmt::format("there is no fault \"{}\"; {}", text.substr(0, 80),
                            nearest.empty() ? "`memtide-cxl-emul fault kinds` lists them"
                                            : fmt::format("did you mean \"{}\"?", nearest)));
}

KeyUse use_of(const FaultRow& row, std::string_view key) {
    if (const KeyUse use = use_in(row.targets, key); use != KeyUse::kNone) return use;
    if (const KeyUse use = use_in(row.parameters, key); use != KeyUse::kNone) return use;
    const bool common = row.layer == FaultLayer::kEquipment
                            ? std::ranges::find(kLastingKeys, key) != std::end(kLastingKeys)
                            : std::ranges::find(kStrikingKeys, key) != std::end(kStrikingKeys);
    return common ? KeyUse::kOptional : KeyUse::kNone;
}

const std::vector<std::string_view>& fault_keys() {
    static const std::vector<std::string_view> all{
        "switch", "port",   "device", "host",   "for",   "times",     "probability", "skip",
        "seed",   "opcode", "code",   "delay",  "bytes", "operation", "state",       "severity",
        "ld",     "offset", "length", "serial", "lds",   "ld_size",   "capacity"};
    return all;
}

}  // namespace memtide::emul
