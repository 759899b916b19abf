#include "fabric-manager/engine/read_heads.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace memtide::fm {

using boost::asio::awaitable;

bool is_of_switch(const Error& error) {
    return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout ||
           error.code == ErrorCode::kCancelled;
}

awaitable<Result<SerialNumber>> read_serial(FmApiClient& client, Target target) {
    const Result<fmapi::IdentifyResponse> answer = co_await client.identify(target);
    if (!answer) co_return std::unexpected(answer.error());
    co_return SerialNumber{answer->serial};
}

namespace {

// Every LD of the map belongs to a head that is there, or to none.
Result<> check_map(const fmapi::GetMultiHeadedInfoResponse& says, const fmapi::GetHeadInfoResponse& heads) {
    std::set<std::uint8_t> numbers;
    for (const fmapi::HeadInfo& one : heads.heads) numbers.insert(one.port_number);
    if (numbers.size() != says.heads || numbers.contains(fmapi::kNoHead))
        return fail(ErrorCode::kProtocol,
                    fmt::format("it says that it has {} heads, and names {}", says.heads, numbers.size()));
    for (std::size_t ld = 0; ld < says.ld_map.size(); ++ld)
        if (says.ld_map[ld] != fmapi::kNoHead && !numbers.contains(says.ld_map[ld]))
            return fail(ErrorCode::kProtocol,
                        fmt::format("it says that LD {} belongs to head {}, and it has no such head", ld,
                                    says.ld_map[ld]));
    return {};
}

Target ld_target(const DeviceReading& device, std::size_t ld) {
    return Target::logical_device(device.port, static_cast<std::uint8_t>(ld));
}

// The size of the one LD that an SLD's head has. The others are not known here.
awaitable<Result<>> read_sld_size(FmApiClient& client, DeviceReading& device) {
    const MultiHeadedReading& says = *device.multi_headed;
    if (std::ranges::count(says.ld_heads, std::optional(says.head)) != 1)
        co_return fail(ErrorCode::kProtocol, fmt::format("head {} of an SLD has several LDs", says.head));
    const auto own = std::ranges::find(says.ld_heads, std::optional(says.head));
    const auto ld = static_cast<std::size_t>(own - says.ld_heads.begin());
    const Result<fmapi::IdentifyMemoryDeviceResponse> memory =
        co_await client.identify_memory_device(ld_target(device, ld));
    if (!memory) co_return std::unexpected(memory.error());
    if (memory->total_capacity > (std::uint64_t{1} << 34))
        co_return fail(ErrorCode::kProtocol, "it says that it has more memory than can be");
    device.lds[ld].size = memory->total();
    device.size = memory->total();
    co_return Result<>();
}

SerialNumber known_serial(const Device* known, std::size_t ld, std::uint8_t head) {
    if (known == nullptr || ld >= known->lds.size() || known->lds[ld].head != head) return {};
    return known->lds[ld].serial;
}

}  // namespace

awaitable<Result<HeadsAnswer>> read_heads(FmApiClient& client, std::uint8_t port, const Device* known,
                                          int& unanswered) {
    if (known != nullptr && !known->is_multi_headed()) co_return HeadsAnswer();
    const Result<fmapi::GetMultiHeadedInfoResponse> says = co_await client.multi_headed_info(port);
    if (!says && says.error().code == ErrorCode::kTimeout && known == nullptr) {
        ++unanswered;
        co_return HeadsAnswer();
    }
    unanswered = 0;
    if (!says && says.error().code == ErrorCode::kInvalidArgument) co_return HeadsAnswer();  // unsupported
    if (!says) co_return std::unexpected(says.error());
    if (says->heads < 2) co_return HeadsAnswer();
    const Result<fmapi::GetHeadInfoResponse> heads = co_await client.head_info(port, says->heads);
    if (!heads) co_return std::unexpected(heads.error());
    if (const Result<> good = check_map(*says, *heads); !good) co_return std::unexpected(good.error());
    co_return HeadsAnswer(*says);
}

// CXL has no command by which a head says which one it is. It is known by the LDs that answer through it.
awaitable<Result<>> find_head(FmApiClient& client, DeviceReading& device,
                              const fmapi::GetMultiHeadedInfoResponse& says, const Device* known) {
    if (device.kind == DeviceKind::kSld)
        for (std::size_t ld = 0; ld < says.ld_map.size(); ++ld)
            device.lds.push_back({LdId{static_cast<std::uint16_t>(ld)}, SerialNumber{}, Bytes{}});
    if (says.ld_map.size() != device.lds.size())
        co_return fail(ErrorCode::kProtocol, fmt::format("its LD map is of {} LDs, and it has {}",
                                                         says.ld_map.size(), device.lds.size()));
    MultiHeadedReading& heads = device.multi_headed.emplace();
    heads.heads = says.heads;
    std::optional<std::uint8_t> head;
    for (std::size_t ld = 0; ld < says.ld_map.size(); ++ld) {
        const std::uint8_t of = says.ld_map[ld];
        heads.ld_heads.push_back(of == fmapi::kNoHead ? std::nullopt : std::optional(of));
        if (of == fmapi::kNoHead || (head && of != *head)) continue;
        device.lds[ld].serial = head ? known_serial(known, ld, *head) : SerialNumber{};
        if (device.lds[ld].serial.value != 0) continue;
        const Result<SerialNumber> serial = co_await read_serial(client, ld_target(device, ld));
        if (serial) {
            head = of;
            device.lds[ld].serial = *serial;
        } else if (is_of_switch(serial.error()) || serial.error().code == ErrorCode::kConflict) {
            co_return std::unexpected(serial.error());
        }
    }
    if (!head) co_return fail(ErrorCode::kProtocol, "none of its LDs answers through this head");
    heads.head = *head;
    if (device.kind == DeviceKind::kSld) co_return co_await read_sld_size(client, device);
    co_return Result<>();
}

}  // namespace memtide::fm
