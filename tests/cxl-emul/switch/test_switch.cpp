#include "tests/cxl-emul/switch/test_switch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace memtide::emul::test {

TemporaryFolder::TemporaryFolder(const std::string& parent) : path_(parent + "/memtide-test.XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp " + path_);
}
TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string test_topology(const std::string& folder, const Times& times) {
    return fmt::format(R"(name: test
switches:
  - name: switch0
    serial: 0x5357
    listen: ["tcp://127.0.0.1:0", "unix://{0}/switch0.sock"]
    media: {0}
    bind_time: {1}
    unbind_time: {2}
    sanitize_time: {3}
    ports:
      - {{id: 0, host: host0}}
      - {{id: 1, host: host1}}
      - {{id: 2, device: mld0}}
      - {{id: 3, device: sld0}}
      - {{id: 4}}
    vcss:
      - {{id: 0, upstream_port: 0, vppbs: 4}}
      - {{id: 1, upstream_port: 1, vppbs: 4}}
    devices:
      - name: mld0
        kind: mld
        serial: 0x4d54000100000000
        size: 1GiB
        granularity: 256MiB
        sanitize: {4}
        lds: [256MiB, 256MiB, 0, 0]
      - {{name: sld0, kind: sld, serial: 0x50, size: 256MiB}}
hosts:
  - {{name: host0, memory: 1GiB, cpus: 2}}
  - {{name: host1, memory: 1GiB, cpus: 2}}
)",
                       folder, times.bind, times.unbind, times.sanitize, times.effect);
}

TestSwitch::TestSwitch(const Times& times, std::shared_ptr<HotplugBackend> hotplug, ConnectionLimits limits)
    : topology_(parse_topology(test_topology(folder_.path(), times), "test.yaml").value()),
      hotplug_(std::move(hotplug)),
      limits_(limits) {
    restart();
}

void TestSwitch::restart() {
    running_.reset();
    auto started = SwitchThread::start(topology_, topology_.switches[0], hotplug_, limits_);
    if (!started) throw std::runtime_error(started.error().message);
    running_.emplace(*std::move(started));
}

std::string TestSwitch::media_file(const std::string& device) const {
    const SwitchConfig& config = topology_.switches[0];
    return topology_.media_file(config, *config.device(DeviceId(device)));
}

void write_file(const std::string& path, std::uint64_t offset, const std::string& text) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    if (!file.write(text.data(), static_cast<std::streamsize>(text.size())).flush())
        throw std::runtime_error("write " + path);
}

std::string read_file(const std::string& path, std::uint64_t offset, std::size_t length) {
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    std::string text(length, '?');
    if (!file.read(text.data(), static_cast<std::streamsize>(length)))
        throw std::runtime_error("read " + path);
    return text;
}

std::uint64_t allocated_bytes(const std::string& path) {
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) throw std::runtime_error("stat " + path);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

}  // namespace memtide::emul::test
