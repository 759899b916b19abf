#include "tiering-agent/observe/published_tiers.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tiering-agent/observe/words.h"

namespace memtide::agent {

std::string tiers_as_text(const Tiers& tiers) {
    std::string text = "# Tiers of memory on this machine, fastest first: name, NUMA nodes\n";
    for (const Tier& tier : tiers.tiers)
        text += fmt::format("{}{}{}\n", tier.name, tier.nodes.empty() ? "" : " ", fmt::join(tier.nodes, ","));
    return text;
}

Result<std::vector<Tier>> parse_published_tiers(std::string_view text) {
    std::vector<Tier> tiers;
    while (!text.empty()) {
        std::string_view line = take_line(text);
        const std::string_view name = take_word(line);
        if (name.empty() || name.front() == '#') continue;
        Tier tier{.name = std::string(name)};
        const auto nodes = parse_number_list(take_word(line));
        if (!nodes || !take_word(line).empty())
            return fail(ErrorCode::kProtocol,
                        fmt::format("\"{}\" is to have its nodes behind it, such as 0-1,3", name));
        tier.nodes.assign(nodes->begin(), nodes->end());
        tiers.push_back(std::move(tier));
    }
    return tiers;
}

Result<> publish_tiers(const std::string& path, const Tiers& tiers) {
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
    const std::string next = path + ".next";
    const int file = ::open(next.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) return fail_errno("open", next, errno);
    const std::string text = tiers_as_text(tiers);
    const bool written = ::fchmod(file, 0644) == 0 &&  // whatever the umask
                         ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int error = errno;
    ::close(file);
    if (!written) return fail_errno("write", next, error);
    if (std::rename(next.c_str(), path.c_str()) != 0) return fail_errno("rename to", path, errno);
    return {};
}

}  // namespace memtide::agent
