#include "tiering-agent/policy/move_log.h"

#include <algorithm>

namespace memtide::agent {

void MoveLog::add(std::uint64_t space, std::uint64_t page, std::uint32_t pages, std::uint8_t to, Time now) {
    expire(now);
    const Key key{space, page};
    const auto before = last_.find(key);
    const bool undid = before != last_.end() && !before->second.failed && before->second.to != to;
    const bool fro =
        undid && now < before->second.at + std::max<std::chrono::milliseconds>(kToAndFro, 4 * rest_);
    const Entry entry{.at = now, .pages = pages, .to = to, .undid = undid, .fro = fro};
    remember(key, entry);
    lately_ += pages;
    moved_ += pages;
    if (undid) wasted_ += pages;
    if (fro) fro_lately_ += pages;
}

void MoveLog::add_failure(std::uint64_t space, std::uint64_t page, Time now, int error) {
    remember({space, page}, {.at = now, .pages = 0, .failed = true, .error = error});
}

std::optional<MoveLog::Last> MoveLog::last(std::uint64_t space, std::uint64_t page) const {
    const auto found = last_.find({space, page});
    if (found == last_.end()) return std::nullopt;
    const Entry& entry = found->second;
    return Last{entry.at, entry.to, entry.undid, entry.failed, entry.error};
}

void MoveLog::remember(const Key& key, const Entry& entry) {
    last_.insert_or_assign(key, entry);
    past_.push_back({key, entry});
    for (; past_.size() > kMostUnits; past_.pop_front()) leave(past_.front());
}

void MoveLog::leave(const Past& past) {
    lately_ -= past.entry.pages;
    if (past.entry.fro) fro_lately_ -= past.entry.pages;
    const auto last = last_.find(past.key);
    if (last != last_.end() && last->second.at == past.entry.at) last_.erase(last);
}

void MoveLog::expire(Time now) {
    for (; !past_.empty() && past_.front().entry.at + kMemory < now; past_.pop_front()) leave(past_.front());
}

void MoveLog::forget(std::uint64_t space) {
    std::erase_if(past_, [&](const Past& past) {
        if (past.key.space != space) return false;
        leave(past);
        return true;
    });
}

bool MoveLog::rests(std::uint64_t space, std::uint64_t page) const {
    const auto last = last_.find({space, page});
    return last != last_.end() && (last->second.failed || now_ < last->second.at + rest_);
}

double MoveLog::to_and_fro_share() const {
    return lately_ == 0 ? 0 : static_cast<double>(fro_lately_) / static_cast<double>(lately_);
}

}  // namespace memtide::agent
