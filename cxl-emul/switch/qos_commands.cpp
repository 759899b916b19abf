#include <algorithm>

#include "cxl-emul/switch/command_table.h"

// Quality of service of an MLD (CXL 3.1, 7.6.7.4.4 to 7.6.7.4.10).
namespace memtide::emul {
namespace {

using fmapi::ReturnCode;
using Fraction = std::uint8_t LdQos::*;

constexpr std::uint8_t kSupportedTelemetry =
    fmapi::kEgressPortCongestion | fmapi::kTemporaryThroughputReduction;
constexpr std::uint8_t kMaxPercent = 100;
constexpr std::uint8_t kMaxSampleInterval = 15;

Outcome fractions_of(const DeviceContext& context, const fmapi::QosFractionsRequest& request,
                     Fraction fraction) {
    const Device& device = context.device();
    if (request.first_ld >= device.lds.size()) return refuse(ReturnCode::kInvalidInput);
    fmapi::QosFractions response{.first_ld = request.first_ld, .fractions = {}};
    const std::size_t listed = std::min<std::size_t>(device.lds.size() - request.first_ld, request.lds);
    for (std::size_t i = 0; i < listed; ++i)
        response.fractions.push_back(device.lds[request.first_ld + i].qos.*fraction);
    return done(response);
}

// Whether the LDs are there and at the head that is asked.
bool may_change(const DeviceContext& context, const fmapi::QosFractions& request, Fraction fraction) {
    const Device& device = context.device();
    if (request.fractions.empty() || request.first_ld + request.fractions.size() > device.lds.size())
        return false;
    for (std::size_t i = 0; i < request.fractions.size(); ++i) {
        const std::size_t ld = request.first_ld + i;
        if (device.lds[ld].qos.*fraction != request.fractions[i] &&
            !device.config.is_at_head(ld, context.head))
            return false;
    }
    return true;
}

void change(Device& device, const fmapi::QosFractions& request, Fraction fraction) {
    for (std::size_t i = 0; i < request.fractions.size(); ++i)
        device.lds[request.first_ld + i].qos.*fraction = request.fractions[i];
}

unsigned promised(const Device& device) {
    unsigned sum = 0;
    for (const Ld& ld : device.lds) sum += ld.qos.allocated;
    return sum;
}

}  // namespace

BandwidthShares bandwidth_of(const Device& device) {
    std::vector<LdTraffic> traffic;
    for (const Ld& ld : device.lds)
        traffic.push_back({ld.qos.allocated, ld.qos.limit, ld.taken_by ? ld.qos.demand : 0});
    return share_bandwidth(device.config.bandwidth.value, traffic, device.qos);
}

Outcome qos_control(const DeviceContext& context, const fmapi::NoPayload&) {
    return done(context.device().qos);
}

Outcome set_qos_control(const DeviceContext& context, const fmapi::QosControl& request) {
    if ((request.telemetry & ~kSupportedTelemetry) != 0 || request.egress_moderate_percent == 0 ||
        request.egress_severe_percent > kMaxPercent ||
        request.egress_severe_percent <= request.egress_moderate_percent ||
        request.backpressure_sample_interval > kMaxSampleInterval)
        return refuse(ReturnCode::kInvalidInput);
    context.device().qos = request;
    return done(request);
}

Outcome qos_status(const DeviceContext& context, const fmapi::NoPayload&) {
    return done(fmapi::GetQosStatusResponse{bandwidth_of(context.device()).backpressure_percent});
}

Outcome allocated_bandwidth(const DeviceContext& context, const fmapi::QosFractionsRequest& request) {
    return fractions_of(context, request, &LdQos::allocated);
}

// No more can be promised than there is.
Outcome set_allocated_bandwidth(const DeviceContext& context, const fmapi::QosFractions& request) {
    if (!may_change(context, request, &LdQos::allocated)) return refuse(ReturnCode::kInvalidInput);
    Device& device = context.device();
    unsigned sum = promised(device);
    for (std::size_t i = 0; i < request.fractions.size(); ++i)
        sum = sum - device.lds[request.first_ld + i].qos.allocated + request.fractions[i];
    if (sum > kWholeBandwidth) return refuse(ReturnCode::kInvalidInput);
    change(device, request, &LdQos::allocated);
    return done(request);
}

Outcome bandwidth_limit(const DeviceContext& context, const fmapi::QosFractionsRequest& request) {
    return fractions_of(context, request, &LdQos::limit);
}

Outcome set_bandwidth_limit(const DeviceContext& context, const fmapi::QosFractions& request) {
    if (!may_change(context, request, &LdQos::limit)) return refuse(ReturnCode::kInvalidInput);
    change(context.device(), request, &LdQos::limit);
    return done(request);
}

}  // namespace memtide::emul
