#include "fabric-manager/engine/dynamic_capacity.h"

#include <algorithm>
#include <bit>
#include <set>
#include <vector>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

namespace memtide::fm {

namespace {

using boost::asio::awaitable;
using Regions = std::vector<fmapi::DcRegionConfiguration>;
using Extents = std::vector<fmapi::DcExtent>;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;

// --- Regions ---

bool is_usable(const fmapi::DcRegionConfiguration& region) {
    return region.sanitize_on_release != 0 && region.length != 0;
}

Result<> check_regions(const Regions& regions) {
    std::uint64_t sum = 0;
    for (const fmapi::DcRegionConfiguration& region : regions) {
        if (region.length > kMostBytes || region.base > kMostBytes || (sum += region.length) > kMostBytes)
            return fail(ErrorCode::kProtocol, "it says that it has more dynamic capacity than can be");
        if (!std::has_single_bit(region.block_size) || region.block_size > kMostBytes)
            return fail(ErrorCode::kProtocol,
                        fmt::format("it says that extents come in blocks of {} bytes", region.block_size));
    }
    return {};
}

bool is_within(const fmapi::DcExtent& extent, const fmapi::DcRegionConfiguration& region) {
    return extent.dpa >= region.base && extent.dpa - region.base < region.length;
}

Result<Bytes> total(const Extents& extents) {
    std::uint64_t sum = 0;
    for (const fmapi::DcExtent& extent : extents)
        if (extent.length > kMostBytes || (sum += extent.length) > kMostBytes)
            return fail(ErrorCode::kProtocol, "it lists an extent with more memory than can be");
    return Bytes{sum};
}

Bytes outside_of_usable(const Extents& extents, const Regions& regions) {
    std::uint64_t sum = 0;
    for (const fmapi::DcExtent& extent : extents)
        if (std::ranges::none_of(
                regions, [&](const auto& region) { return is_usable(region) && is_within(extent, region); }))
            sum += extent.length;
    return Bytes{sum};
}

bool is_pending(const fmapi::DcTagInformation& tag, std::size_t host) {
    return host / 8 < tag.pending.size() && ((tag.pending[host / 8] >> (host % 8)) & 1u) != 0;
}

bool is_unsupported(const Error& error) { return error.code == ErrorCode::kInvalidArgument; }

// --- Tags ---

// "c-7f3k2m9q1x", part 2, add 0: the ten letters, then both numbers.
fmapi::DcTag tag_of(const PartId& part, std::uint16_t add) {
    constexpr std::size_t kLetters = 10;
    fmapi::DcTag tag{};
    const std::string_view text = part.composition.value;
    const std::string_view letters = text.substr(std::min<std::size_t>(text.size(), 2), kLetters);
    std::ranges::transform(letters, tag.begin(), [](char one) { return static_cast<std::uint8_t>(one); });
    for (unsigned i = 0; i < 4; ++i)
        tag[kLetters + i] = static_cast<std::uint8_t>(part.number >> (8 * (3 - i)));
    tag[14] = static_cast<std::uint8_t>(add >> 8);
    tag[15] = static_cast<std::uint8_t>(add);
    return tag;
}

// --- Releasing ---

fmapi::InitiateDynamicCapacityReleaseRequest forced_release(std::uint16_t host, fmapi::DcRemoval how) {
    fmapi::InitiateDynamicCapacityReleaseRequest request;
    request.host = host;
    request.flags = static_cast<std::uint8_t>(static_cast<std::uint8_t>(how) | fmapi::kDcForcedRemoval |
                                              fmapi::kDcSanitizeOnRelease);
    return request;
}

fmapi::InitiateDynamicCapacityReleaseRequest release_of_tag(std::uint16_t host, const fmapi::DcTag& tag) {
    auto request = forced_release(host, fmapi::DcRemoval::kByTag);
    request.tag = tag;
    return request;
}

// What is to be released: one request for each tag, one for each extent that has none.
awaitable<Result<std::vector<fmapi::InitiateDynamicCapacityReleaseRequest>>> list_releases(
    FmApiClient& client, DcHost from) {
    const Result<Extents> extents = co_await client.dc_extents(from.port, from.host);
    if (!extents) co_return std::unexpected(extents.error());
    const Result<std::vector<fmapi::DcTagInformation>> tags = co_await client.dc_tags(from.port);
    if (!tags && !is_unsupported(tags.error())) co_return std::unexpected(tags.error());
    std::vector<fmapi::InitiateDynamicCapacityReleaseRequest> releases;
    std::set<fmapi::DcTag> named;
    for (const fmapi::DcExtent& extent : *extents) {
        if (extent.tag == fmapi::DcTag{}) {
            auto request = forced_release(from.host, fmapi::DcRemoval::kPrescriptive);
            request.length = extent.length;
            request.extents.push_back(extent);
            releases.push_back(std::move(request));
        } else if (named.insert(extent.tag).second) {
            releases.push_back(release_of_tag(from.host, extent.tag));
        }
    }
    if (tags)
        for (const fmapi::DcTagInformation& tag : *tags)
            if (is_pending(tag, from.host) && named.insert(tag.tag).second)
                releases.push_back(release_of_tag(from.host, tag.tag));
    co_return releases;
}

awaitable<void> pause(std::chrono::milliseconds time) {
    boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, time);
    co_await timer.async_wait(boost::asio::use_awaitable);
}

}  // namespace

