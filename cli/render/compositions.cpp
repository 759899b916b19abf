#include "cli/render/compositions.h"

#include <algorithm>

#include <boost/json/object.hpp>
#include <fmt/format.h>

#include "cli/render/fields.h"
#include "common/base/table.h"
#include "common/terminal/printable.h"

namespace memtide::cli {

namespace json = boost::json;

namespace {

constexpr std::string_view kNote = "NOTE";
constexpr std::size_t kLeastNote = 24;  // columns; less says nothing

// "ld 3 of mld-..." or "sld-..."; several with the device alone.
std::string memory_of(const json::value& composition) {
    const auto parts = items_of(composition, "parts");
    std::string text;
    for (const json::value& part : parts) {
        if (text_of(part, "state") == "Released" || text_of(part, "state") == "Failed") continue;
        const std::string device = text_of(part, "device");
        const std::string ld = text_of(part, "ld");
        text += text.empty() ? "" : ", ";
        text += parts.size() > 1 || ld == "-" ? device : fmt::format("ld {} of {}", ld, device);
    }
    return text.empty() ? "-" : text;
}

std::string reason_of(const json::value& composition) {
    const json::value& reason = member_of(composition, "reason");
    return reason.is_object() ? fmt::format("{} ({})", text_of(reason, "detail"), text_of(reason, "code"))
                              : "-";
}

std::string place_of(const json::value& part) {
    return fmt::format("{} vcs {} vppb {}", text_of(part, "switch"), text_of(part, "vcs"),
                       text_of(part, "vppb"));
}

std::string render_parts(const json::value& composition) {
    Table parts(
        {">PART", ">SIZE", "STATE", "DEVICE", ">LD", "SERIAL", "BOUND AT", ">NODE", "REGION", "NOTE"});
    for (const json::value& part : items_of(composition, "parts"))
        parts.add({text_of(part, "number"), size_of(part, "size"), text_of(part, "state"),
                   text_of(part, "device"), text_of(part, "ld"), text_of(part, "serial"), place_of(part),
                   text_of(part, "node"), text_of(part, "region_name"), reason_of(part)});
    return parts.empty() ? "" : "\n" + parts.text();
}

std::string note_of(const json::value& composition) {
    const std::string waiting = text_of(composition, "waiting_for");
    return waiting == "-" ? reason_of(composition) : "waits for " + waiting;
}

// "bandwidth over 2 ways"; "-" for what everybody gets.
std::string placement_of(const json::value& composition) {
    const json::value& placement = member_of(composition, "placement");
    const std::string policy = text_of(placement, "policy");
    if (policy != "bandwidth") return policy == "pack" ? "-" : policy;
    return fmt::format("{} over {} ways", policy, text_of(placement, "ways"));
}

std::string labels_of(const json::value& composition) {
    std::string text;
    if (const auto* labels = member_of(composition, "labels").if_object())
        for (const auto& label : *labels)
            text += fmt::format("{}{}={}", text.empty() ? "" : " ", printable(label.key()),
                                text_of(member_of(composition, "labels"), label.key()));
    return text.empty() ? "-" : text;
}

}  // namespace

std::string render_compositions(const json::array& compositions, std::size_t columns) {
    const auto table_with = [&](const auto& note) {
        Table table({"ID", "HOST", ">SIZE", "STATE", ">NODE", "MEMORY", std::string(kNote)});
        for (const json::value& c : compositions)
            table.add({text_of(c, "id"), text_of(c, "host"), size_of(c, "size"), text_of(c, "state"),
                       text_of(c, "node"), memory_of(c), note(c)});
        return table.text();
    };
    // The notes get what the other columns leave of a line.
    const std::string bare = table_with([](const json::value&) { return std::string(); });
    const std::size_t taken = bare.find('\n') - kNote.size();
    const std::size_t room = std::max(kLeastNote, columns - std::min(columns, taken));
    return table_with([&](const json::value& c) { return shorten(note_of(c), room); });
}

std::string render_excluded(const json::array& excluded) {
    constexpr std::size_t kMost = 20;  // lines that still fit on a screen
    std::string text;
    for (std::size_t i = 0; i < std::min(excluded.size(), kMost); ++i)
        text += fmt::format("  {}: {} ({})\n", text_of(excluded[i], "device"), text_of(excluded[i], "detail"),
                            text_of(excluded[i], "constraint"));
    if (excluded.size() > kMost)
        text += fmt::format("  and {} more; --json has all of them\n", excluded.size() - kMost);
    return text;
}

std::string render_composition(const json::value& c) {
    std::string text;
    const auto line = [&](std::string_view name, const std::string& value) {
        if (value != "-") text += fmt::format("{:<18}{}\n", name, value);
    };
    const bool exists = !member_of(c, "id").is_null();
    line("id", text_of(c, "id"));
    line("host", text_of(c, "host"));
    line("size", size_of(c, "size"));
    if (exists) line("state", text_of(c, "state"));
    line("reason", reason_of(c));
    line("waits for", text_of(c, "waiting_for"));
    line("NUMA node", text_of(c, "node"));
    line("placement", placement_of(c));
    line("tenant", text_of(c, "tenant"));
    line("labels", labels_of(c));
    if (exists) {
        line("created", text_of(c, "created"));
        line("updated", text_of(c, "updated"));
        line("expires", text_of(c, "expires"));
    }
    if (flag_of(c, "forced")) line("forced", "yes");
    if (flag_of(c, "adopted")) line("adopted", "yes");
    for (const json::value& undone : items_of(c, "undone"))
        line("undone", undone.is_string() ? printable(undone.as_string()) : "-");
    if (exists) line("manager overhead", fmt::format("{:.1f} ms", real_of(c, "manager_overhead_ms")));

    text += render_parts(c);
    if (const std::string excluded = render_excluded(items_of(c, "excluded")); !excluded.empty())
        text += "\nnot used\n" + excluded;
    const std::string state = text_of(c, "state");
    const char* const without_end = state == "Released" || state == "Failed" ? "given up" : "running";
    Table steps({"STEP", ">PART", ">TIME", "STARTED", "DETAIL"});
    for (const json::value& step : items_of(c, "steps"))
        steps.add({text_of(step, "step"), text_of(step, "part"),
                   member_of(step, "duration_ms").is_null()
                       ? without_end
                       : fmt::format("{:.1f} ms", real_of(step, "duration_ms")),
                   text_of(step, "started"), text_of(step, "detail")});
    if (!steps.empty()) text += "\n" + steps.text();

    Table holders({"BLOCK", ">PID", "COMMAND", ">BYTES"});
    for (const json::value& holder : items_of(c, "holders"))
        holders.add({text_of(holder, "block"), text_of(holder, "pid"), text_of(holder, "command"),
                     size_of(holder, "bytes")});
    if (!holders.empty()) text += "\nheld by\n" + holders.text();
    return text;
}

std::string render_progress(const json::value& c) {
    const std::string waiting = text_of(c, "waiting_for");
    return text_of(c, "state") + (waiting == "-" ? "" : ", waits for " + waiting);
}

}  // namespace memtide::cli
