#include "tiering-agent/observe/nodes.h"

#include <fmt/format.h>

#include "tiering-agent/observe/words.h"

namespace memtide::agent {
namespace {

constexpr int kHighestNumber = 65535;
const std::string kNodes = "sys/devices/system/node";
const std::string kKernelTiers = "sys/devices/virtual/memory_tiering";

// N of "nodeN", "memory_tierN".
std::optional<int> number_after(std::string_view prefix, std::string_view name) {
    if (!name.starts_with(prefix)) return std::nullopt;
    const auto number = whole_number<unsigned short>(name.substr(prefix.size()));
    return number ? std::optional<int>(*number) : std::nullopt;
}

// "Node 0 MemTotal:       24683656 kB"
Bytes meminfo_value(std::string_view meminfo, std::string_view key) {
    while (!meminfo.empty()) {
        std::string_view line = take_line(meminfo);
        take_word(line);
        take_word(line);
        if (take_word(line) != key) continue;
        const auto kib = whole_number<std::uint64_t>(take_word(line)).value_or(0);
        return kib < (1ULL << 50) ? Bytes{kib * 1024} : Bytes{};
    }
    return {};
}

// Class 1 is of CPUs, class 0 of any initiator, so also of devices.
NodePerformance read_performance(const Files& files, const std::string& node) {
    for (const char* access : {"access1", "access0"}) {
        const auto number = [&](const char* name) {
            const auto value = files.read_number(fmt::format("{}/{}/initiators/{}", node, access, name));
            return value && *value <= 1'000'000'000 ? static_cast<unsigned>(*value) : 0U;
        };
        const NodePerformance seen{.read_latency_ns = number("read_latency"),
                                   .write_latency_ns = number("write_latency"),
                                   .read_bandwidth_mib = number("read_bandwidth"),
                                   .write_bandwidth_mib = number("write_bandwidth")};
        if (seen != NodePerformance{}) return seen;
    }
    return {};
}

// The kernel lists distances in the order of the nodes that are online.
std::map<int, int> parse_distances(std::string_view text, const std::set<int>& online) {
    std::map<int, int> distances;
    for (const int node : online) {
        const auto distance = whole_number<int>(take_word(text));
        if (!distance) break;
        distances[node] = *distance;
    }
    return distances;
}

std::map<int, int> read_kernel_tiers(const Files& files) {
    std::map<int, int> tiers;
    for (const std::string& name : files.list(kKernelTiers)) {
        const auto tier = number_after("memory_tier", name);
        if (!tier) continue;
        const auto text = files.read(fmt::format("{}/{}/nodelist", kKernelTiers, name));
        if (!text) continue;
        if (const auto nodes = parse_number_list(*text))
            for (const int node : *nodes) tiers[node] = *tier;
    }
    return tiers;
}

}  // namespace

unsigned NodePerformance::latency_ns() const {
    if (read_latency_ns == 0 || write_latency_ns == 0) return read_latency_ns + write_latency_ns;
    return (read_latency_ns + write_latency_ns) / 2;
}

Result<std::set<int>> parse_number_list(std::string_view text) {
    std::set<int> numbers;
    const auto wrong = [text] {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is not a list of numbers such as 0-2,5", text));
    };
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::string_view part = rest.substr(0, rest.find(','));
        if (rest.size() == part.size() + 1) return wrong();  // a comma at the end
        rest.remove_prefix(std::min(rest.size(), part.size() + 1));
        const auto dash = part.find('-');
        const auto first = whole_number<int>(part.substr(0, dash));
        const auto last = dash == std::string_view::npos ? first : whole_number<int>(part.substr(dash + 1));
        if (!first || !last || *first < 0 || *first > *last || *last > kHighestNumber) return wrong();
        for (int number = *first; number <= *last; ++number) numbers.insert(number);
    }
    return numbers;
}

std::vector<NodeFacts> read_nodes(const Files& files) {
    std::set<int> numbers;
    for (const std::string& name : files.list(kNodes))
        if (const auto node = number_after("node", name)) numbers.insert(*node);
    std::set<int> online = numbers;
    if (const auto text = files.read(kNodes + "/online"))
        if (auto listed = parse_number_list(*text); listed && !listed->empty()) online = std::move(*listed);
    const std::map<int, int> kernel_tiers = read_kernel_tiers(files);

    std::vector<NodeFacts> nodes;
    for (const int number : numbers) {
        const std::string folder = fmt::format("{}/node{}", kNodes, number);
        const auto meminfo = files.read(folder + "/meminfo");
        if (!meminfo) continue;
        NodeFacts facts{.node = number,
                        .has_cpus = !files.read(folder + "/cpulist").value_or("").empty(),
                        .capacity = meminfo_value(*meminfo, "MemTotal:"),
                        .free = meminfo_value(*meminfo, "MemFree:"),
                        .performance = read_performance(files, folder),
                        .kernel_tier = std::nullopt,
                        .distances = parse_distances(files.read(folder + "/distance").value_or(""), online)};
        if (const auto tier = kernel_tiers.find(number); tier != kernel_tiers.end())
            facts.kernel_tier = tier->second;
        nodes.push_back(std::move(facts));
    }
    return nodes;
}

}  // namespace memtide::agent
