#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/cxl-emul/switch/manager.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {

constexpr std::uint8_t kDcdPort = 2;
constexpr std::uint64_t kDcBlock = mebibytes(2).value;

// Ports: 0 host0, 1 host1, 2 dcd0, which three hosts can have. Region 0: 512 MiB, erased on release. Region
// 1: 256 MiB behind it, shareable, not erased. 16 extents, 3 tags.
inline std::string dcd_topology(const std::string& folder, const std::string& device = "") {
    return fmt::format(R"(name: test
switches:
  - name: switch0
    listen: ["tcp://127.0.0.1:0"]
    media: {0}
    ports: [{{id: 0, host: host0}}, {{id: 1, host: host1}}, {{id: 2, device: dcd0}}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 2}}, {{id: 1, upstream_port: 1, vppbs: 2}}]
    devices:
      - name: dcd0
        kind: dcd
        serial: 0x200
        hosts: 3
        extents: 16
        tags: 3
        regions:
          - {{size: 512MiB, block: 2MiB}}
          - {{size: 256MiB, block: 2MiB, shareable: true, sanitize: false}}
{1})",
                       folder, device);
}

inline fmapi::DcTag tag_of(std::uint8_t number) {
    fmapi::DcTag tag{};
    tag[0] = number;
    return tag;
}

// That switch, running on a thread, with a manager that speaks for the hosts as well: what they send comes
// through the tunnel to their LDs.
class DcdSwitch {
  public:
    explicit DcdSwitch(const std::string& device = "", std::shared_ptr<HotplugBackend> hotplug = no_hotplug())
        : topology_(parse_topology(dcd_topology(folder_.path(), device), "test.yaml").value()),
          running_(SwitchThread::start(topology_, topology_.switches[0], std::move(hotplug)).value()),
          manager(running_.addresses().at(0)) {}

    [[nodiscard]] std::string media() const { return folder_.path() + "/memtide-test-dcd0.media"; }

    template <typename Command>
    fmapi::Message at_device(const typename Command::Request& request = {}) {
        return manager.call_device(kDcdPort,
                                   fmapi::make_request(Command::kOpcode, 0, fmapi::encode(request)));
    }
    template <typename Command>
    fmapi::Message at_ld(std::uint8_t ld, const typename Command::Request& request = {}) {
        return manager.call_ld(kDcdPort, ld,
                               fmapi::make_request(Command::kOpcode, 0, fmapi::encode(request)));
    }
    template <typename Command>
    typename Command::Response get(const typename Command::Request& request = {}) {
        return Manager::decode_success<typename Command::Response>(at_device<Command>(request));
    }
    template <typename Command>
    typename Command::Response get_of(std::uint8_t ld, const typename Command::Request& request = {}) {
        return Manager::decode_success<typename Command::Response>(at_ld<Command>(ld, request));
    }

    // Asks again while memory is being erased.
    fmapi::ReturnCode add(const fmapi::InitiateDynamicCapacityAddRequest& request) {
        for (int i = 0; i < 10'000; ++i) {
            const auto code = at_device<fmapi::InitiateDynamicCapacityAdd>(request).return_code;
            if (code != fmapi::ReturnCode::kRetryRequired) return code;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        throw std::runtime_error("memory is being erased for ever");
    }
    fmapi::ReturnCode release(const fmapi::InitiateDynamicCapacityReleaseRequest& request) {
        return at_device<fmapi::InitiateDynamicCapacityRelease>(request).return_code;
    }
    fmapi::ReturnCode respond(std::uint8_t host, std::vector<fmapi::UpdatedDcExtent> extents,
                              std::uint8_t flags = 0) {
        return at_ld<fmapi::AddDynamicCapacityResponse>(host, {std::move(extents), flags}).return_code;
    }
    fmapi::ReturnCode give_back(std::uint8_t host, std::vector<fmapi::UpdatedDcExtent> extents,
                                std::uint8_t flags = 0) {
        return at_ld<fmapi::ReleaseDynamicCapacity>(host, {std::move(extents), flags}).return_code;
    }
    std::vector<fmapi::DcExtent> extents_of(std::uint16_t host) {
        return get<fmapi::GetDcRegionExtentLists>({.host = host, .extents = 100}).extents;
    }
    // What is in the log of a host, and in that of the device; read and cleared.
    std::vector<fmapi::DynamicCapacityRecord> events_of(std::uint8_t host) {
        const auto read = get_of<fmapi::GetEventRecords>(host, {fmapi::EventLog::kDynamicCapacity});
        get_of<fmapi::ClearEventRecords>(host,
                                         {fmapi::EventLog::kDynamicCapacity, fmapi::kClearAllEvents, {}});
        return records_in(read);
    }
    std::vector<fmapi::DynamicCapacityRecord> events() {
        const auto read = get<fmapi::GetEventRecords>({fmapi::EventLog::kDynamicCapacity});
        get<fmapi::ClearEventRecords>({fmapi::EventLog::kDynamicCapacity, fmapi::kClearAllEvents, {}});
        return records_in(read);
    }

  private:
    static std::vector<fmapi::DynamicCapacityRecord> records_in(const fmapi::GetEventRecordsResponse& read) {
        std::vector<fmapi::DynamicCapacityRecord> all;
        for (const fmapi::EventRecord& record : read.records) {
            if (record.format != fmapi::kDynamicCapacityRecord) throw std::runtime_error("another record");
            all.push_back(
                fmapi::decode<fmapi::DynamicCapacityRecord>(std::as_bytes(std::span(record.data))).value());
        }
        return all;
    }

    TemporaryFolder folder_{"/dev/shm"};
    Topology topology_;
    SwitchThread running_;

  public:
    Manager manager;
};

}  // namespace memtide::emul::test
