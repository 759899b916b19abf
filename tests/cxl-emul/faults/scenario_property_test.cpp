// Any fault that can be written can be read, and no text breaks the reader.
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "cxl-emul/faults/fault_names.h"
#include "cxl-emul/faults/fault_table.h"
#include "cxl-emul/faults/fault_text.h"
#include "cxl-emul/faults/read_fault.h"
#include "cxl-emul/faults/scenario.h"

namespace memtide::emul::test {
namespace {

constexpr std::uint64_t kSeed = 20261130;

// A fault with every key that its kind has, or some of them.
class FaultMaker {
  public:
    explicit FaultMaker(std::uint64_t seed) : random_(seed) {}

    Fault make() {
        Fault fault;
        fault.kind = static_cast<FaultKind>(below(kFaultKinds));
        const FaultRow& row = row_of(fault.kind);
        choose_target(row, fault);
        const auto has = [&](std::string_view key) {
            const KeyUse use = use_of(row, key);
            return use == KeyUse::kRequired || (use == KeyUse::kOptional && below(2) == 0);
        };
        if (has("for")) fault.lasts = std::chrono::milliseconds(below(100'000));
        if (has("times")) fault.times = 1 + below(1000);
        if (has("skip")) fault.skip = below(1000);
        if (has("probability")) fault.probability = static_cast<double>(1 + below(1'000'000)) / 1e6;
        if (has("seed")) fault.seed = random_();
        if (has("opcode")) fault.opcode = static_cast<fmapi::Opcode>(below(0x10000));
        if (has("code")) fault.code = static_cast<fmapi::ReturnCode>(2 + below(0xfff0));
        if (has("delay")) fault.delay = std::chrono::milliseconds(below(10'000));
        if (has("bytes")) fault.bytes = static_cast<std::uint32_t>(1 + below(1000));
        if (has("operation")) fault.operation = static_cast<OperationKind>(below(3));
        if (has("state")) fault.keeps_state = below(2) == 0;
        if (has("severity")) fault.severity = static_cast<fmapi::MldPortEvent>(below(3));
        if (has("ld")) fault.ld = static_cast<std::uint8_t>(below(16));
        if (has("offset")) fault.offset = Bytes{64 * below(1'000'000)};
        if (fault.kind == FaultKind::kPoison) fault.length = Bytes{64 * (1 + below(1000))};
        if (has("lds")) fault.lds = static_cast<std::uint8_t>(1 + below(255));
        if (has("ld_size")) fault.ld_size = kCxlGranule * (1 + below(100));
        if (has("capacity")) fault.capacity = kCxlGranule * (1 + below(100));
        if (use_of(row, "serial") != KeyUse::kNone) fault.serial = SerialNumber{random_()};
        return fault;
    }
    std::uint64_t below(std::uint64_t most) { return random_() % most; }

  private:
    void choose_target(const FaultRow& row, Fault& fault) {
        if (use_of(row, "switch") != KeyUse::kNone && below(2) == 0) fault.switch_name = SwitchId("switch0");
        const bool port = use_of(row, "port") != KeyUse::kNone;
        const bool host = use_of(row, "host") != KeyUse::kNone;
        if (use_of(row, "device") == KeyUse::kNone) return;
        if (host && below(3) == 0)
            fault.host = HostId("host1");
        else if (port && below(2) == 0)
            fault.port = static_cast<std::uint8_t>(below(255));
        else
            fault.device = DeviceId("mld0");
    }
    std::mt19937_64 random_;
};

TEST(ScenarioProperty, EveryFaultIsReadAsItWasWritten) {
    FaultMaker maker(kSeed);
    for (int i = 0; i < 5'000; ++i) {
        const Fault fault = maker.make();
        const std::string text = to_string(fault);
        const auto read = parse_fault(text, "f", nullptr);
        ASSERT_TRUE(read) << text << ": " << read.error().message;
        ASSERT_EQ(*read, fault) << text << " became " << to_string(*read);
    }
}

TEST(ScenarioProperty, SpoiltTextsAreReadOrRefusedAtAPlace) {
    FaultMaker maker(kSeed + 1);
    for (int i = 0; i < 2'000; ++i) {
        std::string text = "scenario:\n";
        for (std::uint64_t lines = 1 + maker.below(3); lines > 0; --lines)
            text += "  - {at: 1s, " + to_string(maker.make()).substr(1) + "\n";
        for (std::uint64_t spoilt = 1 + maker.below(4); spoilt > 0; --spoilt) {
            const std::size_t at = maker.below(text.size());
            if (maker.below(2) == 0)
                text[at] = static_cast<char>(maker.below(256));
            else
                text.erase(at, maker.below(8));
            if (text.empty()) text = "x";
        }
        const auto read = parse_scenario(text, "s.yaml", nullptr);
        if (read) {
            ASSERT_FALSE(read->faults.empty()) << text;
        } else {
            ASSERT_TRUE(read.error().message.starts_with("s.yaml")) << read.error().message;
        }
    }
}

TEST(ScenarioProperty, EveryOpcodeAndCodeHasANameThatIsRead) {
    for (unsigned value = 0; value < 0x10000; ++value) {
        const auto opcode = static_cast<fmapi::Opcode>(value);
        ASSERT_EQ(parse_opcode(name_in_scenario(opcode)), opcode) << name_in_scenario(opcode);
        const auto code = static_cast<fmapi::ReturnCode>(value);
        ASSERT_EQ(parse_return_code(name_in_scenario(code)), code) << name_in_scenario(code);
    }
}

}  // namespace
}  // namespace memtide::emul::test
