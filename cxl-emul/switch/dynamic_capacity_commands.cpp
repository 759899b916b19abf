#include <algorithm>
#include <utility>

#include "cxl-emul/switch/command_table.h"
#include "cxl-emul/switch/component_events.h"

// Dynamic capacity command sets: of the device for the fabric manager (CXL 3.1, 7.6.7.6), and of each of its
// LDs for the host that has it (8.2.9.9.9).
namespace memtide::emul {
namespace {

using fmapi::EventLog;
using fmapi::ReturnCode;

// How many entries of `size` bytes a response that has `header` bytes without them may hold.
std::size_t entries_that_fit(const Component& component, std::size_t header, std::size_t size) {
    return ((std::size_t{1} << component.response_limit) - fmapi::kHeaderSize - header) / size;
}

// What of a list is asked for and fits into a response.
template <typename Response, typename Element>
std::vector<Element> page(const Component& component, const std::vector<Element>& all, std::uint32_t first,
                          std::uint32_t limit) {
    const std::size_t count =
        std::min({all.size() - first, std::size_t{limit},
                  entries_that_fit(component, Response::kWireSize, Element::kWireSize)});
    const auto begin = all.begin() + first;
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

Outcome logged(DcdState& state, ReturnCode code) {
    state.log_events();
    return refuse(code);
}

// --- the device ---

Outcome dcd_info(const DeviceContext& context, const fmapi::NoPayload&) {
    const DynamicCapacity& memory = context.dynamic().memory;
    fmapi::GetDcdInfoResponse response;
    response.hosts = static_cast<std::uint8_t>(memory.hosts());
    response.regions = static_cast<std::uint8_t>(memory.regions().size());
    response.selection_policies = 0b1111;
    response.removal_policies = 0b11;
    response.total_capacity = context.device().config.size / kCxlGranule;
    for (std::size_t i = 0; i < memory.regions().size(); ++i) {
        response.sanitize_mask = static_cast<std::uint8_t>(response.sanitize_mask | 1u << i);
        // Powers of two that divide the region.
        for (std::uint64_t block = kSmallestDcBlock; memory.regions()[i].range.size() % block == 0;
             block *= 2)
            response.block_sizes[i] |= block;
    }
    return done(response);
}

Outcome host_regions(const DeviceContext& context,
                     const fmapi::GetHostDcRegionConfigurationRequest& request) {
    const DynamicCapacity& memory = context.dynamic().memory;
    const auto& all = memory.regions();
    if (request.host >= memory.hosts() || request.regions == 0 || request.first_region >= all.size())
        return refuse(ReturnCode::kInvalidInput);
    fmapi::GetHostDcRegionConfigurationResponse response;
    response.host = request.host;
    response.available_regions = static_cast<std::uint8_t>(all.size());
    const std::size_t end = std::min<std::size_t>(all.size(), request.first_region + request.regions);
    for (std::size_t i = request.first_region; i < end; ++i)
        response.regions.push_back(
            {.base = all[i].range.begin,
             .decode_length = all[i].range.size() / kCxlGranule.value,
             .length = all[i].range.size(),
             .block_size = all[i].block,
             .flags = all[i].shareable ? fmapi::kDcRegionShareable : std::uint8_t{0},
             .sanitize_on_release = static_cast<std::uint8_t>(all[i].sanitizes ? 1 : 0)});
    response.supported_extents = memory.limits().extents;
    response.available_extents = memory.available_extents();
    response.supported_tags = memory.limits().tags;
    response.available_tags = memory.available_tags();
    return done(response);
}

Outcome configure_region(const DeviceContext& context,
                         const fmapi::SetDcRegionConfigurationRequest& request) {
    return logged(context.dynamic(), context.dynamic().memory.configure(request));
}

Outcome extent_lists(const DeviceContext& context, const fmapi::GetDcRegionExtentListsRequest& request) {
    const DynamicCapacity& memory = context.dynamic().memory;
    if (request.host >= memory.hosts() || request.first > memory.accepted(request.host).size())
        return refuse(ReturnCode::kInvalidInput);
    const auto& all = memory.accepted(request.host);
    return done(
        fmapi::GetDcRegionExtentListsResponse{.host = request.host,
                                              .first = request.first,
                                              .extents = page<fmapi::GetDcRegionExtentListsResponse>(
                                                  context.component(), all, request.first, request.extents),
                                              .total = static_cast<std::uint32_t>(all.size()),
                                              .generation = memory.generation(request.host)});
}

std::size_t room_at(const DcdState& state, std::uint16_t host) {
    return host < state.host_events.size() ? state.host_events[host].room(EventLog::kDynamicCapacity) : 0;
}

Outcome add_capacity(const DeviceContext& context, const fmapi::InitiateDynamicCapacityAddRequest& request) {
    DcdState& state = context.dynamic();
    return logged(state, state.memory.add(request, room_at(state, request.host)));
}

Outcome release_capacity(const DeviceContext& context,
                         const fmapi::InitiateDynamicCapacityReleaseRequest& request) {
    DcdState& state = context.dynamic();
    return logged(state, state.memory.release(request, room_at(state, request.host)));
}

Outcome add_reference(const DeviceContext& context, const fmapi::DcReferenceRequest& request) {
    return refuse(context.dynamic().memory.add_reference(request.tag));
}

Outcome remove_reference(const DeviceContext& context, const fmapi::DcReferenceRequest& request) {
    return refuse(context.dynamic().memory.remove_reference(request.tag));
}

Outcome list_tags(const DeviceContext& context, const fmapi::DynamicCapacityListTagsRequest& request) {
    const DynamicCapacity& memory = context.dynamic().memory;
    const auto all = memory.tags();
    if (request.first > all.size()) return refuse(ReturnCode::kInvalidInput);
    return done(
        fmapi::DynamicCapacityListTagsResponse{.generation = memory.tags_generation(),
                                               .total = static_cast<std::uint32_t>(all.size()),
                                               .tags = page<fmapi::DynamicCapacityListTagsResponse>(
                                                   context.component(), all, request.first, request.limit),
                                               .validity = 3});
}

// --- an LD ---

Outcome own_regions(const LdContext& context, const fmapi::GetDynamicCapacityConfigurationRequest& request) {
    const DynamicCapacity& memory = context.dynamic().memory;
    const auto& all = memory.regions();
    if (request.regions == 0 || request.first_region >= all.size()) return refuse(ReturnCode::kInvalidInput);
    fmapi::GetDynamicCapacityConfigurationResponse response;
    response.available_regions = static_cast<std::uint8_t>(all.size());
    const std::size_t end = std::min<std::size_t>(all.size(), request.first_region + request.regions);
    for (std::size_t i = request.first_region; i < end; ++i)
        response.regions.push_back({.base = all[i].range.begin,
                                    .decode_length = all[i].range.size() / kCxlGranule.value,
                                    .length = all[i].range.size(),
                                    .block_size = all[i].block,
                                    .dsmad_handle = static_cast<std::uint32_t>(i),
                                    .flags = static_cast<std::uint8_t>(all[i].sanitizes ? 1 : 0)});
    response.supported_extents = memory.limits().extents;
    response.available_extents = memory.available_extents();
    response.supported_tags = memory.limits().tags;
    response.available_tags = memory.available_tags();
    return done(response);
}

Outcome own_extents(const LdContext& context, const fmapi::GetDynamicCapacityExtentListRequest& request) {
    const DynamicCapacity& memory = context.dynamic().memory;
    const auto& all = memory.accepted(context.index);
    if (request.first > all.size()) return refuse(ReturnCode::kInvalidInput);
    return done(fmapi::GetDynamicCapacityExtentListResponse{
        .extents = page<fmapi::GetDynamicCapacityExtentListResponse>(context.component(), all, request.first,
                                                                     request.extents),
        .total = static_cast<std::uint32_t>(all.size()),
        .generation = memory.generation(context.index)});
}

Outcome respond(const LdContext& context, const fmapi::UpdatedDcExtents& request) {
    return logged(context.dynamic(), context.dynamic().memory.respond(context.index, request));
}

Outcome give_back(const LdContext& context, const fmapi::UpdatedDcExtents& request) {
    return logged(context.dynamic(), context.dynamic().memory.give_back(context.index, request));
}

constexpr Row<DeviceContext> kDcdRows[] = {
    row<fmapi::GetDcdInfo, DeviceContext, dcd_info>(),
    row<fmapi::GetHostDcRegionConfiguration, DeviceContext, host_regions>(),
    row<fmapi::SetDcRegionConfiguration, DeviceContext, configure_region>(),
    row<fmapi::GetDcRegionExtentLists, DeviceContext, extent_lists>(),
    row<fmapi::InitiateDynamicCapacityAdd, DeviceContext, add_capacity>(),
    row<fmapi::InitiateDynamicCapacityRelease, DeviceContext, release_capacity>(),
    row<fmapi::DynamicCapacityAddReference, DeviceContext, add_reference>(),
    row<fmapi::DynamicCapacityRemoveReference, DeviceContext, remove_reference>(),
    row<fmapi::DynamicCapacityListTags, DeviceContext, list_tags>(),
    row<fmapi::GetEventRecords, DeviceContext, get_event_records<DeviceContext>>(),
    row<fmapi::ClearEventRecords, DeviceContext, clear_event_records<DeviceContext>>(),
};

constexpr Row<LdContext> kDcdLdRows[] = {
    row<fmapi::GetDynamicCapacityConfiguration, LdContext, own_regions>(),
    row<fmapi::GetDynamicCapacityExtentList, LdContext, own_extents>(),
    row<fmapi::AddDynamicCapacityResponse, LdContext, respond>(),
    row<fmapi::ReleaseDynamicCapacity, LdContext, give_back>(),
    row<fmapi::GetEventRecords, LdContext, get_event_records<LdContext>>(),
    row<fmapi::ClearEventRecords, LdContext, clear_event_records<LdContext>>(),
};

template <typename Context, std::size_t kCount>
const Row<Context>* find_row(const Row<Context> (&rows)[kCount], fmapi::Opcode opcode) {
    const auto* found = std::ranges::find(rows, opcode, &Row<Context>::opcode);
    return found == std::end(rows) ? nullptr : found;
}

}  // namespace

const Row<DeviceContext>* find_dcd_command(fmapi::Opcode opcode) { return find_row(kDcdRows, opcode); }
const Row<LdContext>* find_dcd_ld_command(fmapi::Opcode opcode) { return find_row(kDcdLdRows, opcode); }

void DcdState::log_events() {
    for (const DynamicCapacity::Event& event : memory.take_events()) {
        append_record(event.host ? host_events[*event.host] : events, EventLog::kDynamicCapacity,
                      fmapi::kDynamicCapacityRecord, event.record);
        if (event.host) interrupts[*event.host] = true;
    }
}

}  // namespace memtide::emul
