#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/generic/stream_protocol.hpp>

#include "common/base/error.h"
#include "common/fmapi/capture/session_capture.h"
#include "common/fmapi/mctp.h"
#include "common/fmapi/wire_format.h"

namespace memtide::fm {

using StreamSocket = boost::asio::generic::stream_protocol::socket;

// A connected stream with messages on it, until it is closed or lost; then it is of no more use. Handlers of
// the socket keep it alive. Messages that are sent in one go of the event loop go out in one system call.
class StreamLink : public std::enable_shared_from_this<StreamLink> {
  public:
    using Received = std::function<void(fmapi::MctpMessage&&)>;
    using Lost = std::function<void(Error)>;

    // What goes over it is told to `tap`.
    StreamLink(StreamSocket socket, const fmapi::WireFormat& format, fmapi::StreamTap tap)
        : socket_(std::move(socket)), format_(format), tap_(std::move(tap)), assembler_(format) {}

    // Reads from here on; neither function is called after close().
    void start(Received received, Lost lost);
    void send(const fmapi::MctpMessage& message);
    void set_header_form(const fmapi::HeaderForm& form);
    [[nodiscard]] bool is_open() const { return socket_.is_open(); }
    bool still_open();
    void close();

  private:
    void read();
    void flush();
    void write_rest();
    void lose(Error error);
    void take_in(std::size_t bytes);

    StreamSocket socket_;
    fmapi::WireFormat format_;
    fmapi::StreamTap tap_;
    fmapi::PacketAssembler assembler_;
    Received received_;
    Lost lost_;
    std::vector<std::byte> in_;
    std::vector<std::byte> out_;      // to be sent
    std::vector<std::byte> sending_;  // what a full socket did not take yet
    bool flush_comes_ = false;
};

}  // namespace memtide::fm
