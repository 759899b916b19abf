#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "common/metrics/registry.h"
#include "fabric-manager/engine/manager.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {

// How large a fabric a benchmark looks at.
struct FabricSize {
    int switches = 50;
    int hosts_per_switch = 200;
    int devices_per_switch = 40;
    int lds_per_device = 50;
};

// A real manager over switches that exist in this process only, so that thousands of hosts and devices fit on
// one machine. It runs on `io`, which the caller turns.
class LargeFabric {
  public:
    LargeFabric(boost::asio::io_context& io, const FabricSize& size);
    ~LargeFabric();
    LargeFabric(const LargeFabric&) = delete;
    LargeFabric& operator=(const LargeFabric&) = delete;

    // Turns `io` until every switch has been read.
    void wait_until_ready();
    [[nodiscard]] fm::Manager& manager() { return *manager_; }
    [[nodiscard]] metrics::Registry& metrics() { return metrics_; }

  private:
    test::TempFolder folder_;
    boost::asio::io_context& io_;
    metrics::Registry metrics_;
    std::unique_ptr<fm::Manager> manager_;
};

}  // namespace memtide::bench
