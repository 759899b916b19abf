#include "fabric-manager/fmapi/client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/session.h"
#include "fabric-manager/fmapi/transport.h"
#include "fabric-manager/fmapi/tunnel.h"

namespace memtide::fm {
namespace {

using fmapi::Opcode;
using fmapi::ReturnCode;

// Keeps the largest answer, 32 VCSs of 255 vPPBs, well under the 64 KiB a message may have.
constexpr std::size_t kVcssPerRequest = 32;
constexpr std::size_t kPortsPerRequest = 255;

template <typename Payload>
struct Outcome {
    Completion completion;
    Payload payload;
};

// Whether it is asked again over a new connection by itself. What changes allocations is not: behind a new
// connection there may be another state of things, which the caller has to look at first.
template <typename Command>
constexpr bool is_repeated() {
    return Command::kTraits.repeatable && Command::kOpcode != Opcode::kSetLdAllocations;
}

// Some switches leave the two subsystem ids out of Identify.
void widen_identify(fmapi::Payload& payload) {
    constexpr std::size_t kWithoutSubsystem = 14;
    constexpr std::size_t kSubsystemAt = 4;
    if (payload.size() == kWithoutSubsystem) payload.insert(payload.begin() + kSubsystemAt, 4, std::byte{0});
}

std::string describe(Opcode opcode, const Target& target) {
    return fmt::format("{} to {}", fmapi::to_string(opcode), to_string(target));
}

// A command and its typed answer. `expected` is what the response is decoded onto.
template <typename Command>
Call<Outcome<typename Command::Response>> call(std::shared_ptr<Session> session, Target target,
                                               typename Command::Request request,
                                               typename Command::Response expected = {},
                                               std::optional<std::uint64_t> connection = std::nullopt) {
    Ask asked{.opcode = Command::kOpcode,
              .payload = fmapi::encode(request),
              .repeatable = is_repeated<Command>(),
              .connection = connection};
    auto answer = co_await exchange_with(session, target, std::move(asked));
    const auto what = [&] { return describe(Command::kOpcode, target); };
    if (!answer) co_return std::unexpected(Error(answer.error()).with_context(what()));
    if constexpr (Command::kOpcode == Opcode::kIdentify) widen_identify(answer->payload);
    if (answer->return_code == ReturnCode::kBackgroundStarted)
        co_return Outcome<typename Command::Response>{Completion::kInBackground, std::move(expected)};
    if (answer->return_code != ReturnCode::kSuccess)
        co_return fail(
            error_code_of(answer->return_code),
            fmt::format("switch at {}: {}: {}", session->address(), what(), to_string(answer->return_code)));
    auto payload = fmapi::decode<typename Command::Response>(answer->payload, std::move(expected));
    if (!payload)
        co_return std::unexpected(
            std::move(payload.error())
                .with_context(fmt::format("switch at {}: {}", session->address(), what())));
    co_return Outcome<typename Command::Response>{Completion::kDone, std::move(*payload)};
}

// A command that answers at once.
template <typename Command>
Call<typename Command::Response> ask(std::shared_ptr<Session> session, Target target,
                                     typename Command::Request request = {},
                                     typename Command::Response expected = {}) {
    auto outcome = co_await call<Command>(session, target, std::move(request), std::move(expected));
    if (!outcome) co_return std::unexpected(std::move(outcome.error()));
    if (outcome->completion == Completion::kInBackground)
        co_return fail(ErrorCode::kProtocol,
                       fmt::format("switch at {}: {}: goes on in the background", session->address(),
                                   describe(Command::kOpcode, target)));
    co_return std::move(outcome->payload);
}

// A command without an answer worth having.
template <typename Command>
Call<void> tell(std::shared_ptr<Session> session, Target target, typename Command::Request request = {}) {
    const auto answer = co_await ask<Command>(session, target, std::move(request));
    if (!answer) co_return std::unexpected(answer.error());
    co_return Result<void>{};
}

// A command that may go on in the background.
template <typename Command>
Call<Completion> start(std::shared_ptr<Session> session, Target target,
                       typename Command::Request request = {},
                       std::optional<std::uint64_t> connection = std::nullopt) {
    typename Command::Response nothing{};
    const auto outcome =
        co_await call<Command>(session, target, std::move(request), std::move(nothing), connection);
    if (!outcome) co_return std::unexpected(outcome.error());
    co_return outcome->completion;
}

std::unexpected<Error> not_what_was_asked(const Session& session, Opcode opcode, std::string_view what) {
    return fail(ErrorCode::kProtocol,
                fmt::format("switch at {}: {}: the answer is about other {} than asked for",
                            session.address(), fmapi::to_string(opcode), what));
}

std::vector<std::uint8_t> chunk_of(const std::vector<std::uint8_t>& ids, std::size_t from, std::size_t size) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(from);
    return {begin, begin + static_cast<std::ptrdiff_t>(std::min(size, ids.size() - from))};
}

Call<std::vector<fmapi::PhysicalPort>> ask_ports(std::shared_ptr<Session> session,
                                                 std::vector<std::uint8_t> ids) {
    std::vector<fmapi::PhysicalPort> ports;
    while (ports.size() < ids.size()) {
        fmapi::GetPhysicalPortStateRequest request;
        request.ports = chunk_of(ids, ports.size(), kPortsPerRequest);
        auto answer = co_await ask<fmapi::GetPhysicalPortState>(session, Target::the_switch(), request);
        if (!answer) co_return std::unexpected(std::move(answer.error()));
        if (!std::ranges::equal(answer->ports, request.ports, {}, &fmapi::PhysicalPort::port))
            co_return not_what_was_asked(*session, Opcode::kGetPhysicalPortState, "ports");
        std::ranges::move(answer->ports, std::back_inserter(ports));
    }
    co_return ports;
}

Call<std::vector<fmapi::VirtualSwitch>> ask_vcss(std::shared_ptr<Session> session,
                                                 std::vector<std::uint8_t> ids) {
    std::vector<fmapi::VirtualSwitch> vcss;
    while (vcss.size() < ids.size()) {
        fmapi::GetVirtualSwitchInfoRequest request;
        request.vcss = chunk_of(ids, vcss.size(), kVcssPerRequest);
        auto expected = fmapi::GetVirtualSwitchInfoResponse::answering(request);
        auto answer = co_await ask<fmapi::GetVirtualSwitchInfo>(session, Target::the_switch(), request,
                                                                std::move(expected));
        if (!answer) co_return std::unexpected(std::move(answer.error()));
        if (!std::ranges::equal(answer->vcss, request.vcss, {}, &fmapi::VirtualSwitch::vcs))
            co_return not_what_was_asked(*session, Opcode::kGetVirtualSwitchInfo, "VCSs");
        std::ranges::move(answer->vcss, std::back_inserter(vcss));
    }
    co_return vcss;
}

Call<std::uint32_t> ask_config(std::shared_ptr<Session> session, std::uint8_t port, std::uint16_t offset) {
    fmapi::PpbConfigRequest request;
    request.port = port;
    request.access = fmapi::PpbConfigRequest::make_access(offset, false);
    const auto answer = co_await ask<fmapi::SendPpbConfigRequest>(session, Target::the_switch(), request);
    if (!answer) co_return std::unexpected(answer.error());
    co_return answer->read_data;
}

// Devices may list fewer LDs in one answer than they have.
Call<fmapi::GetLdAllocationsResponse> ask_allocations(std::shared_ptr<Session> session, std::uint8_t port) {
    fmapi::GetLdAllocationsResponse all;
    do {
        fmapi::GetLdAllocationsRequest request;
        request.first_ld = static_cast<std::uint8_t>(all.allocations.size());
        auto part = co_await ask<fmapi::GetLdAllocations>(session, Target::device(port), request);
        if (!part) co_return std::unexpected(std::move(part.error()));
        const bool progress = !part->allocations.empty() || part->total_lds == 0;
        if (part->first_ld != request.first_ld || !progress ||
            all.allocations.size() + part->allocations.size() > part->total_lds)
            co_return not_what_was_asked(*session, Opcode::kGetLdAllocations, "LDs");
        all.total_lds = part->total_lds;
        all.granularity = part->granularity;
        std::ranges::move(part->allocations, std::back_inserter(all.allocations));
    } while (all.allocations.size() < all.total_lds);
    co_return all;
}

Call<std::vector<fmapi::LdAllocation>> set_allocations(std::shared_ptr<Session> session, std::uint8_t port,
                                                       fmapi::SetLdAllocationsPayload request) {
    auto answer = co_await ask<fmapi::SetLdAllocations>(session, Target::device(port), request);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    if (answer->first_ld != request.first_ld || answer->allocations.size() != request.allocations.size())
        co_return not_what_was_asked(*session, Opcode::kSetLdAllocations, "LDs");
    co_return std::move(answer->allocations);
}

// Peers that do not know a command inside a tunnel may answer it with what they sent before: that is no
// answer to it, but no fault of a multi-headed device either.
Call<fmapi::GetMultiHeadedInfoResponse> ask_part_of_ld_map(std::shared_ptr<Session> session,
                                                           std::uint8_t port, std::uint8_t first_ld) {
    fmapi::GetMultiHeadedInfoRequest request;
    request.first_ld = first_ld;
    Ask asked{.opcode = Opcode::kGetMultiHeadedInfo, .payload = fmapi::encode(request), .repeatable = true};
    const Target target = Target::device(port);
    const std::string what = describe(Opcode::kGetMultiHeadedInfo, target);
    const auto answer = co_await exchange_with(session, target, std::move(asked));
    if (!answer && answer.error().code == ErrorCode::kProtocol)
        co_return fail(ErrorCode::kInvalidArgument, what + " is not answered: " + answer.error().message);
    if (!answer) co_return std::unexpected(Error(answer.error()).with_context(what));
    if (answer->return_code != ReturnCode::kSuccess)
        co_return fail(
            error_code_of(answer->return_code),
            fmt::format("switch at {}: {}: {}", session->address(), what, to_string(answer->return_code)));
    auto part = fmapi::decode<fmapi::GetMultiHeadedInfoResponse>(answer->payload);
    if (!part)
        co_return std::unexpected(
            std::move(part.error()).with_context(fmt::format("switch at {}: {}", session->address(), what)));
    co_return std::move(*part);
}

// A map that is not as long as it says or has to be is no map.
Call<fmapi::GetMultiHeadedInfoResponse> ask_ld_map(std::shared_ptr<Session> session, std::uint8_t port) {
    fmapi::GetMultiHeadedInfoResponse all;
    do {
        const auto first = static_cast<std::uint8_t>(all.ld_map.size());
        auto part = co_await ask_part_of_ld_map(session, port, first);
        if (!part) co_return std::unexpected(std::move(part.error()));
        const bool same =
            all.ld_map.empty() || (part->total_lds == all.total_lds && part->heads == all.heads);
        if (part->first_ld != first || part->ld_map.empty() || !same ||
            all.ld_map.size() + part->ld_map.size() > part->total_lds)
            co_return not_what_was_asked(*session, Opcode::kGetMultiHeadedInfo, "LDs");
        all.total_lds = part->total_lds;
        all.heads = part->heads;
        std::ranges::move(part->ld_map, std::back_inserter(all.ld_map));
    } while (all.ld_map.size() < all.total_lds);
    co_return all;
}

Call<fmapi::GetHeadInfoResponse> ask_heads(std::shared_ptr<Session> session, std::uint8_t port,
                                           std::uint8_t heads) {
    fmapi::GetHeadInfoRequest request;
    request.heads = heads;
    auto answer = co_await ask<fmapi::GetHeadInfo>(session, Target::device(port), request);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    if (answer->heads.size() != heads) co_return not_what_was_asked(*session, Opcode::kGetHeadInfo, "heads");
    co_return std::move(*answer);
}

Call<std::vector<fmapi::DcRegionConfiguration>> ask_dc_regions(std::shared_ptr<Session> session,
                                                               std::uint8_t port, std::uint16_t host) {
    std::vector<fmapi::DcRegionConfiguration> all;
    std::size_t available = 0;
    do {
        fmapi::GetHostDcRegionConfigurationRequest request;
        request.host = host;
        request.first_region = static_cast<std::uint8_t>(all.size());
        auto part = co_await ask<fmapi::GetHostDcRegionConfiguration>(session, Target::device(port), request);
        if (!part) co_return std::unexpected(std::move(part.error()));
        available = part->available_regions;
        if (part->host != host || part->regions.empty() || available > fmapi::kMaxDcRegions ||
            all.size() + part->regions.size() > available)
            co_return not_what_was_asked(*session, Opcode::kGetHostDcRegionConfiguration, "regions");
        std::ranges::move(part->regions, std::back_inserter(all));
    } while (all.size() < available);
    co_return all;
}

// Whether a page is of the list that was asked for, from where it was asked for.
template <typename Request, typename Response>
bool is_of(const Response& page, const Request& request) {
    if constexpr (requires { page.first; })
        if (page.first != request.first) return false;
    if constexpr (requires { page.host; })
        if (page.host != request.host) return false;
    return true;
}

// A whole list of a dynamic capacity device. One that changes while it is read in pages is read again from
// its beginning.
template <typename Command, typename Element>
Call<std::vector<Element>> ask_pages(std::shared_ptr<Session> session, std::uint8_t port,
                                     typename Command::Request request,
                                     std::vector<Element> Command::Response::* list) {
    constexpr int kReadings = 8;
    constexpr std::uint32_t kMostEntries = 65'536;
    for (int reading = 0; reading < kReadings; ++reading) {
        std::vector<Element> all;
        std::optional<std::uint32_t> generation;
        for (;;) {
            request.first = static_cast<std::uint32_t>(all.size());
            auto page = co_await ask<Command>(session, Target::device(port), request);
            // A list that has become shorter has no such page any more.
            if (!page && !all.empty() && page.error().code == ErrorCode::kInvalidArgument) break;
            if (!page) co_return std::unexpected(std::move(page.error()));
            if (generation && *generation != page->generation) break;
            generation = page->generation;
            if (page->total > kMostEntries)
                co_return fail(
                    ErrorCode::kProtocol,
                    fmt::format("switch at {}: {}: it says that its list has {} entries", session->address(),
                                describe(Command::kOpcode, Target::device(port)), page->total));
            std::vector<Element>& got = (*page).*list;
            const bool ends = page->total == all.size() + got.size();
            if (!is_of(*page, request) || (got.empty() && !ends) || all.size() + got.size() > page->total)
                co_return not_what_was_asked(*session, Command::kOpcode, "entries");
            std::ranges::move(got, std::back_inserter(all));
            if (ends) co_return all;
        }
    }
    co_return fail(ErrorCode::kConflict,
                   fmt::format("switch at {}: {}: it changes faster than it can be read", session->address(),
                               describe(Command::kOpcode, Target::device(port))));
}

constexpr std::uint16_t every_log() {
    std::uint16_t logs = 0;
    for (const fmapi::EventLog log : fmapi::kEventLogs)
        logs = static_cast<std::uint16_t>(logs | fmapi::bit_of(log));
    return logs;
}

class SwitchClient final : public FmApiClient {
  public:
    explicit SwitchClient(std::shared_ptr<Session> session) : session_(std::move(session)) {}
    ~SwitchClient() override { session_->close(); }

