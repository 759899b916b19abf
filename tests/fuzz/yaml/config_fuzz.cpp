// Whatever stands in a daemon's configuration: values, or complaints that each begin with a place. Topologies
// have a fuzzer of their own.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "fabric-manager/app/config.h"
#include "tiering-agent/app/agent_config.h"

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

void check_manager(std::string_view text) {
    const auto config = memtide::fm::parse_config(text, "fuzz.yaml");
    if (!config) {
        require(config.error().message.starts_with("fuzz.yaml"));
        return;
    }
    // What was let through is what the manager may run with.
    require(!config->listen.empty() && !config->state.empty() && !config->manager.switches.empty());
    for (const std::string& address : config->listen)
        require(memtide::fm::listen_refusal(address, config->security.is_complete()).empty());
    require(config->manager.timing.retry_max >= config->manager.timing.retry_min);
}

// The agent's reader takes files only.
void check_agent(std::string_view text) {
    const int fd = memfd_create("fuzz.yaml", MFD_CLOEXEC);
    require(fd >= 0);
    require(write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const auto config = memtide::agent::load_config(path);
    close(fd);
    if (!config) {
        require(config.error().message.starts_with(path));
        return;
    }
    using namespace memtide::agent;
    require(group_tiers({}, config->tiering.tiers).has_value());
    const std::string words(text);
    const Process process{.comm = words, .exe = words, .command = words, .cgroup = words, .unit = words};
    const auto members = assign_targets({process}, config->tiering.targets, 1);
    require(members.size() == 1 && !explain(members.front(), config->tiering.targets).empty());
    const Vma vma{.range = {0x1000, 0x2000}, .name = words};
    for (const TieringTarget& target : config->tiering.targets) {
        require(target.mode <= config->tiering.mode);
        if (const auto stay = why_it_stays(vma, target)) require(!explain(*stay, vma, target).empty());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_manager(text);
    check_agent(text);
    return 0;
}
