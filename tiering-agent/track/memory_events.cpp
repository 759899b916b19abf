#include "tiering-agent/track/memory_events.h"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace memtide::agent {
namespace {

constexpr std::string_view kSources = "sys/bus/event_source/devices";

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
    const bool is_hexadecimal = text.starts_with("0x");
    if (is_hexadecimal) text.remove_prefix(2);
    Number value = 0;
    const auto [end, failed] =
        std::from_chars(text.data(), text.data() + text.size(), value, is_hexadecimal ? 16 : 10);
    return failed == std::errc{} && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                      : std::nullopt;
}

// Calls `visit` with what stands between separators.
template <typename Visit>
bool for_each_part(std::string_view text, char separator, Visit visit) {
    while (true) {
        const std::size_t at = text.find(separator);
        if (!visit(text.substr(0, at))) return false;
        if (at == std::string_view::npos) return true;
        text.remove_prefix(at + 1);
    }
}

void put_bits(__u64& word, unsigned first, unsigned count, std::uint64_t value) {
    const std::uint64_t mask = count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    word = (word & ~(mask << first)) | ((value & mask) << first);
}

Result<> apply_term(std::string_view name, std::uint64_t value, const TermFormat& format,
                    perf_event_attr& attributes) {
    __u64 word = 0;
    const auto target = [&]() -> __u64 {
        return format.word == 0   ? attributes.config
               : format.word == 1 ? attributes.config1
                                  : attributes.config2;
    };
    word = target();
    std::uint64_t left = value;
    for (const auto& [first, last] : format.bits) {
        const unsigned count = last - first + 1;
        put_bits(word, first, count, left);
        left = count >= 64 ? 0 : left >> count;
    }
    if (left != 0) return fail(ErrorCode::kProtocol, fmt::format("{}={} does not fit", name, value));
    if (format.word == 0) attributes.config = word;
    if (format.word == 1) attributes.config1 = word;
    if (format.word == 2) attributes.config2 = word;
    return {};
}

perf_event_attr sampled(__u32 type, unsigned frequency) {
    perf_event_attr attributes{};
    attributes.type = type;
    attributes.freq = 1;
    attributes.sample_freq = frequency;
    attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ADDR;
    attributes.disabled = 1;
    attributes.exclude_hv = 1;
    return attributes;
}

std::map<std::string, TermFormat, std::less<>> read_formats(const Files& files, const std::string& source) {
    std::map<std::string, TermFormat, std::less<>> formats;
    for (const std::string& name : files.list(source + "/format"))
        if (const auto text = files.read(source + "/format/" + name))
            if (auto format = TermFormat::parse(*text)) formats.emplace(name, *std::move(format));
    return formats;
}

Result<perf_event_attr> read_event(const Files& files, const std::string& source, const std::string& name,
                                   const perf_event_attr& like) {
    const auto terms = files.read(source + "/events/" + name);
    if (!terms) return std::unexpected(terms.error());
    perf_event_attr attributes = like;
    if (auto done = apply_terms(*terms, read_formats(files, source), attributes); !done)
        return std::unexpected(std::move(done.error()).with_context(name));
    return attributes;
}

// Intel: mem-loads and mem-stores of the core's PMU; of hybrid processors the larger cores'.
Result<std::vector<MemoryEvent>> find_pebs(const Files& files, unsigned frequency) {
    for (const std::string_view pmu : {"cpu", "cpu_core"}) {
        const std::string source = fmt::format("{}/{}", kSources, pmu);
        const auto type = files.read_number(source + "/type");
        if (!type || !files.exists(source + "/events/mem-loads")) continue;
        perf_event_attr like = sampled(static_cast<__u32>(*type), frequency);
        like.exclude_kernel = 1;
        like.precise_ip = 2;
        std::vector<MemoryEvent> events;
        for (const std::string name : {"mem-loads", "mem-stores"}) {
            if (!files.exists(source + "/events/" + name)) continue;
            const auto attributes = read_event(files, source, name, like);
            if (!attributes) return std::unexpected(attributes.error());
            events.push_back({.name = name, .attributes = *attributes});
        }
        if (files.exists(source + "/events/mem-loads-aux")) {
            const auto leader = read_event(files, source, "mem-loads-aux", like);
            if (!leader) return std::unexpected(leader.error());
            events.front().leader = *leader;
            events.front().attributes.disabled = 0;  // the leader enables it
        }
        return events;
    }
    return fail(ErrorCode::kNotFound, "no PEBS");
}

// AMD: micro-operations of any kind, of which those that access memory have an address. It cannot leave out
// the kernel's on all processors; their addresses tell.
Result<std::vector<MemoryEvent>> find_ibs(const Files& files, unsigned frequency) {
    const auto type = files.read_number(fmt::format("{}/ibs_op/type", kSources));
    if (!type) return std::unexpected(type.error());
    return std::vector<MemoryEvent>{
        {.name = "ibs_op", .attributes = sampled(static_cast<__u32>(*type), frequency)}};
}

}  // namespace

std::optional<TermFormat> TermFormat::parse(std::string_view text) {
    constexpr std::array<std::string_view, 3> kWords{"config:", "config1:", "config2:"};
    for (unsigned word = 0; word < kWords.size(); ++word) {
        if (!text.starts_with(kWords[word])) continue;
        TermFormat format{.word = word};
        const bool good = for_each_part(text.substr(kWords[word].size()), ',', [&](std::string_view part) {
            const std::size_t dash = part.find('-');
            const auto first = number_of<unsigned>(part.substr(0, dash));
            const auto last =
                dash == std::string_view::npos ? first : number_of<unsigned>(part.substr(dash + 1));
            if (!first || !last || *first > *last || *last > 63) return false;
            format.bits.emplace_back(*first, *last);
            return true;
        });
        if (good) return format;
    }
    return std::nullopt;
}

Result<> apply_terms(std::string_view terms, const std::map<std::string, TermFormat, std::less<>>& formats,
                     perf_event_attr& attributes) {
    Result<> done;
    for_each_part(terms, ',', [&](std::string_view term) {
        const std::size_t equals = term.find('=');
        const std::string_view name = term.substr(0, equals);
        // A term without a value is 1.
        const auto value = equals == std::string_view::npos
                               ? std::optional<std::uint64_t>(1)
                               : number_of<std::uint64_t>(term.substr(equals + 1));
        const auto format = formats.find(name);
        if (format == formats.end() || !value)
            done =
                fail(ErrorCode::kProtocol, fmt::format("\"{}\" is no term of this processor's events", term));
        else
            done = apply_term(name, *value, format->second, attributes);
        return done.has_value();
    });
    return done;
}

MemoryEvent page_fault_event() {
    MemoryEvent faults{.name = "page faults"};
    faults.attributes.type = PERF_TYPE_SOFTWARE;
    faults.attributes.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
    faults.attributes.sample_period = 1;
    faults.attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_ADDR;
    faults.attributes.disabled = 1;
    return faults;
}

Result<std::vector<MemoryEvent>> find_memory_events(const Files& files, unsigned frequency) {
    auto pebs = find_pebs(files, frequency);
    if (pebs || pebs.error().code == ErrorCode::kProtocol) return pebs;
    auto ibs = find_ibs(files, frequency);
    if (ibs) return ibs;
    return fail(ErrorCode::kUnavailable,
                "this processor samples no memory accesses (neither mem-loads nor ibs_op; guests have none)");
}

}  // namespace memtide::agent
