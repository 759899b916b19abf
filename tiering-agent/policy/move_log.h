#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

namespace memtide::agent {

// What was moved in the last minute, so that nothing goes to and fro, and how much of it was for nothing.
// Times are of any steady clock. Not thread safe.
class MoveLog {
  public:
    using Time = std::chrono::steady_clock::time_point;
    // A move that is undone sooner was wasted.
    static constexpr std::chrono::seconds kMemory{60};
    // Of these, no more than so many are remembered, the latest: some 25 MB.
    static constexpr std::size_t kMostUnits = std::size_t{1} << 18;

    // A unit came into a tier.
    void add(std::uint64_t space, std::uint64_t page, std::uint32_t pages, std::uint8_t to, Time now);
    // A unit could not be moved, for this errno: it rests, too, and is tried again later.
    void add_failure(std::uint64_t space, std::uint64_t page, Time now, int error = 0);
    // Forgets what is older than kMemory, and of a space that is gone.
    void expire(Time now);
    void forget(std::uint64_t space);

    // What became of a unit within kMemory.
    struct Last {
        Time at{};
        std::uint8_t to = 0;  // the tier that it came into
        bool undid = false;   // the move before it
        bool failed = false;  // it stayed where it was
        int error = 0;        // of what failed
    };
    [[nodiscard]] std::optional<Last> last(std::uint64_t space, std::uint64_t page) const;
    // Whether the unit was moved within `rest` before `now`, or could not be within kMemory.
    [[nodiscard]] bool rests(std::uint64_t space, std::uint64_t page) const;
    void set_rest(std::chrono::milliseconds rest, Time now) {
        rest_ = rest;
        now_ = now;
    }

    [[nodiscard]] std::uint64_t moved_pages() const { return moved_; }    // ever
    [[nodiscard]] std::uint64_t wasted_pages() const { return wasted_; }  // ever
    // Of what was moved within kMemory the share that undid a move of a moment ago (kToAndFro, or four
    // rests): that is chance taken for a difference, and back-off follows from it. What was undone later may
    // be a load that has changed, which nobody should be slow to follow.
    static constexpr std::chrono::seconds kToAndFro{12};
    [[nodiscard]] double to_and_fro_share() const;

  private:
    struct Key {
        std::uint64_t space = 0;
        std::uint64_t page = 0;
        friend bool operator==(const Key&, const Key&) = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const noexcept {
            return std::hash<std::uint64_t>{}(key.page * 0x9e3779b97f4a7c15ULL ^ key.space);
        }
    };
    struct Entry {
        Time at;
        std::uint32_t pages = 1;
        std::uint8_t to = 0;
        bool undid = false;
        bool fro = false;  // soon
        bool failed = false;
        int error = 0;
    };
    struct Past {
        Key key;
        Entry entry;
    };
    void leave(const Past& past);
    void remember(const Key& key, const Entry& entry);

    std::unordered_map<Key, Entry, Hash> last_;
    std::deque<Past> past_;
    std::uint64_t lately_ = 0;
    std::uint64_t fro_lately_ = 0;
    std::uint64_t moved_ = 0;
    std::uint64_t wasted_ = 0;
    std::chrono::milliseconds rest_{0};
    Time now_{};
};

}  // namespace memtide::agent
