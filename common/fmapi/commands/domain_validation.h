#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "common/fmapi/command.h"

// Domain validation (CXL 3.1, 7.6.7.1.5 to 7.6.7.1.8): a secret value that the FM sets at every switch of its
// domain, so that the hosts of a VCS can tell that they are in the same one.
namespace memtide::fmapi {

enum class DomainValidationState : std::uint8_t { kNotSet = 0, kSet = 1 };
using DomainValidationValue = std::array<std::uint8_t, 16>;

// Response of Get Domain Validation SV State and of Get VCS Domain Validation SV State.
struct DomainValidationStateResponse {
    DomainValidationState state = DomainValidationState::kNotSet;

    static constexpr std::string_view kName = "domain validation SV state";
    static constexpr std::size_t kWireSize = 1;
    static constexpr auto fields = std::tuple{field("state", &DomainValidationStateResponse::state)};
    friend bool operator==(const DomainValidationStateResponse&,
                           const DomainValidationStateResponse&) = default;
};

// Request of Set Domain Validation SV and response of Get Domain Validation SV.
struct DomainValidationSecret {
    DomainValidationValue value{};  // a UUID

    static constexpr std::string_view kName = "domain validation SV";
    static constexpr std::size_t kWireSize = 16;
    static constexpr auto fields = std::tuple{field("value", &DomainValidationSecret::value)};
    friend bool operator==(const DomainValidationSecret&, const DomainValidationSecret&) = default;
};

struct DomainValidationVcsRequest {
    std::uint8_t vcs = 0;

    static constexpr std::string_view kName = "domain validation SV request";
    static constexpr std::size_t kWireSize = 1;
    static constexpr auto fields = std::tuple{field("vcs", &DomainValidationVcsRequest::vcs)};
    friend bool operator==(const DomainValidationVcsRequest&, const DomainValidationVcsRequest&) = default;
};

using GetDomainValidationSvState =
    Command<Opcode::kGetDomainValidationSvState, "Get Domain Validation SV State", NoPayload,
            DomainValidationStateResponse, kRepeatable>;
// Not repeatable: a switch takes one value until it is reset.
using SetDomainValidationSv =
    Command<Opcode::kSetDomainValidationSv, "Set Domain Validation SV", DomainValidationSecret, NoPayload>;
using GetVcsDomainValidationSvState =
    Command<Opcode::kGetVcsDomainValidationSvState, "Get VCS Domain Validation SV State",
            DomainValidationVcsRequest, DomainValidationStateResponse, kRepeatable>;
using GetDomainValidationSv = Command<Opcode::kGetDomainValidationSv, "Get Domain Validation SV",
                                      DomainValidationVcsRequest, DomainValidationSecret, kRepeatable>;

}  // namespace memtide::fmapi
