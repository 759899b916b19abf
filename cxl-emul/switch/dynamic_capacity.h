#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "common/fmapi/commands/dynamic_capacity.h"
#include "common/fmapi/commands/dynamic_capacity_events.h"
#include "common/fmapi/commands/host_dynamic_capacity.h"
#include "common/fmapi/return_code.h"
#include "cxl-emul/switch/range_set.h"

namespace memtide::emul {

inline constexpr std::uint64_t kSmallestDcBlock = 64;  // CXL 3.1, 8.2.9.9.9.1

// What of a dynamic capacity device's memory is whose: regions, extents, tags, as plain data without I/O. A
// DPA names the same byte for every host. docs/dynamic-capacity.md tells the model; the return codes of each
// function are there in one table. Whatever is refused has changed nothing. Not thread safe.
//
// Memory goes this way:
//
//   free -> offered (pending) -> accepted -> given back or taken away -> to be erased -> being erased -> free
//
// Where neither the region nor who released it asks for erasing, it is free at once.
class DynamicCapacity {
  public:
    struct Region {
        ByteRange range;
        std::uint64_t block = 0;  // bytes; a power of two that divides the region's size
        bool shareable = false;
        bool sanitizes = true;  // on release
    };
    // Entries of all hosts' extent lists and offers together; tags in use.
    struct Limits {
        std::uint32_t extents = 512;
        std::uint32_t tags = 64;
    };
    // A record for the host's event log, or for the device's own when there is no host.
    struct Event {
        std::optional<std::size_t> host;
        fmapi::DynamicCapacityRecord record;
    };

    // As after power-on: hosts have nothing, and regions that sanitize are to be erased first, since media
    // keep what was in them.
    DynamicCapacity(std::vector<Region> regions, std::size_t hosts, Limits limits);

    // Power came back and nothing is remembered: nobody has anything, and what was unusable is tried again.
    void power_on();

    // --- The fabric manager's side. `event_room`: records that still go into the host's event log; Retry
    // Required when an offer or a request to release has more. ---
    fmapi::ReturnCode add(const fmapi::InitiateDynamicCapacityAddRequest& request, std::size_t event_room);
    fmapi::ReturnCode release(const fmapi::InitiateDynamicCapacityReleaseRequest& request,
                              std::size_t event_room);
    fmapi::ReturnCode configure(const fmapi::SetDcRegionConfigurationRequest& request);
    fmapi::ReturnCode add_reference(const fmapi::DcTag& tag);
    fmapi::ReturnCode remove_reference(const fmapi::DcTag& tag);

    // --- A host's side; `host` must be less than hosts(). ---
    fmapi::ReturnCode respond(std::size_t host, const fmapi::UpdatedDcExtents& response);
    fmapi::ReturnCode give_back(std::size_t host, const fmapi::UpdatedDcExtents& request);
    // The host is gone from the device: so is all that it had or was offered.
    void detach(std::size_t host);

    // --- What there is. ---
    [[nodiscard]] std::size_t hosts() const { return hosts_.size(); }
    [[nodiscard]] const std::vector<Region>& regions() const { return regions_; }
    [[nodiscard]] const Limits& limits() const { return limits_; }
    [[nodiscard]] const std::vector<fmapi::DcExtent>& accepted(std::size_t host) const {
        return hosts_[host].accepted;
    }
    [[nodiscard]] std::vector<fmapi::DcExtent> offered(std::size_t host) const;
    // Changes whenever accepted() of the host does.
    [[nodiscard]] std::uint32_t generation(std::size_t host) const { return hosts_[host].generation; }
    [[nodiscard]] std::vector<fmapi::DcTagInformation> tags() const;  // ascending
    [[nodiscard]] std::uint32_t tags_generation() const { return tags_generation_; }
    [[nodiscard]] std::uint32_t available_extents() const;
    [[nodiscard]] std::uint32_t available_tags() const;
    [[nodiscard]] const RangeSet& free_memory() const { return free_; }
    [[nodiscard]] bool is_erasing() const { return !dirty_.empty() || !erasing_.empty(); }
    // Of which region the range is, when it is of one.
    [[nodiscard]] std::optional<std::size_t> region_of(ByteRange range) const;

