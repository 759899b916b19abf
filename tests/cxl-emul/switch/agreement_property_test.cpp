// Client and emulator agree: 100,000 random commands go through the codec as the client sends them, and a
// reference model, which is as simple as can be, says beforehand what each of them must answer.
// MEMTIDE_SEED=N repeats a run.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/in_process.h"
#include "tests/cxl-emul/switch/over_both_transports.h"

namespace memtide::emul::test {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;

constexpr int kCommands = 100'000;
constexpr unsigned kVcss = 2;
constexpr unsigned kVppbs = 4;
constexpr unsigned kLds = 5;  // four of the MLD, and the SLD as the last one
constexpr unsigned kSld = 4;
constexpr unsigned kUnits = 4;  // of 256 MiB, in the MLD

// What a vPPB is, told by who has what.
struct ReferenceVppb {
    enum { kFree, kLd, kPid } has = kFree;
    unsigned what = 0;  // LD or PID
    bool in_progress = false;
};

// What must be true of the test switch, and nothing of how.
struct Reference {
    std::array<std::array<ReferenceVppb, kVppbs>, kVcss> vppbs;
    std::array<unsigned, kLds> sizes{1, 1, 0, 0, 1};  // in units
    std::array<bool, kLds> erasing{};
    std::array<std::uint8_t, 4> allocated{};
    std::array<std::uint8_t, 4> limits{};
    std::optional<std::uint8_t> secret;
    bool busy = false;  // the switch, with a bind or an unbind
    bool can_abort = false;

    [[nodiscard]] bool is_taken(unsigned ld) const {
        return any([&](const ReferenceVppb& v) { return v.has == ReferenceVppb::kLd && v.what == ld; });
    }
    [[nodiscard]] bool has_pid(unsigned pid) const {
        return any([&](const ReferenceVppb& v) { return v.has == ReferenceVppb::kPid && v.what == pid; });
    }

  private:
    template <typename Predicate>
    bool any(Predicate predicate) const {
        return std::ranges::any_of(vppbs,
                                   [&](const auto& vcs) { return std::ranges::any_of(vcs, predicate); });
    }
};

class Agreement {
  public:
    explicit Agreement(unsigned seed) : random_(seed) {}

    void step() {
        constexpr void (Agreement::* kSteps[])() = {
            &Agreement::bind,       &Agreement::bind,          &Agreement::unbind,   &Agreement::end,
            &Agreement::end,        &Agreement::erase,         &Agreement::resize,   &Agreement::bind_pid,
            &Agreement::unbind_pid, &Agreement::read_vppb,     &Agreement::read_lds, &Agreement::promise,
            &Agreement::set_limit,  &Agreement::read_promises, &Agreement::secret,   &Agreement::abort,
            &Agreement::garbage,    &Agreement::ld_config};
        (this->*kSteps[number(std::size(kSteps))])();
    }
    [[nodiscard]] const std::set<std::pair<Opcode, ReturnCode>>& seen() const { return seen_; }

  private:
    unsigned number(std::size_t below) { return static_cast<unsigned>((random_() >> 8) % below); }
    std::uint8_t byte(unsigned below) { return static_cast<std::uint8_t>(number(below)); }

    template <typename Command>
    void expect(const typename Command::Request& request, ReturnCode code) {
        note(Command::kOpcode, fabric_.code<Command>(request), code);
    }
    void note(Opcode opcode, ReturnCode got, ReturnCode expected) {
        EXPECT_EQ(got, expected) << fmapi::to_string(opcode);
        seen_.emplace(opcode, got);
    }
    ReferenceVppb* find(unsigned vcs, unsigned vppb) {
        return vcs < kVcss && vppb < kVppbs ? &reference_.vppbs[vcs][vppb] : nullptr;
    }

