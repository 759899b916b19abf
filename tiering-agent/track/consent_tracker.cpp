#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "common/log/log.h"
#include "tiering-agent/track/tracker.h"

namespace memtide::agent {
namespace {

// Who has consented is watched in that way, the others in another.
class ConsentTracker final : public Tracker {
  public:
    ConsentTracker(std::unique_ptr<Tracker> consented, std::unique_ptr<Tracker> rest, double slowdown)
        : consented_(std::move(consented)),
          rest_(std::move(rest)),
          slowdown_(slowdown),
          name_(rest_ ? fmt::format("{} for who consents, else {}", consented_->name(), rest_->name())
                      : fmt::format("{} for who consents", consented_->name())) {}

    [[nodiscard]] std::string_view name() const override { return name_; }
    // Of those that have not been asked.
    [[nodiscard]] std::string_view sees() const override {
        return rest_ ? rest_->sees() : consented_->sees();
    }
    std::chrono::microseconds take_kernel_time() override {
        return rest_ ? rest_->take_kernel_time() : std::chrono::microseconds(0);
    }
    [[nodiscard]] Sentinel* sentinel() override { return rest_ ? rest_->sentinel() : nullptr; }
    [[nodiscard]] bool is_sharp() const override {
        return begun_by_rest_ && !begun_by_consent_ && rest_->is_sharp();
    }
    Result<> refresh() override {
        if (auto done = consented_->refresh(); !done) return done;
        return rest_ ? rest_->refresh() : Result<>();
    }
    [[nodiscard]] std::size_t most_at_once() const override {
        return rest_ ? rest_->most_at_once() : consented_->most_at_once();
    }
    [[nodiscard]] std::chrono::milliseconds duration(std::chrono::milliseconds window) const override {
        const auto of_rest = begun_by_rest_ ? rest_->duration(window) : std::chrono::milliseconds(0);
        return std::max(of_rest,
                        begun_by_consent_ || !begun_by_rest_ ? consented_->duration(window) : of_rest);
    }

    Result<> begin(int pid, const WindowWish& wish) override {
        begin_round();
        Choice& choice = choices_[pid];
        choice.round = round_;
        if (rest_ && choice.by == By::kConsent && is_dear(wish)) choice.pause = kPause;
        if (choice.pause > 0) {
            --choice.pause;
        } else {
            auto begun = consented_->begin(pid, wish);
            if (begun || begun.error().code != ErrorCode::kUnavailable) {
                begun_by_consent_ = true;
                choice.by = By::kConsent;
                return begun;
            }
        }
        choice.by = rest_ ? By::kRest : By::kNobody;
        if (!rest_) return {};
        begun_by_rest_ = true;
        return rest_->begin(pid, wish);
    }

    Result<Look> look(int pid, std::span<const VirtualRange> ranges, const TierOfNode& tiers,
                      const Visit& visit) override {
        is_new_round_ = true;
        const auto found = choices_.find(pid);
        if (found == choices_.end()) return fail(ErrorCode::kNotFound, "no window was begun");
        Choice& choice = found->second;
        if (choice.by == By::kNobody) return Look{};
        auto look = (choice.by == By::kConsent ? consented_ : rest_)->look(pid, ranges, tiers, visit);
        if (!look) return look;
        const By before = std::exchange(choice.before, choice.by);
        if (before != By::kNobody && before != choice.by) {
            look->begins_anew = true;
            log::info("a process is watched in another way",
                      {{"pid", pid}, {"by", choice.by == By::kConsent ? consented_->name() : rest_->name()}});
        }
        return look;
    }

  private:
    enum class By { kNobody, kConsent, kRest };
    struct Choice {
        By by = By::kNobody;      // in this window
        By before = By::kNobody;  // at the last look
        unsigned pause = 0;       // windows in which it is not watched as it consented to
        std::uint64_t round = 0;  // of the last window
    };
    static constexpr std::uint64_t kRoundsKept = 64;
    static constexpr unsigned kPause = 32;

    void begin_round() {
        if (!std::exchange(is_new_round_, false)) return;
        ++round_;
        begun_by_consent_ = begun_by_rest_ = false;
        std::erase_if(choices_, [&](const auto& one) { return one.second.round + kRoundsKept < round_; });
    }
    // What the last window cost it would allow no more than one a minute.
    [[nodiscard]] bool is_dear(const WindowWish& wish) const {
        constexpr std::chrono::duration<double> kLongestPeriod = std::chrono::minutes(1);
        return wish.disturbance > slowdown_ * kLongestPeriod;
    }

    std::unique_ptr<Tracker> consented_;
    std::unique_ptr<Tracker> rest_;
    double slowdown_;
    std::string name_;
    std::map<int, Choice> choices_;  // by pid
    std::uint64_t round_ = 0;
    bool is_new_round_ = true;
    bool begun_by_consent_ = false;
    bool begun_by_rest_ = false;
};

}  // namespace

std::unique_ptr<Tracker> make_consent_tracker(std::unique_ptr<Tracker> consented,
                                              std::unique_ptr<Tracker> rest, double slowdown) {
    return std::make_unique<ConsentTracker>(std::move(consented), std::move(rest), slowdown);
}

}  // namespace memtide::agent
