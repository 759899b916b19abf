#pragma once

#include <optional>

#include "tiering-agent/track/tracker.h"

namespace memtide::agent {

// Sees what it is told to.
class MadeUp final : public Tracker {
  public:
    explicit MadeUp(bool sharp) : sharp_(sharp) {}
    [[nodiscard]] std::string_view name() const override { return "made-up"; }
    [[nodiscard]] std::string_view sees() const override { return "some"; }
    [[nodiscard]] bool is_sharp() const override { return sharp_; }
    [[nodiscard]] std::chrono::milliseconds duration(std::chrono::milliseconds window) const override {
        return sharp_ ? (begun > 0 ? 4 * window : std::chrono::milliseconds(0)) : window;
    }
    Result<> refresh() override { return {}; }
    Result<> begin(int, const WindowWish&) override {
        if (error) return fail(*error, "made up");
        ++begun;
        return {};
    }
    Result<Look> look(int, std::span<const VirtualRange>, const TierOfNode&, const Visit& visit) override {
        const std::vector<PageSeen> seen(8, {.tier = 0, .touched = 1, .windows = 1});
        visit(512, seen);
        return Look{.present_pages = 8, .touched_pages = touched, .touched_slow_pages = touched};
    }

    bool sharp_;
    int begun = 0;
    std::uint64_t touched = 0;
    std::optional<ErrorCode> error{};
};

}  // namespace memtide::agent
