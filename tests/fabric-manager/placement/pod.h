#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabric-manager/placement/placement.h"

namespace memtide::fm {

// A pod of switches without any I/O: hosts at some of them, devices behind each.
class Pod {
  public:
    // Each host gets `vppbs` vPPBs at each switch that it is attached to.
    Pod(int switches, std::size_t vppbs);
    void add_host(const std::string& name, const std::vector<int>& at);
    // Sizes in units of 256 MiB.
    void add_mld(int at, std::uint8_t port, const std::vector<std::uint64_t>& units, std::uint64_t spare = 0);
    // One with a head at each of the switches, whose LDs are dealt out to them in turn; `spare` as above.
    void add_multi_headed(DeviceKind kind, const std::vector<int>& at, std::uint8_t port,
                          const std::vector<std::uint64_t>& units, std::uint64_t spare = 0);
    void add_sld(int at, std::uint8_t port, std::uint64_t units);

    // Makes a composition of the plan, whose memory is bound and cut as planned.
    void take(const Plan& plan, const std::string& id, const std::string& host,
              std::optional<std::string> tenant = {});
    void release(const std::string& id);
    [[nodiscard]] const std::vector<Part>& parts(const std::string& id) const { return taken.at(id).parts; }
    [[nodiscard]] std::vector<std::string> wrong() const;

    Inventory inventory;
    std::map<std::string, Composition> taken;

  private:
    static SwitchId id(int at) { return SwitchId("switch" + std::to_string(at)); }
    void show(int at);
    void bind(const Part& part, bool bound);

    std::size_t vppbs_;
    std::vector<SwitchReading> readings_;
    std::uint64_t next_serial_ = 0x1000;
};

}  // namespace memtide::fm