    // --- Erasing: somebody takes a range, erases it, and tells how that ended. What could not be erased is
    // never offered again. ---
    std::optional<ByteRange> take_dirty();
    void erased(ByteRange range, bool successfully);
    [[nodiscard]] const RangeSet& unusable() const { return unusable_; }

    // Records since the last call, in their order.
    std::vector<Event> take_events();

  private:
    using Extents = std::vector<fmapi::DcExtent>;
    using Picked = std::expected<std::vector<ByteRange>, fmapi::ReturnCode>;
    struct Host {
        Extents accepted;
        // Oldest first. One without extents was withdrawn, and its host may still answer it.
        std::deque<Extents> offers;
        // Parts of a response and of a release that came with kDcMoreExtents.
        std::vector<fmapi::UpdatedDcExtent> response;
        std::vector<fmapi::UpdatedDcExtent> returned;
        RangeSet sanitize_on_return;
        std::uint32_t generation = 0;
    };
    struct Tag {
        std::size_t region = 0;
        Extents shared;  // its extents, in a shareable region; else empty
        bool referenced = false;
        bool sanitize = false;
    };

    [[nodiscard]] Picked pick(const Region& region,
                              const fmapi::InitiateDynamicCapacityAddRequest& request) const;
    [[nodiscard]] Picked check_prescribed(const Region& region,
                                          const fmapi::InitiateDynamicCapacityAddRequest& request) const;
    fmapi::ReturnCode share(const fmapi::InitiateDynamicCapacityAddRequest& request, std::size_t event_room);
    void offer(std::size_t host, Extents extents);
    [[nodiscard]] Extents targets_of(const fmapi::InitiateDynamicCapacityReleaseRequest& request) const;
    fmapi::ReturnCode force(const fmapi::InitiateDynamicCapacityReleaseRequest& request,
                            const RangeSet& gone);
    void withdraw(Host& host, const RangeSet& gone, std::vector<fmapi::DcTag>& touched);

    fmapi::ReturnCode refuse_oldest(std::size_t host);
    void accept(std::size_t host, std::deque<Extents>::iterator offer, Extents accepted);

    [[nodiscard]] std::expected<std::vector<fmapi::UpdatedDcExtent>, fmapi::ReturnCode> gather(
        std::vector<fmapi::UpdatedDcExtent>& so_far, const fmapi::UpdatedDcExtents& request) const;

    // Ranges that are not empty, do not overlap, and are whole blocks of one region each.
    template <typename Extent>
    [[nodiscard]] std::optional<RangeSet> well_formed(std::span<const Extent> extents) const;
    [[nodiscard]] bool splits_a_shared_tag(const Extents& extents, const RangeSet& gone) const;
    [[nodiscard]] std::size_t extents_left(const Host& host, const RangeSet& gone) const;
    [[nodiscard]] std::size_t extents_in_use() const;
    // Takes memory out of what the host has accepted.
    Extents take_away(Host& host, const RangeSet& gone, bool sanitize);
    void become_free(ByteRange range, bool sanitize);
    // Frees a tag that nobody has any more.
    void settle(const fmapi::DcTag& tag);
    void record(std::optional<std::size_t> log_of, fmapi::DynamicCapacityEvent event, std::size_t host,
                const Extents& extents);

    std::vector<Region> regions_;
    Limits limits_;
    std::vector<Host> hosts_;
    std::map<fmapi::DcTag, Tag> tags_;
    std::uint32_t tags_generation_ = 0;
    RangeSet free_;
    RangeSet dirty_;
    RangeSet erasing_;
    RangeSet unusable_;
    std::vector<Event> events_;
};

}  // namespace memtide::emul
