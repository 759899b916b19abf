#include "cli/render/inventory.h"

#include <fmt/format.h>

#include "cli/render/fields.h"
#include "common/base/table.h"
#include "common/terminal/printable.h"

namespace memtide::cli {

namespace json = boost::json;

namespace {

std::string names(const json::array& items, std::string_view key) {
    std::string text;
    for (const json::value& item : items) text += (text.empty() ? "" : " ") + text_of(item, key);
    return text.empty() ? "-" : text;
}

std::string attachments(const json::value& host) {
    std::string text;
    for (const json::value& at : items_of(host, "attach"))
        text +=
            fmt::format("{}{}/vcs{}", text.empty() ? "" : " ", text_of(at, "switch"), number_of(at, "vcs"));
    return text.empty() ? "-" : text;
}

std::string bound_at(const json::value& ld) {
    const json::value& at = member_of(ld, "bound_at");
    if (!at.is_object()) return "-";
    return fmt::format("{}/vcs{}/vppb{}", text_of(at, "switch"), number_of(at, "vcs"), number_of(at, "vppb"));
}

// "whole" for an SLD's only logical device.
std::string ld_name(const json::value& ld) {
    const std::string id = text_of(ld, "id");
    return id == "-" ? "whole" : id;
}

// "switch0/port2"; of a multi-headed device where the head of the LD is, or all heads without an LD:
// "head0 switch0/port2 head1 switch1/port2".
std::string reached_at(const json::value& device, const json::value& ld) {
    if (number_of(device, "head_count") < 2)
        return fmt::format("{}/port{}", text_of(device, "switch"), number_of(device, "port"));
    const std::string head = ld.is_null() ? "" : text_of(ld, "head");
    std::string text;
    for (const json::value& one : items_of(device, "heads")) {
        if (!ld.is_null() && text_of(one, "number") != head) continue;
        text += fmt::format("{}head{} {}/port{}", text.empty() ? "" : " ", text_of(one, "number"),
                            text_of(one, "switch"), number_of(one, "port"));
    }
    if (!text.empty()) return text;
    return head.empty() || head == "-" ? "-" : fmt::format("head{} away", head);
}

// "spec", "high-nibble (configured)", "spec, 16 in flight"; "-" while nobody knows.
std::string dialect_of(const json::value& item) {
    const json::value& dialect = member_of(item, "dialect");
    if (!dialect.is_object()) return "-";
    const auto in_flight = number_of(dialect, "in_flight");
    return fmt::format("{}{}{}", text_of(dialect, "name"),
                       flag_of(dialect, "detected") ? "" : " (configured)",
                       in_flight > 1 ? fmt::format(", {} in flight", in_flight) : "");
}

// What is wrong with devices, hosts or switches, a line each; "" when nothing is.
std::string remarks(const json::array& items) {
    std::string text;
    for (const json::value& item : items) {
        std::string wrong;
        for (const json::value& one : items_of(member_of(item, "health"), "findings"))
            wrong += fmt::format("{}{} ({})", wrong.empty() ? "" : "; ", text_of(one, "what"),
                                 text_of(one, "level"));
        const bool held = member_of(item, "held").is_string();
        if (wrong.empty() && held) wrong = text_of(item, "held");
        if (!wrong.empty())
            text += fmt::format("\n{}: {}{}", text_of(item, "name"), wrong, held ? "; gets nothing new" : "");
    }
    return text.empty() ? "" : text + "\n";
}

std::string count_of(std::size_t count, std::string_view one, std::string_view several) {
    return fmt::format("{} {}", count, count == 1 ? one : several);
}

// "connected", or since when it is away.
std::string agent_of(const json::value& host) {
    const json::value& agent = member_of(host, "agent");
    if (flag_of(agent, "connected")) return "connected";
    const std::string since = text_of(agent, "away_since");
    return since == "-" ? "away" : "away since " + since;
}

// A percentage; "" from managers that do not say.
std::string percent_of(const json::value& one) {
    const json::value& share = member_of(one, "fragmentation");
    return share.is_number() ? fmt::format("{:.0f} %", share.to_number<double>() * 100) : "";
}

std::string fragmentation_of(const json::value& pool) {
    if (percent_of(pool).empty()) return "";
    Table table({"SWITCH", ">FREE", ">LARGEST LD", ">LARGEST COMPOSITION", ">FRAGMENTATION"});
    for (const json::value& one : items_of(pool, "switches"))
        table.add({text_of(one, "name"), size_of(one, "free"), size_of(one, "largest_free"),
                   size_of(one, "largest_composition"), percent_of(one)});
    table.add({"any host", size_of(pool, "free"), size_of(pool, "largest_free"),
               size_of(pool, "largest_composition"), percent_of(pool)});
    return "\n" + table.text();
}

}  // namespace

std::string render_pool(const json::value& pool) {
    Table table(
        {"DEVICE", "KIND", ">CAPACITY", ">FREE", ">COMPOSED", ">LARGEST FREE", ">STRANDED", ">QUARANTINED"});
    const auto add = [&](const std::string& name, const std::string& kind, const json::value& sums) {
        table.add({name, kind, size_of(sums, "capacity"), size_of(sums, "free"), size_of(sums, "composed"),
                   size_of(sums, "largest_free"), size_of(sums, "stranded"), size_of(sums, "quarantined")});
    };
    for (const json::value& device : items_of(pool, "devices"))
        add(text_of(device, "name"), text_of(device, "kind"), device);
    add("pool", "", pool);
    return table.text() + remarks(items_of(pool, "devices")) + fragmentation_of(pool);
}

std::string render_hosts(const json::array& hosts) {
    Table table({"HOST", "AGENT", ">COMPOSED", "ATTACHED TO", "MEMDEVS", "WARNINGS"});
    for (const json::value& host : hosts)
        table.add({text_of(host, "name"), agent_of(host), size_of(host, "composed"), attachments(host),
                   names(items_of(host, "memdevs"), "name"), names(items_of(host, "warnings"), "code")});
    return table.text() + remarks(hosts);
}

std::string render_switches(const json::array& switches) {
    Table table({"SWITCH", "STATE", "ADDRESS", "DIALECT", ">PORTS", ">VCSS", "ERROR"});
    for (const json::value& item : switches)
        table.add({text_of(item, "name"), flag_of(item, "up") ? "up" : "down", text_of(item, "address"),
                   dialect_of(item), std::to_string(items_of(item, "ports").size()),
                   std::to_string(items_of(item, "vcss").size()), text_of(item, "error")});
    return table.text() + remarks(switches);
}

std::string render_devices(const json::array& devices) {
    Table table({"DEVICE", "LD", ">SIZE", "USE", "SERIAL", "REACHED AT", "COMPOSITION", "BOUND AT"});
    for (const json::value& device : devices) {
        const json::array& lds = items_of(device, "lds");
        if (lds.empty())
            table.add({text_of(device, "name"), "-", size_of(device, "size"), "-", text_of(device, "serial"),
                       reached_at(device, nullptr), "-", "-"});
        // The LDs of a DCD have what their hosts accepted; what it has itself is in none of them.
        if (text_of(device, "kind") == "dcd")
            table.add({text_of(device, "name"), "all", size_of(device, "size"), "dynamic",
                       text_of(device, "serial"), reached_at(device, nullptr), "-", "-"});
        for (const json::value& ld : lds)
            table.add({text_of(device, "name"), ld_name(ld), size_of(ld, "size"), text_of(ld, "use"),
                       text_of(ld, "serial"), reached_at(device, ld), text_of(ld, "composition"),
                       bound_at(ld)});
    }
    return table.text() + remarks(devices);
}

std::string render_tenants(const json::array& tenants) {
    Table table({"TENANT", ">MEMORY", ">ALLOWED", ">COMPOSITIONS", ">ALLOWED", "HOSTS"});
    for (const json::value& tenant : tenants) {
        std::string hosts;
        for (const json::value& host : items_of(tenant, "hosts"))
            if (const auto* name = host.if_string())
                hosts += (hosts.empty() ? "" : " ") + printable(std::string(*name));
        table.add({text_of(tenant, "name"), size_of(tenant, "bytes"), size_of(tenant, "bytes_allowed"),
                   text_of(tenant, "compositions"), text_of(tenant, "compositions_allowed"),
                   hosts.empty() ? "all" : hosts});
    }
    return table.text();
}

std::string render_topology(const json::value& topology) {
    std::string text;
    for (const json::value& item : items_of(topology, "switches")) {
        text += fmt::format("switch {} ({}, {})\n", text_of(item, "name"), text_of(item, "address"),
                            flag_of(item, "up") ? "up" : "down");
        for (const json::value& vcs : items_of(item, "vcss")) {
            text += fmt::format("  vcs {} on port {}: {}\n", number_of(vcs, "id"),
                                number_of(vcs, "upstream_port"), text_of(vcs, "host"));
            for (const json::value& vppb : items_of(vcs, "vppbs")) {
                const std::string status = text_of(vppb, "status");
                text += fmt::format("    vppb {}: {}", number_of(vppb, "id"), status);
                if (status.starts_with("bound"))
                    text += fmt::format(" port {} ld {} composition {}", text_of(vppb, "port"),
                                        text_of(vppb, "ld"), text_of(vppb, "composition"));
                text += '\n';
            }
        }
        for (const json::value& port : items_of(item, "ports"))
            if (text_of(port, "role") == "downstream")
                text += fmt::format("  port {}: device {}{}\n", number_of(port, "id"),
                                    text_of(port, "device"), flag_of(port, "link_up") ? "" : ", link down");
    }
    for (const json::value& device : items_of(topology, "devices")) {
        text += fmt::format("device {}: {} {}, {}", text_of(device, "name"), text_of(device, "kind"),
                            size_of(device, "size"),
                            count_of(items_of(device, "lds").size(), "logical device", "logical devices"));
        const std::int64_t heads = number_of(device, "head_count");
        if (heads > 1) text += fmt::format(", {} heads: {}", heads, reached_at(device, nullptr));
        text += '\n';
    }
    for (const json::value& host : items_of(topology, "hosts"))
        text += fmt::format("{}: {} composed, agent {}\n", text_of(host, "name"), size_of(host, "composed"),
                            agent_of(host));
    return text;
}

}  // namespace memtide::cli
