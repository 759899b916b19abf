#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "common/base/error.h"
#include "common/fmapi/message.h"
#include "fabric-manager/fmapi/client.h"

namespace memtide::fm {
class Session;
}

namespace memtide::cli {

// One switch on the bench, asked one command after the other. Not thread safe.
class Console {
  public:
    // Connects with the first command. `dialect` is as ClientOptions has it. With `pcap` what is said is
    // written behind what is in that file. kInvalidArgument on an address that it cannot read, errors of the
    // file as fmapi::SessionCapture::open().
    static Result<Console> open(const std::string& address, const std::string& dialect,
                                std::chrono::milliseconds timeout, const std::string& pcap = {});

    // The response, whatever its return code. Errors as FmApiClient's: no answer, or none that makes sense.
    Result<fmapi::Message> ask(const fm::Target& target, fmapi::Opcode opcode, const fmapi::Payload& payload);

    // Waits until the background operation that `started` began is over; its own outcome. kTimeout when it
    // still runs behind the limit, kProtocol when the target tells of another operation.
    Result<fmapi::BackgroundOperationStatusResponse> wait(const fm::Target& target, fmapi::Opcode started,
                                                          std::chrono::milliseconds limit);

  private:
    Console() = default;
    std::unique_ptr<boost::asio::io_context> io_;
    std::shared_ptr<fm::Session> session_;
};

}  // namespace memtide::cli