    void bind() {
        const std::uint8_t vcs = byte(kVcss + 1);
        const std::uint8_t vppb = byte(kVppbs + 1);
        const unsigned ld = number(kLds + 1);  // the last one does not exist
        const bool to_sld = ld == kSld;
        const auto id = to_sld ? kWholePort : static_cast<std::uint16_t>(ld);
        ReferenceVppb* target = find(vcs, vppb);
        ReturnCode expected = ReturnCode::kBackgroundStarted;
        if (target == nullptr || ld == kLds)
            expected = ReturnCode::kInvalidInput;
        else if (reference_.busy || reference_.erasing[ld])
            expected = ReturnCode::kBusy;
        else if (target->has != ReferenceVppb::kFree || reference_.is_taken(ld) || reference_.sizes[ld] == 0)
            expected = ReturnCode::kInvalidInput;
        expect<fmapi::BindVppb>({vcs, vppb, to_sld ? kSldPort : kMldPort, id}, expected);
        if (expected != ReturnCode::kBackgroundStarted) return;
        *target = {ReferenceVppb::kLd, ld, true};
        begin_at_switch(target, true);
    }
    void unbind() {
        const std::uint8_t vcs = byte(kVcss + 1);
        const std::uint8_t vppb = byte(kVppbs + 1);
        const std::uint8_t option = byte(4);
        ReferenceVppb* target = find(vcs, vppb);
        ReturnCode expected = ReturnCode::kBackgroundStarted;
        if (target == nullptr || option > 2)
            expected = ReturnCode::kInvalidInput;
        else if (reference_.busy)
            expected = ReturnCode::kBusy;
        else if (target->has != ReferenceVppb::kLd)
            expected = ReturnCode::kInvalidInput;
        expect<fmapi::UnbindVppb>({vcs, vppb, fmapi::UnbindOption{option}}, expected);
        if (expected == ReturnCode::kBackgroundStarted) begin_at_switch(target, false);
    }
    void bind_pid() {
        const std::uint8_t vcs = byte(kVcss + 1);
        const std::uint8_t vppb = byte(kVppbs + 1);
        const auto pid = static_cast<std::uint16_t>(number(8) == 0 ? 0xfff : number(5));
        ReferenceVppb* target = find(vcs, vppb);
        ReturnCode expected = ReturnCode::kBackgroundStarted;
        if (target == nullptr)
            expected = ReturnCode::kInvalidInput;
        else if (reference_.busy)
            expected = ReturnCode::kBusy;
        else if (pid == 0xfff || target->has != ReferenceVppb::kFree || reference_.has_pid(pid))
            expected = ReturnCode::kInvalidInput;
        expect<fmapi::ConfigurePidBinding>({fmapi::PidBindingOperation::kBind, vcs, vppb, pid, {}}, expected);
        if (expected != ReturnCode::kBackgroundStarted) return;
        *target = {ReferenceVppb::kPid, pid, true};
        begin_at_switch(target, true);
    }
    void unbind_pid() {
        const std::uint8_t vcs = byte(kVcss);
        const std::uint8_t vppb = byte(kVppbs);
        ReferenceVppb* target = find(vcs, vppb);
        ReturnCode expected = ReturnCode::kBackgroundStarted;
        if (reference_.busy)
            expected = ReturnCode::kBusy;
        else if (target->has != ReferenceVppb::kPid)
            expected = ReturnCode::kInvalidInput;
        expect<fmapi::ConfigurePidBinding>({fmapi::PidBindingOperation::kUnbind, vcs, vppb, 0, {}}, expected);
        if (expected == ReturnCode::kBackgroundStarted) begin_at_switch(target, false);
    }

    void begin_at_switch(ReferenceVppb* target, bool binding) {
        target->in_progress = true;
        reference_.busy = true;
        reference_.can_abort = binding;
        ends_.push_back([this, target, binding](bool success) {
            target->in_progress = false;
            reference_.busy = false;
            if (binding != success) *target = {};
        });
    }
    // The emulator's list of operations and the reference's are in the same order.
    void end() {
        ASSERT_EQ(fabric_.running().size(), ends_.size());
        if (ends_.empty()) return;
        const std::size_t index = number(ends_.size());
        const bool success = number(3) != 0;
        fabric_.end_at(index, success ? ReturnCode::kSuccess : ReturnCode::kInternalError);
        ends_[index](success);
        ends_.erase(ends_.begin() + static_cast<std::ptrdiff_t>(index));
    }