awaitable<Result<>> read_dynamic_capacity(FmApiClient& client, DeviceReading& device) {
    const Result<fmapi::GetDcdInfoResponse> info = co_await client.dcd_info(device.port);
    if (!info) co_return std::unexpected(info.error());
    if (info->hosts == 0 || info->hosts > device.lds.size())
        co_return fail(ErrorCode::kProtocol, fmt::format("it says that it has {} hosts, and has {} LDs",
                                                         info->hosts, device.lds.size()));
    const Result<Regions> regions = co_await client.dc_regions(device.port, 0);
    if (!regions) co_return std::unexpected(regions.error());
    if (const Result<> sound = check_regions(*regions); !sound) co_return std::unexpected(sound.error());
    device.kind = DeviceKind::kDcd;
    device.granularity = kCxlGranule;
    for (const fmapi::DcRegionConfiguration& region : *regions) {
        if (!is_usable(region)) continue;
        device.size += Bytes{region.length};
        device.granularity = std::max(device.granularity, Bytes{region.block_size});
    }
    if (device.size.value == 0)
        co_return fail(
            ErrorCode::kProtocol,
            "it does not erase what is released: none of its regions sanitizes on release, and Set "
            "DC Region Configuration (5602h) has to say so before anything is composed of it");
    device.size = device.granularity * (device.size / device.granularity);
    const Result<std::vector<fmapi::DcTagInformation>> tags = co_await client.dc_tags(device.port);
    if (!tags && !is_unsupported(tags.error())) co_return std::unexpected(tags.error());
    device.lds.resize(info->hosts);
    Bytes outside;
    for (std::size_t host = 0; host < device.lds.size(); ++host) {
        const Result<Extents> extents =
            co_await client.dc_extents(device.port, static_cast<std::uint16_t>(host));
        if (!extents) co_return std::unexpected(extents.error());
        const Result<Bytes> accepted = total(*extents);
        if (!accepted) co_return std::unexpected(accepted.error());
        device.lds[host].size = *accepted;
        outside += outside_of_usable(*extents, *regions);
        if (!tags) continue;
        device.lds[host].offered =
            std::ranges::any_of(*tags, [&](const auto& tag) { return is_pending(tag, host); });
    }
    // What others have in blocks of their own counts in ours.
    device.size += kCxlGranule * ((outside.value + kCxlGranule.value - 1) / kCxlGranule.value);
    co_return Result<>();
}

