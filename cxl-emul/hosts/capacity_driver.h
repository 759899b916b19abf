#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/fmapi/commands/dynamic_capacity.h"
#include "common/fmapi/commands/dynamic_capacity_events.h"
#include "common/fmapi/commands/host_dynamic_capacity.h"
#include "common/fmapi/message.h"
#include "cxl-emul/switch/range_set.h"

namespace memtide::emul {

// The mailbox of a device, as the host uses it that has the device.
class Mailbox {
  public:
    virtual ~Mailbox() = default;
    // The response to the request, whatever its return code. Any error: the device is gone.
    virtual Result<fmapi::Message> send(const fmapi::Message& request) = 0;
};

// What a host's driver does with a dynamic capacity device (CXL 3.1, 8.2.9.9.9 and 9.13.3): answers offers,
// and learns what is asked back and what is gone. It keeps no list of extents: the device has that. Not
// thread safe. Errors are the mailbox's, and kProtocol when the device answers something that makes no sense.
class CapacityDriver {
  public:
    explicit CapacityDriver(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}

    struct News {
        RangeSet asked;   // back, and not gone since
        RangeSet forced;  // gone, whether asked for or not
    };
    // Reads and clears the dynamic capacity log; each offer in it is accepted, or refused as a whole.
    Result<News> read_log(bool refuses);

    // What the host has accepted (Get Dynamic Capacity Extent List).
    Result<std::vector<fmapi::DcExtent>> extents();

    // Release Dynamic Capacity, of whole blocks of one region each. kConflict: the device does not take it
    // back, and nothing has changed.
    Result<> give_back(const std::vector<ByteRange>& memory);

  private:
    using Extents = std::vector<fmapi::UpdatedDcExtent>;
    template <typename Command>
    Result<fmapi::Message> call(const typename Command::Request& request);
    template <typename Command>
    Result<typename Command::Response> get(const typename Command::Request& request);
    Result<> answer(Extents offer, bool refuses);
    Result<> take(const fmapi::DynamicCapacityRecord& record, bool refuses, News& news);

    std::shared_ptr<Mailbox> mailbox_;
    Extents offer_;  // the extents of an offer whose last record was not read yet
};

}  // namespace memtide::emul