    void erase() {
        const unsigned ld = number(kLds);
        const Opcode opcode = number(2) == 0 ? Opcode::kSanitize : Opcode::kSecureErase;
        ReturnCode expected = ReturnCode::kBackgroundStarted;
        if (reference_.erasing[ld])
            expected = ReturnCode::kBusy;
        else if (reference_.sizes[ld] == 0)
            expected = ReturnCode::kMediaDisabled;
        else if (reference_.is_taken(ld))
            expected = ReturnCode::kInvalidSecurityState;
        const auto request = fmapi::make_request(opcode, 0);
        const fmapi::Message answer = ld == kSld
                                          ? fabric_.at_device(kSldPort, request, fmapi::MctpType::kCci)
                                          : fabric_.at_ld(kMldPort, static_cast<std::uint8_t>(ld), request);
        note(opcode, answer.return_code, expected);
        if (expected != ReturnCode::kBackgroundStarted) return;
        reference_.erasing[ld] = true;
        ends_.push_back([this, ld](bool) { reference_.erasing[ld] = false; });
    }
    // One LD at a time to 0 or 1 unit, so that whatever is free is a gap for it.
    void resize() {
        const unsigned ld = number(kSld + 1);
        const unsigned size = number(2);
        ReturnCode expected = ReturnCode::kSuccess;
        if (ld == kSld)
            expected = ReturnCode::kInvalidInput;
        else if (reference_.sizes[ld] != size && reference_.is_taken(ld))
            expected = ReturnCode::kInvalidInput;
        else if (reference_.sizes[ld] != size && reference_.erasing[ld])
            expected = ReturnCode::kBusy;
        const auto answer = fabric_.at_device<fmapi::SetLdAllocations>(
            kMldPort, {static_cast<std::uint8_t>(ld), {{size, 0}}});
        note(Opcode::kSetLdAllocations, answer.return_code, expected);
        if (expected == ReturnCode::kSuccess) reference_.sizes[ld] = size;
    }