// A region may have less in one piece, or at all, than is asked for: then half of it, and so on. What a
// region has is known to the device alone, since others may have it in theirs.
awaitable<Result<>> offer_capacity(FmApiClient& client, DcHost to, Bytes size, PartId part) {
    const Result<Regions> regions = co_await client.dc_regions(to.port, to.host);
    if (!regions) co_return std::unexpected(regions.error());
    if (const Result<> sound = check_regions(*regions); !sound) co_return std::unexpected(sound.error());
    std::uint64_t left = size.value;
    std::uint16_t adds = 0;
    Error last{ErrorCode::kExhausted, "it has no region that sanitizes what is released"};
    for (std::size_t index = 0; index < regions->size() && left > 0; ++index) {
        const fmapi::DcRegionConfiguration& region = (*regions)[index];
        if (!is_usable(region)) continue;
        std::uint64_t ask = std::min(left, region.length) / region.block_size * region.block_size;
        std::uint64_t given = 0;
        while (ask > 0 && left > 0) {
            fmapi::InitiateDynamicCapacityAddRequest request;
            request.host = to.host;
            request.region = static_cast<std::uint8_t>(index);
            request.length = ask;
            request.tag = tag_of(part, adds);
            const Result<> added = co_await client.add_dynamic_capacity(to.port, std::move(request));
            if (added) {
                ++adds;
                left -= ask;
                given += ask;
                ask = std::min({ask, left, region.length - given}) / region.block_size * region.block_size;
                continue;
            }
            if (added.error().code != ErrorCode::kExhausted) co_return std::unexpected(added.error());
            last = added.error();
            // Smaller pieces than the pool deals in would only use up tags and extents.
            const std::uint64_t half = ask / 2 / region.block_size * region.block_size;
            ask = half < std::max(region.block_size, kCxlGranule.value) ? 0 : half;
        }
    }
    if (left == 0) co_return Result<>();
    co_return fail(ErrorCode::kExhausted,
                   fmt::format("{} of {} found no place: {}", format_bytes(Bytes{left}), format_bytes(size),
                               last.message));
}

awaitable<Result<Bytes>> accepted_capacity(FmApiClient& client, DcHost of) {
    const Result<Extents> extents = co_await client.dc_extents(of.port, of.host);
    if (!extents) co_return std::unexpected(extents.error());
    co_return total(*extents);
}

awaitable<Result<>> withdraw_capacity(FmApiClient& client, DcHost from, std::chrono::milliseconds timeout) {
    constexpr int kMostRefusals = 3;
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    std::chrono::milliseconds interval{0};
    int refusals = 0;
    for (;;) {
        const auto releases = co_await list_releases(client, from);
        if (!releases) co_return std::unexpected(releases.error());
        if (releases->empty()) co_return Result<>();
        for (const fmapi::InitiateDynamicCapacityReleaseRequest& one : *releases) {
            fmapi::InitiateDynamicCapacityReleaseRequest request = one;
            const Result<> released = co_await client.release_dynamic_capacity(from.port, std::move(request));
            if (released) continue;
            // The host may have given it back in this moment: then it is not listed any more.
            const bool may_be_gone = released.error().code == ErrorCode::kInvalidArgument;
            if (!may_be_gone || ++refusals > kMostRefusals) co_return std::unexpected(released.error());
        }
        if (std::chrono::steady_clock::now() > deadline)
            co_return fail(ErrorCode::kTimeout,
                           fmt::format("host {} of the device at port {} still has dynamic capacity that was "
                                       "taken from it by force",
                                       from.host, from.port));
        // Devices that need a moment for it are asked again.
        if (interval.count() != 0) co_await pause(interval);
        interval = std::clamp(interval * 2, std::chrono::milliseconds{1}, std::chrono::milliseconds{100});
    }
}

}  // namespace memtide::fm
