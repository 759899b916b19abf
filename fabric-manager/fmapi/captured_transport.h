#pragma once

#include <memory>

#include "fabric-manager/fmapi/transport.h"

namespace memtide::fm {

// A transport without a stream whose messages are captured as the packets that they would be on one.
class CapturedTransport final : public Transport {
  public:
    CapturedTransport(std::unique_ptr<Transport> transport, fmapi::SwitchCapture capture);

    boost::asio::awaitable<Result<>> open(TimePoint deadline, const fmapi::WireFormat& format) override;
    void set_header_form(const fmapi::HeaderForm& form) override { transport_->set_header_form(form); }
    void send(const fmapi::MctpMessage& message) override;
    [[nodiscard]] bool is_open() const override { return transport_->is_open(); }
    bool still_open() override { return transport_->still_open(); }
    void close() override;
    [[nodiscard]] bool has_formats() const override { return transport_->has_formats(); }
    [[nodiscard]] bool loses_messages() const override { return transport_->loses_messages(); }

  private:
    void capture(fmapi::Sender sender, const fmapi::MctpMessage& message);

    std::unique_ptr<Transport> transport_;
    fmapi::SwitchCapture capture_;
    fmapi::StreamTap tap_;
};

}  // namespace memtide::fm