    void read_vppb() {
        const unsigned vcs = number(kVcss);
        const unsigned vppb = number(kVppbs);
        const ReferenceVppb& known = *find(vcs, vppb);
        fmapi::Vppb expected;
        if (known.has == ReferenceVppb::kLd) {
            expected = known.what == kSld ? fmapi::Vppb{fmapi::VppbBinding::kBoundPort, kSldPort, 0xff}
                                          : fmapi::Vppb{fmapi::VppbBinding::kBoundLd, kMldPort,
                                                        static_cast<std::uint8_t>(known.what)};
        } else if (known.has == ReferenceVppb::kPid) {
            expected.binding = fmapi::VppbBinding::kBoundPid;
        }
        if (known.in_progress) expected.binding = fmapi::VppbBinding::kInProgress;
        EXPECT_EQ(fabric_.vppb(static_cast<std::uint8_t>(vcs), static_cast<std::uint8_t>(vppb)), expected);
    }
    void read_lds() {
        const auto answer = fabric_.get_at_device<fmapi::GetLdAllocations>(kMldPort);
        ASSERT_EQ(answer.allocations.size(), kUnits);
        for (unsigned ld = 0; ld < kSld; ++ld)
            EXPECT_EQ(answer.allocations[ld].range1, reference_.sizes[ld]) << ld;
    }
    void promise() {
        const std::uint8_t ld = byte(kSld + 1);
        const std::uint8_t fraction = byte(256);
        auto after = reference_.allocated;
        unsigned sum = 0;
        if (ld < kSld) after[ld] = fraction;
        for (const std::uint8_t one : after) sum += one;
        const auto expected = ld == kSld || sum > 256 ? ReturnCode::kInvalidInput : ReturnCode::kSuccess;
        note(Opcode::kSetQosAllocatedBandwidth,
             fabric_.at_device<fmapi::SetQosAllocatedBandwidth>(kMldPort, {ld, {fraction}}).return_code,
             expected);
        if (expected == ReturnCode::kSuccess) reference_.allocated = after;
    }
    void set_limit() {
        const std::uint8_t ld = byte(kSld + 1);
        const std::uint8_t fraction = byte(256);
        const auto expected = ld == kSld ? ReturnCode::kInvalidInput : ReturnCode::kSuccess;
        note(Opcode::kSetQosBandwidthLimit,
             fabric_.at_device<fmapi::SetQosBandwidthLimit>(kMldPort, {ld, {fraction}}).return_code,
             expected);
        if (expected == ReturnCode::kSuccess) reference_.limits[ld] = fraction;
    }
    void read_promises() {
        EXPECT_TRUE(
            std::ranges::equal(fabric_.get_at_device<fmapi::GetQosAllocatedBandwidth>(kMldPort).fractions,
                               reference_.allocated));
        EXPECT_TRUE(std::ranges::equal(fabric_.get_at_device<fmapi::GetQosBandwidthLimit>(kMldPort).fractions,
                                       reference_.limits));
    }
    void secret() {
        fmapi::DomainValidationSecret value;
        value.value[0] = byte(256);
        if (number(50) == 0) {
            expect<fmapi::SetDomainValidationSv>(
                value, reference_.secret ? ReturnCode::kInvalidInput : ReturnCode::kSuccess);
            if (!reference_.secret) reference_.secret = value.value[0];
        }
        const std::uint8_t vcs = byte(kVcss + 1);
        const auto answer = fabric_.call<fmapi::GetDomainValidationSv>({vcs});
        const bool there = reference_.secret && vcs < kVcss;
        note(Opcode::kGetDomainValidationSv, answer.return_code,
             there ? ReturnCode::kSuccess : ReturnCode::kInvalidInput);
        if (there) {
            EXPECT_EQ(std::to_integer<unsigned>(answer.payload.at(0)), *reference_.secret);
        }
    }
    // Binds can be aborted, unbinds cannot; an abort only asks.
    void abort() {
        ReturnCode expected = ReturnCode::kSuccess;
        if (reference_.busy && !reference_.can_abort) expected = ReturnCode::kUnsupported;
        expect<fmapi::RequestAbortBackgroundOperation>({}, expected);
    }
    // Of the wrong length, or nothing that there is.
    void garbage() {
        const Opcode known[] = {Opcode::kBindVppb, Opcode::kSetDomainValidationSv, Opcode::kGetPidBinding,
                                Opcode::kSendLdConfigRequest, Opcode::kPhysicalPortControl};
        const Opcode opcode = known[number(std::size(known))];
        note(opcode,
             fabric_.call(fmapi::make_request(opcode, 0, fmapi::Payload(100 + number(10)))).return_code,
             ReturnCode::kInvalidPayloadLength);
        const auto unknown = static_cast<Opcode>(0x6000 + number(0x1000));
        EXPECT_EQ(fabric_.call(fmapi::make_request(unknown, 0, fmapi::Payload(number(20)))).return_code,
                  ReturnCode::kUnsupported);
    }
    void ld_config() {
        const unsigned ld = number(kSld + 1);
        const auto expected =
            ld == kSld || reference_.is_taken(ld) ? ReturnCode::kInvalidInput : ReturnCode::kSuccess;
        expect<fmapi::SendLdConfigRequest>({kMldPort, 0, static_cast<std::uint16_t>(ld), 0}, expected);
    }

    InProcess fabric_{"    pbr: {}\n"};
    Reference reference_;
    std::vector<std::function<void(bool)>> ends_;
    std::minstd_rand random_;
    std::set<std::pair<Opcode, ReturnCode>> seen_;
};

TEST(AgreementProperty, ClientAndEmulatorAgreeWithTheReferenceAfterEveryCommand) {
    const char* given = std::getenv("MEMTIDE_SEED");
    const auto seed = given == nullptr ? 1U : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
    Agreement agreement(seed);
    for (int i = 0; i < kCommands; ++i) {
        agreement.step();
        ASSERT_FALSE(::testing::Test::HasFailure()) << "command " << i << ", MEMTIDE_SEED=" << seed;
    }
    // Or nothing was tested.
    for (const auto code : {ReturnCode::kBackgroundStarted, ReturnCode::kInvalidInput, ReturnCode::kBusy})
        for (const Opcode opcode : {Opcode::kBindVppb, Opcode::kUnbindVppb, Opcode::kConfigurePidBinding})
            EXPECT_TRUE(agreement.seen().contains({opcode, code})) << fmapi::to_string(opcode);
    for (const auto code : {ReturnCode::kBackgroundStarted, ReturnCode::kBusy, ReturnCode::kMediaDisabled,
                            ReturnCode::kInvalidSecurityState})
        EXPECT_TRUE(agreement.seen().contains({Opcode::kSanitize, code}));
}

}  // namespace
}  // namespace memtide::emul::test
