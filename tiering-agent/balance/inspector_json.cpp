#include "tiering-agent/balance/inspector_json.h"

#include <boost/json/array.hpp>
#include <fmt/format.h>

namespace memtide::agent {
namespace {

namespace json = boost::json;

json::value text_or_null(const std::string& text) { return text.empty() ? json::value() : json::value(text); }

double share_of(unsigned heat) { return heat / double{PageHeat::kMost}; }

json::value share_or_null(std::optional<unsigned> heat) {
    return heat ? json::value(share_of(*heat)) : json::value();
}

json::array to_json(const WorkingSets::Pages& pages) {
    json::array bytes;
    for (const std::uint64_t count : pages) bytes.push_back(size_of_pages(count).value);
    return bytes;
}

json::object to_json(const WorkingSets::Of& set) {
    json::object object{{"name", set.name},
                        {"processes", set.processes},
                        {"rss", set.rss.value},
                        {"looked_at", size_of_pages(set.present_pages).value},
                        {"looked_at_fast", size_of_pages(set.all_fast_pages).value},
                        {"touched", to_json(set.touched_pages)},
                        {"touched_fast", to_json(set.fast_pages)},
                        {"watched_seconds", set.watched_for.count()}};
    if (set.pid != 0) object["pid"] = set.pid;
    if (!set.target.empty()) object["target"] = set.target;
    return object;
}

json::array to_json(const std::vector<WorkingSets::Of>& sets) {
    json::array array;
    for (const auto& set : sets) array.push_back(to_json(set));
    return array;
}

json::object to_json(const PlanPreview::OfPair& pair) {
    json::array targets;
    for (const auto& target : pair.targets)
        targets.push_back({{"name", target.name},
                           {"up", size_of_pages(target.promoted_pages).value},
                           {"down", size_of_pages(target.demoted_pages).value},
                           {"rate_limit", target.rate_limit.value}});
    return {{"fast", pair.fast},
            {"slow", pair.slow},
            {"fast_free", size_of_pages(pair.fast_free).value},
            {"slow_free", size_of_pages(pair.slow_free).value},
            {"reserve", size_of_pages(pair.reserve).value},
            {"up", size_of_pages(pair.promoted_pages).value},
            {"down", size_of_pages(pair.demoted_pages).value},
            {"most", size_of_pages(pair.most_pages).value},
            {"even", pair.is_even},
            {"hit_before", pair.hit_before},
            {"hit_after", pair.hit_after},
            {"coldest_up", share_or_null(pair.coldest_promoted)},
            {"warmest_down", share_or_null(pair.warmest_demoted)},
            {"targets", std::move(targets)}};
}

std::string hex(std::uint64_t address) { return fmt::format("{:#x}", address); }

json::object to_json(const Vma& vma) {
    json::object object{
        {"begin", hex(vma.range.begin)},
        {"end", hex(vma.range.end)},
        {"kind", to_string(vma.kind)},
        {"name", text_or_null(vma.name)},
        {"permissions", fmt::format("{}{}{}{}", vma.readable ? 'r' : '-', vma.writable ? 'w' : '-',
                                    vma.executable ? 'x' : '-', vma.is_private ? 'p' : 's')}};
    object["locked"] = vma.flags ? json::value(vma.flags->locked) : json::value();
    object["hugetlb"] = vma.flags ? json::value(vma.flags->hugetlb) : json::value();
    object["policy"] = vma.policy ? json::value(*vma.policy) : json::value();
    return object;
}

json::value to_json(const std::optional<Explanation::Heat>& heat) {
    if (!heat) return nullptr;
    return {{"huge", heat->is_huge},
            {"windows", heat->windows},
            {"lasting", heat->lasting},
            {"recent", heat->recent},
            {"changing", heat->is_changing},
            {"untouched_seconds", heat->untouched.count()},
            {"weighted", share_of(heat->weighted)}};
}

json::value to_json(const std::optional<Explanation::Rank>& rank) {
    if (!rank) return nullptr;
    return {{"fast", rank->fast},
            {"slow", rank->slow},
            {"warmer", size_of_pages(rank->warmer_pages).value},
            {"as_warm", size_of_pages(rank->as_warm_pages).value},
            {"ranked", size_of_pages(rank->pages).value},
            {"in_fast", size_of_pages(rank->fast_pages).value},
            {"coldest_fast", share_or_null(rank->coldest_fast)},
            {"warmest_slow", share_or_null(rank->warmest_slow)}};
}

json::value to_json(const std::optional<Explanation::LastMove>& move) {
    if (!move) return nullptr;
    return {{"seconds_ago", move->ago.count()},
            {"to", text_or_null(move->to)},
            {"error", text_or_null(move->error)},
            {"undid_another", move->undid},
            {"rests", move->rests}};
}

// Percent; null where nothing was.
json::array to_json(const std::vector<HeatHistory::Cell>& cells, std::uint8_t HeatHistory::Cell::* what) {
    json::array array;
    for (const HeatHistory::Cell& cell : cells)
        array.push_back(cell.is_absent() ? json::value()
                                         : json::value((cell.*what * 100U + 127) / HeatHistory::Cell::kMost));
    return array;
}

}  // namespace

json::object to_json(const WorkingSets& sets) {
    json::array within;
    for (const auto time : WorkingSets::kWithin) within.push_back(time.count());
    return {{"within_seconds", std::move(within)},
            {"targets", to_json(sets.targets)},
            {"cgroups", to_json(sets.cgroups)},
            {"processes", to_json(sets.processes)}};
}

json::object to_json(const PlanPreview& plan) {
    json::array pairs;
    for (const auto& pair : plan.pairs) pairs.push_back(to_json(pair));
    json::array left_out;
    for (const auto& one : plan.left_out) left_out.push_back({{"target", one.target}, {"why", one.why}});
    return {{"mode", to_string(plan.mode)},
            {"pairs", std::move(pairs)},
            {"left_out", std::move(left_out)},
            {"note", text_or_null(plan.note)}};
}

json::object to_json(const Explanation& answer) {
    return {{"pid", answer.pid},
            {"comm", answer.comm},
            {"address", hex(answer.address)},
            {"membership", answer.membership},
            {"target", text_or_null(answer.target)},
            {"mapping", to_json(answer.vma)},
            {"may_move", answer.why_not.empty()},
            {"why_not", json::array(answer.why_not.begin(), answer.why_not.end())},
            {"present", answer.is_present},
            {"node", answer.node ? json::value(*answer.node) : json::value()},
            {"tier", text_or_null(answer.tier)},
            {"heat", to_json(answer.heat)},
            {"rank", to_json(answer.rank)},
            {"last_move", to_json(answer.last_move)},
            {"verdict", answer.verdict}};
}

json::object to_json(const HeatPicture& picture) {
    json::array processes;
    for (const auto& process : picture.processes) {
        json::array columns;
        for (const auto ago : process.columns) columns.push_back(std::chrono::duration<double>(ago).count());
        json::array rows;
        for (const HeatHistory::Row& row : process.rows)
            rows.push_back({{"begin", hex(row.begin << kPageShift)},
                            {"end", hex(row.end << kPageShift)},
                            {"touched", to_json(row.cells, &HeatHistory::Cell::touched)},
                            {"slow", to_json(row.cells, &HeatHistory::Cell::slow)}});
        processes.push_back({{"pid", process.pid},
                             {"comm", process.comm},
                             {"target", process.target},
                             {"columns_seconds_ago", std::move(columns)},
                             {"rows", std::move(rows)}});
    }
    return {{"tiers", json::array(picture.tiers.begin(), picture.tiers.end())},
            {"processes", std::move(processes)}};
}

}  // namespace memtide::agent
