#include "cxl-emul/switch/command_table.h"

// Domain validation (CXL 3.1, 7.6.7.1.5 to 7.6.7.1.8): the switch has one secret value, which its virtual
// switches show to their hosts.
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;

fmapi::DomainValidationStateResponse state_of(const SwitchModel& model) {
    return {model.domain_validation ? fmapi::DomainValidationState::kSet
                                    : fmapi::DomainValidationState::kNotSet};
}

Outcome domain_state(const SwitchContext& context, const fmapi::NoPayload&) {
    return done(state_of(context.model));
}

// Once, until the switch is reset: whoever comes second, and be it with the same value, is told so.
Outcome set_domain_value(const SwitchContext& context, const fmapi::DomainValidationSecret& request) {
    if (context.model.domain_validation) return refuse(ReturnCode::kInvalidInput);
    context.model.domain_validation = request.value;
    return done();
}

Outcome vcs_domain_state(const SwitchContext& context, const fmapi::DomainValidationVcsRequest& request) {
    if (!context.model.find_vcs(request.vcs)) return refuse(ReturnCode::kInvalidInput);
    return done(state_of(context.model));
}

Outcome vcs_domain_value(const SwitchContext& context, const fmapi::DomainValidationVcsRequest& request) {
    const SwitchModel& model = context.model;
    if (!model.find_vcs(request.vcs) || !model.domain_validation) return refuse(ReturnCode::kInvalidInput);
    return done(fmapi::DomainValidationSecret{*model.domain_validation});
}

constexpr Row<SwitchContext> kDomainRows[] = {
    row<fmapi::GetDomainValidationSvState, SwitchContext, domain_state>(),
    row<fmapi::SetDomainValidationSv, SwitchContext, set_domain_value>(),
    row<fmapi::GetVcsDomainValidationSvState, SwitchContext, vcs_domain_state>(),
    row<fmapi::GetDomainValidationSv, SwitchContext, vcs_domain_value>(),
};

}  // namespace

std::span<const Row<SwitchContext>> domain_validation_commands() { return kDomainRows; }

}  // namespace memtide::emul
