// The steps of a job that have an effect on a switch: journal, effect, look, journal.
#include <algorithm>

#include <fmt/format.h>

#include "fabric-manager/engine/core.h"
#include "fabric-manager/engine/dynamic_capacity.h"
#include "fabric-manager/engine/retrying.h"
#include "fabric-manager/engine/steps.h"

namespace memtide::fm {

namespace {

using enum ActionKind;

}  // namespace

// Waits for the switch's one operation at a time.
Async<AsyncMutex::Lock> Core::turn_at_switch(PartRef ref) {
    const SteadyTime began = std::chrono::steady_clock::now();
    AsyncMutex::Lock lock = co_await switches_.at(ref.switch_id())->operation.lock();
    ref.job().waited_ms += since_ms(began);
    co_return lock;
}

// What is journaled first needs no turn: who waits for the disk keeps nobody from the switch.
Async<Core::Progress> Core::bind_step(PartRef ref) {
    if (ref.part().state == CompositionState::kPending) {
        Change change = [this](Draft& draft) {
            Part& part = draft.part();
            if (part.state != CompositionState::kPending || part.release_requested) return false;
            part.state = CompositionState::kBinding;
            begin_step(draft.c, part.number, "bind", now());
            return true;
        };
        const Progress journaled = co_await advance(ref, std::move(change));
        if (journaled != Progress::kAgain || ref.part().state != CompositionState::kBinding)
            co_return journaled;
    }
    const AsyncMutex::Lock turn = co_await turn_at_switch(ref);
    // Others had their turn meanwhile: decide again on what is true now.
    if (stopping_ || next(ref).kind != kBind) co_return Progress::kAgain;
    point("effect", "bind");
    const Result<> done = co_await bind(ref);
    point("effected", "bind");
    if (done) {
        ref.job().failures = 0;
        co_return Progress::kAgain;
    }
    if (!is_final(done.error(), ref.job().failures + 1)) co_return refused_for_now(ref, done.error());
    Reason reason{"bind-refused", done.error().message};
    co_return co_await fail_step(ref, std::move(reason));
}

Async<Core::Progress> Core::unbind_step(PartRef ref) {
    if (ref.part().state == CompositionState::kDraining) {
        Change change = [this](Draft& draft) {
            Part& part = draft.part();
            if (part.state != CompositionState::kDraining) return false;
            part.state = CompositionState::kUnbinding;
            end_step(draft.c, part.number, "drain", now(), part.forced ? "forced" : "");
            begin_step(draft.c, part.number, "unbind", now());
            if (part.forced) {
                draft.code = "forced";
                draft.detail = "unbound as a surprise removal, without waiting for the agent";
            }
            return true;
        };
        const Progress journaled = co_await advance(ref, std::move(change));
        if (journaled != Progress::kAgain || ref.part().state != CompositionState::kUnbinding)
            co_return journaled;
    }
    const AsyncMutex::Lock turn = co_await turn_at_switch(ref);
    if (stopping_ || next(ref).kind != kUnbind) co_return Progress::kAgain;
    point("effect", "unbind");
    const Result<> done = co_await unbind(ref);
    point("effected", "unbind");
    if (!done) co_return refused_for_now(ref, done.error());
    ref.job().failures = 0;
    co_return Progress::kAgain;
}

Async<Core::Progress> Core::await_background_step(PartRef ref) {
    const AsyncMutex::Lock turn = co_await turn_at_switch(ref);
    if (stopping_ || next(ref).kind != kAwaitBackground) co_return Progress::kAgain;
    const VppbAddress where = ref.part().where;
    const fmapi::Opcode operation = ref.part().state == CompositionState::kUnbinding
                                        ? fmapi::Opcode::kUnbindVppb
                                        : fmapi::Opcode::kBindVppb;
    Result<> done = co_await follow_background(where.switch_id, Target::the_switch(), operation, ref);
    const Result<> looked = co_await look_at_vcs(where);
    if (!looked) done = looked;
    if (!done) co_return refused_for_now(ref, done.error());
    // A switch that says that nothing runs and still shows the vPPB busy is asked again after a pause.
    ++ref.job().failures;
    co_return next(ref).kind == kAwaitBackground ? Progress::kRetry : Progress::kAgain;
}

// Its host did not take what it was offered, or somebody withdrew it: told once, tried as often as the switch
// is read.
Async<Core::Progress> Core::offer_step(PartRef ref) {
    const AsyncMutex::Lock turn = co_await turn_at_switch(ref);
    if (stopping_ || next(ref).kind != kOffer) co_return Progress::kAgain;
    point("effect", "offer");
    const Result<SerialNumber> offered = co_await set_capacity(ref, ref.part().size);
    point("effected", "offer");
    if (!offered && is_final(offered.error(), ref.job().failures + 1)) {
        Reason reason{"offer-refused", offered.error().message};
        co_return co_await fail_step(ref, std::move(reason));
    }
    if (!offered) co_return refused_for_now(ref, offered.error());
    const Error again{ErrorCode::kConflict,
                      fmt::format("host {} does not have the dynamic capacity that it was offered; it was "
                                  "offered again",
                                  ref.entry->c.host.value)};
    trouble(ref, again);
    ref.job().failures = 0;
    co_return Progress::kAgain;
}

Async<Core::Progress> Core::see_accepted_step(PartRef ref) {
    const AsyncMutex::Lock turn = co_await turn_at_switch(ref);
    if (stopping_ || next(ref).kind != kSeeAccepted) co_return Progress::kAgain;
    const LdAddress memory = ref.part().memory;
    FmApiClient& client = *switches_.at(ref.switch_id())->client;
    const Result<Bytes> accepted = co_await accepted_capacity(client, {ref.part().port, memory.ld.value});
    if (!accepted) co_return refused_for_now(ref, accepted.error());
    inventory_.accepted(memory, *accepted);
    if (next(ref).kind != kSeeAccepted) co_return Progress::kAgain;
    const Error lacking{
        ErrorCode::kUnavailable,
        fmt::format("the agent of {} reports the memory online, and its device says that {} "
                    "of {} were accepted",
                    ref.entry->c.host.value, format_bytes(*accepted), format_bytes(ref.part().size))};
    trouble(ref, lacking);
    co_return Progress::kRetry;
}

Async<Core::Progress> Core::erase_step(PartRef ref, ActionKind kind) {
    const bool before_bind = kind == kEraseBeforeBind;
    const CompositionState from = ref.part().state;
    const std::string name = before_bind ? "erase-before-bind" : "erase";
    if (before_bind) {
        Change change = [this, from, name](Draft& draft) {
            const auto under_way = [&](const Step& step) {
                return step.part == draft.number && step.name == name && !step.ended;
            };
            if (draft.part().state != from || std::ranges::any_of(draft.c.steps, under_way)) return false;
            begin_step(draft.c, draft.number, name, now());
            return true;
        };
        const Progress journaled = co_await advance(ref, std::move(change));
        if (journaled != Progress::kAgain || ref.part().state != from || ref.part().release_requested)
            co_return journaled;
    }
    const SwitchId switch_id = ref.switch_id();
    if (is_connected_anew(switch_id)) {
        doubt(switch_id);
        co_return Progress::kAgain;
    }
    const std::uint64_t connection = switches_.at(switch_id)->connection;
    const std::uint64_t carving = carvings_[ref.part().memory.device];
    const LdAddress memory = ref.part().memory;
    const std::uint8_t port = ref.part().port;
    point("effect", "erase");
    const Result<> done = co_await erase(memory, switch_id, port, ref);
    point("effected", "erase");
    if (!done) co_return co_await erase_failed(ref, done.error());
    // Between two attempts to bind, the failures counted are those of the bind.
    if (from != CompositionState::kBinding) ref.job().failures = 0;
    // The device's memory was, or may have been, divided anew meanwhile: what was erased may be another LD's
    // now.
    if (is_connected_anew(switch_id)) {
        doubt(switch_id);
        co_return Progress::kAgain;
    }
    if (carving != carvings_[ref.part().memory.device]) co_return Progress::kAgain;
    Change change = [this, from, name, before_bind, connection](Draft& draft) {
        Part& part = draft.part();
        if (part.state != from) return false;
        end_step(draft.c, part.number, name, now());
        draft.erased_over = connection;
        if (before_bind) return true;
        part.state = part.reason ? CompositionState::kFailed : CompositionState::kReleased;
        if (draft.c.failed) draft.c.undone = {"bind", "reservation"};
        return true;
    };
    co_return co_await advance(ref, std::move(change));
}

}  // namespace memtide::fm