    // None of these is a coroutine: what they return owns all it needs, so the client may be destroyed
    // meanwhile.
    Call<fmapi::IdentifyResponse> identify(Target target) override {
        return ask<fmapi::Identify>(session_, target);
    }
    Call<fmapi::BackgroundOperationStatusResponse> background_status(Target target) override {
        return ask<fmapi::BackgroundOperationStatus>(session_, target);
    }
    Call<void> abort_background(Target target) override {
        return tell<fmapi::RequestAbortBackgroundOperation>(session_, target);
    }
    Call<fmapi::IdentifySwitchDeviceResponse> identify_switch() override {
        return ask<fmapi::IdentifySwitchDevice>(session_, Target::the_switch());
    }
    Call<std::vector<fmapi::PhysicalPort>> physical_ports(std::vector<std::uint8_t> ids) override {
        return ask_ports(session_, std::move(ids));
    }
    Call<void> port_control(std::uint8_t port, fmapi::PortOperation operation) override {
        return tell<fmapi::PhysicalPortControl>(session_, Target::the_switch(),
                                                {.port = port, .operation = operation});
    }
    Call<std::uint32_t> read_port_config(std::uint8_t port, std::uint16_t offset) override {
        return ask_config(session_, port, offset);
    }
    Call<std::vector<fmapi::VirtualSwitch>> virtual_switches(std::vector<std::uint8_t> ids) override {
        return ask_vcss(session_, std::move(ids));
    }
    Call<Completion> bind(fmapi::BindVppbRequest request, std::optional<std::uint64_t> connection) override {
        return start<fmapi::BindVppb>(session_, Target::the_switch(), request, connection);
    }
    Call<Completion> unbind(fmapi::UnbindVppbRequest request) override {
        return start<fmapi::UnbindVppb>(session_, Target::the_switch(), request);
    }
    Call<fmapi::GetEventRecordsResponse> event_records(fmapi::EventLog log) override {
        return ask<fmapi::GetEventRecords>(session_, Target::the_switch(), {log});
    }
    Call<void> clear_event_records(fmapi::EventLog log, std::vector<std::uint16_t> handles) override {
        return tell<fmapi::ClearEventRecords>(session_, Target::the_switch(), {log, 0, std::move(handles)});
    }
    Call<void> request_notifications() override {
        return tell<fmapi::SetMctpEventInterruptPolicy>(session_, Target::the_switch(), {every_log()});
    }
    void on_notification(std::function<void()> handler) override {
        session_->on_notification(std::move(handler));
    }
    Call<fmapi::GetLdInfoResponse> ld_info(std::uint8_t port) override {
        return ask<fmapi::GetLdInfo>(session_, Target::device(port));
    }
    Call<fmapi::GetLdAllocationsResponse> ld_allocations(std::uint8_t port) override {
        return ask_allocations(session_, port);
    }
    Call<std::vector<fmapi::LdAllocation>> set_ld_allocations(
        std::uint8_t port, std::uint8_t first_ld, std::vector<fmapi::LdAllocation> allocations) override {
        return set_allocations(session_, port, {.first_ld = first_ld, .allocations = std::move(allocations)});
    }
    Call<fmapi::GetMultiHeadedInfoResponse> multi_headed_info(std::uint8_t port) override {
        return ask_ld_map(session_, port);
    }
    Call<fmapi::GetHeadInfoResponse> head_info(std::uint8_t port, std::uint8_t heads) override {
        return ask_heads(session_, port, heads);
    }
    Call<fmapi::GetDcdInfoResponse> dcd_info(std::uint8_t port) override {
        return ask<fmapi::GetDcdInfo>(session_, Target::device(port));
    }
    Call<std::vector<fmapi::DcRegionConfiguration>> dc_regions(std::uint8_t port,
                                                               std::uint16_t host) override {
        return ask_dc_regions(session_, port, host);
    }
    Call<std::vector<fmapi::DcExtent>> dc_extents(std::uint8_t port, std::uint16_t host) override {
        return ask_pages<fmapi::GetDcRegionExtentLists>(session_, port, {.host = host},
                                                        &fmapi::GetDcRegionExtentListsResponse::extents);
    }
    Call<std::vector<fmapi::DcTagInformation>> dc_tags(std::uint8_t port) override {
        return ask_pages<fmapi::DynamicCapacityListTags>(session_, port, {},
                                                         &fmapi::DynamicCapacityListTagsResponse::tags);
    }
    Call<void> add_dynamic_capacity(std::uint8_t port,
                                    fmapi::InitiateDynamicCapacityAddRequest request) override {
        return tell<fmapi::InitiateDynamicCapacityAdd>(session_, Target::device(port), std::move(request));
    }
    Call<void> release_dynamic_capacity(std::uint8_t port,
                                        fmapi::InitiateDynamicCapacityReleaseRequest request) override {
        return tell<fmapi::InitiateDynamicCapacityRelease>(session_, Target::device(port),
                                                           std::move(request));
    }
    Call<fmapi::IdentifyMemoryDeviceResponse> identify_memory_device(Target target) override {
        return ask<fmapi::IdentifyMemoryDevice>(session_, target);
    }
    Call<fmapi::GetHealthInfoResponse> health_info(Target target) override {
        return ask<fmapi::GetHealthInfo>(session_, target);
    }
    Call<Completion> sanitize(Target target) override { return start<fmapi::Sanitize>(session_, target); }
    [[nodiscard]] std::uint64_t connections() const override { return session_->connections(); }
    [[nodiscard]] DialectInUse dialect() const override { return session_->dialect(); }
    void close() override { session_->close(); }

  private:
    std::shared_ptr<Session> session_;
};

}  // namespace

std::string to_string(const Target& target) {
    if (!target.port) return "switch";
    if (!target.ld) return fmt::format("device at port {}", *target.port);
    return fmt::format("LD {} at port {}", *target.ld, *target.port);
}

Result<std::unique_ptr<FmApiClient>> make_fm_api_client(boost::asio::any_io_executor executor,
                                                        ClientOptions options) {
    std::unique_ptr<Transport> transport;
    if (options.listen) {
        auto listening = listen_for_switch(executor, *options.listen, options.capture);
        if (!listening) return std::unexpected(std::move(listening.error()));
        transport = *std::move(listening);
    } else {
        const auto address = parse_switch_address(options.address);
        if (!address) return std::unexpected(address.error());
        transport = make_transport(executor, *address, options.capture);
    }
    if (options.in_flight) options.in_flight = std::clamp<std::size_t>(*options.in_flight, 1, kMostInFlight);
    return std::make_unique<SwitchClient>(
        std::make_shared<Session>(std::move(executor), std::move(transport), std::move(options)));
}

}  // namespace memtide::fm
