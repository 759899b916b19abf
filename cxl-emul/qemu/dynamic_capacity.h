#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "cxl-emul/qemu/qmp_client.h"

// Dynamic capacity of QEMU's own type-3 device (`cxl-type3,volatile-dc-memdev=...,num-dc-regions=...`), whose
// fabric manager is QMP. What QEMU 10.0 makes of each request, and what its guests do:
// docs/dynamic-capacity.md.
namespace memtide::emul {

enum class QemuDcSelection { kFree, kContiguous, kPrescriptive, kEnableSharedAccess };
enum class QemuDcRemoval { kTagBased, kPrescriptive };

// A piece of a region, relative to its beginning; in blocks of 2 MiB.
struct QemuDcExtent {
    Bytes offset;
    Bytes length;
};

struct QemuDcAdd {
    std::string device{};  // id of the type-3 device, as in -device ...,id=dcd0
    std::uint16_t host = 0;
    QemuDcSelection selection = QemuDcSelection::kPrescriptive;
    std::uint8_t region = 0;
    std::string tag{};  // a UUID, or empty
    std::vector<QemuDcExtent> extents{};
};

struct QemuDcRelease {
    std::string device{};
    std::uint16_t host = 0;
    QemuDcRemoval removal = QemuDcRemoval::kPrescriptive;
    bool forced = false;
    bool sanitize = false;
    std::uint8_t region = 0;
    std::string tag{};
    std::vector<QemuDcExtent> extents{};
};

// Offers the extents to the guest and returns: the guest has yet to accept them. Errors: as
// QmpClient::execute(), kConflict with QEMU's text when it refuses.
boost::asio::awaitable<Result<>> add_dynamic_capacity(QmpClient& qmp, QemuDcAdd request);
// Asks the guest for the extents and returns: the guest has yet to give them back. Errors: the same.
boost::asio::awaitable<Result<>> release_dynamic_capacity(QmpClient& qmp, QemuDcRelease request);

}  // namespace memtide::emul
