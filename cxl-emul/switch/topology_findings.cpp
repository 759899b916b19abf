#include "cxl-emul/switch/topology_findings.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "common/terminal/printable.h"

namespace memtide::emul {
namespace {

constexpr std::size_t kLongestShownLine = 120;

// The YAML library says what it misses, not what to write.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kSyntaxAdvice{{
    {"illegal map value", "a text with \": \" in it needs quotes, and keys of a map begin in one column"},
    {"end of map not found",
     "lines of one map begin in one column; the line before may lack a quote or bracket"},
    {"end of sequence not found", "items of one list begin in one column, each with \"- \""},
    {"illegal block entry",
     "a } or ] is missing before this, or items of one list do not begin in one column"},
    {"end of map flow not found", "a } is missing"},
    {"end of sequence flow not found", "a ] is missing"},
    {"a tab in the indentation", "put spaces in its place"},
    {"the file must be a map", "begin with name: NAME and switches: in the first column"},
}};

std::string_view advice_of(const YamlComplaint& one) {
    if (!one.advice.empty()) return one.advice;
    for (const auto& [message, advice] : kSyntaxAdvice)
        if (one.message.starts_with(message)) return advice;
    return {};
}

std::string_view line_of(std::string_view text, int line) {
    for (int number = 1; number < line; ++number) {
        const auto end = text.find('\n');
        if (end == std::string_view::npos) return {};
        text.remove_prefix(end + 1);
    }
    return text.substr(0, text.find('\n'));
}

// A character of UTF-8 begins with every byte but 10xxxxxx.
std::size_t columns_of(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

// The line with a mark below the column; what would take more than a line of a terminal is cut.
std::string shown_line(std::string_view text, const YamlComplaint& one) {
    const std::string_view line = line_of(text, one.line);
    const auto column = static_cast<std::size_t>(one.column);
    if (line.empty() || column == 0 || column > kLongestShownLine || column > line.size() + 1) return {};
    const std::string before = printable(line.substr(0, column - 1));
    std::string shown = before + printable(line.substr(column - 1));
    if (line.size() > kLongestShownLine) shown = printable(line.substr(0, kLongestShownLine - 3)) + "...";
    return fmt::format("{:>7} | {}\n        | {}^\n", one.line, shown, std::string(columns_of(before), ' '));
}

std::string block(const TopologyFindings& findings, const YamlComplaint& one, std::string_view kind) {
    std::string text = printable(findings.file);
    if (one.line != 0) text += fmt::format(":{}:{}", one.line, one.column);
    text += fmt::format(": {}{}\n", kind, printable(one.message)) + shown_line(findings.text, one);
    if (const auto advice = advice_of(one); !advice.empty())
        text += fmt::format("     do: {}\n", printable(advice));
    if (const auto meaning = meaning_of_key(one.key_path); !meaning.empty())
        text += fmt::format("    key: {} is {}\n", one.key_path.substr(one.key_path.rfind('.') + 1), meaning);
    return text;
}

std::string counted(std::size_t count, std::string_view one) {
    std::string several(one);
    several += one.ends_with("ch") ? "es" : "s";
    return fmt::format("{} {}", count, count == 1 ? std::string(one) : several);
}

// "2 switches, 2 hosts, 3 devices with 3GiB".
std::string contents(const Topology& topology) {
    std::size_t devices = topology.multi_headed.size();
    Bytes sum;
    for (const DeviceConfig& device : topology.multi_headed) sum += device.size;
    for (const SwitchConfig& config : topology.switches)
        for (const DeviceConfig& device : config.devices)
            if (!device.is_multi_headed()) {
                ++devices;
                sum += device.size;
            }
    for (const HostConfig& host : topology.hosts)
        for (const DirectDeviceConfig& device : host.devices) {
            ++devices;
            sum += device.size;
        }
    std::string text = fmt::format("{}, {}, {} with {}", counted(topology.switches.size(), "switch"),
                                   counted(all_hosts(topology).size(), "host"), counted(devices, "device"),
                                   format_bytes(sum));
    if (!topology.networks.empty()) text += ", " + counted(topology.networks.size(), "network");
    return text;
}

}  // namespace

TopologyFindings examine_topology(const std::string& path, const HostCheck& host_check) {
    auto text = YamlDocument::read(path);
    if (text) return examine_topology_text(*std::move(text), path, host_check);
    TopologyFindings findings;
    findings.file = path;
    findings.unreadable = text.error().message;
    return findings;
}

TopologyFindings examine_topology_text(std::string text, std::string name, const HostCheck& host_check) {
    TopologyFindings findings;
    const YamlDocument document = YamlDocument::examine(text, name);
    findings.file = std::move(name);
    findings.text = std::move(text);
    if (document.is_readable()) findings.topology = read_topology(document);
    findings.mistakes = document.complaints();
    const auto hosts = document.root().get("hosts");
    if (findings.is_good() && host_check && hosts) {
        const std::vector<YamlValue> items = hosts->list();
        for (std::size_t i = 0; i < items.size(); ++i)
            if (const auto fits = host_check(findings.topology, findings.topology.hosts[i]); !fits)
                items[i].map().require("name").remark(
                    fmt::format("`rack up` refuses this: {}", fits.error().message),
                    "`memtide-cxl-emul switch` and `hosts` run it all the same");
    }
    // Beside a mistake they would only say what comes of it.
    if (findings.is_good()) findings.remarks = document.remarks();
    return findings;
}

std::string explain(const TopologyFindings& findings) {
    if (!findings.unreadable.empty()) return printable(findings.unreadable) + "\n";
    std::string text;
    for (const YamlComplaint& one : findings.mistakes) text += block(findings, one, "") + "\n";
    for (const YamlComplaint& one : findings.remarks) text += block(findings, one, "remark: ") + "\n";
    const std::string file = printable(findings.file);
    if (!findings.is_good())
        return text + fmt::format("{}: {}\n", file, counted(findings.mistakes.size(), "mistake"));
    return text + fmt::format("{}: ok: {}\n", file, contents(findings.topology));
}

}  // namespace memtide::emul
