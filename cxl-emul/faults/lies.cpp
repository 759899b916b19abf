#include "cxl-emul/faults/lies.h"

#include <algorithm>

#include "common/fmapi/commands.h"

namespace memtide::emul {
namespace {

// Decodes the answer, changes it and encodes it again. False when it is none of this kind.
template <typename Response, typename Change>
bool rewrite(fmapi::Message& answer, Change change) {
    auto response = fmapi::decode<Response>(answer.payload);
    if (!response) return false;
    const Response before = *response;
    change(*response);
    if (*response == before) return false;
    answer.payload = fmapi::encode(*response);
    return true;
}

// LDs have the serial numbers behind the device's.
bool lie_about_serial(const Fault& fault, const TunnelLevel& level, fmapi::Message& answer) {
    return rewrite<fmapi::IdentifyResponse>(answer, [&](fmapi::IdentifyResponse& response) {
        if (fault.serial) response.serial = fault.serial->value + (level.ld ? 1U + *level.ld : 0U);
    });
}

bool lie_about_ld_info(const Fault& fault, fmapi::Message& answer) {
    return rewrite<fmapi::GetLdInfoResponse>(answer, [&](fmapi::GetLdInfoResponse& response) {
        if (fault.capacity) response.memory_size = fault.capacity->value;
        if (fault.lds) response.ld_count = *fault.lds;
    });
}

bool lie_about_allocations(const Fault& fault, const TunnelLevel& level, fmapi::Message& answer) {
    const auto request = fmapi::decode<fmapi::GetLdAllocationsRequest>(level.request.payload);
    if (!request) return false;
    return rewrite<fmapi::GetLdAllocationsResponse>(answer, [&](fmapi::GetLdAllocationsResponse& response) {
        const Bytes unit = bytes_of(response.granularity);
        if (fault.lds) {
            response.total_lds = *fault.lds;
            const int left = std::max(0, int{*fault.lds} - int{request->first_ld});
            response.allocations.resize(
                std::min<std::size_t>(static_cast<std::size_t>(left), request->limit));
        }
        if (fault.ld_size && unit.value != 0)
            for (fmapi::LdAllocation& allocation : response.allocations)
                allocation = {.range1 = *fault.ld_size / unit, .range2 = 0};
    });
}

bool lie_about_memory(const Fault& fault, const TunnelLevel& level, fmapi::Message& answer) {
    const auto& size = level.ld ? fault.ld_size : fault.capacity;
    return rewrite<fmapi::IdentifyMemoryDeviceResponse>(
        answer, [&](fmapi::IdentifyMemoryDeviceResponse& response) {
            if (!size) return;
            response.total_capacity = *size / kCxlGranule;
            response.volatile_only_capacity = response.total_capacity;
        });
}

}  // namespace

bool tell_lie(const Fault& fault, const TunnelLevel& level, fmapi::Message& answer) {
    if (answer.return_code != fmapi::ReturnCode::kSuccess) return false;
    switch (level.request.opcode) {
        case fmapi::Opcode::kIdentify:
            return lie_about_serial(fault, level, answer);
        case fmapi::Opcode::kGetLdInfo:
            return lie_about_ld_info(fault, answer);
        case fmapi::Opcode::kGetLdAllocations:
            return lie_about_allocations(fault, level, answer);
        case fmapi::Opcode::kIdentifyMemoryDevice:
            return lie_about_memory(fault, level, answer);
        default:
            return false;
    }
}

}  // namespace memtide::emul
