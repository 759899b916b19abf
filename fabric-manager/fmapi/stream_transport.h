#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/stream_link.h"
#include "fabric-manager/fmapi/transport.h"

namespace memtide::fm {

// What transports over streams have in common, whoever connected.
class StreamTransport : public Transport {
  public:
    explicit StreamTransport(fmapi::SwitchCapture capture) : capture_(std::move(capture)) {}
    ~StreamTransport() override { drop(); }
    void send(const fmapi::MctpMessage& message) override {
        if (link_) link_->send(message);
    }
    void set_header_form(const fmapi::HeaderForm& form) override {
        if (link_) link_->set_header_form(form);
    }
    [[nodiscard]] bool is_open() const override { return link_ != nullptr && link_->is_open(); }
    bool still_open() override { return link_ != nullptr && link_->still_open(); }
    void close() override { drop(); }

  protected:
    void use(StreamSocket socket, const fmapi::WireFormat& format);
    void drop() {
        if (link_) link_->close();
        link_.reset();
    }

  private:
    fmapi::SwitchCapture capture_;
    std::shared_ptr<StreamLink> link_;
};

// Connects to a TCP or unix address.
class DialingTransport final : public StreamTransport {
  public:
    DialingTransport(const boost::asio::any_io_executor& executor, SwitchAddress address,
                     fmapi::SwitchCapture capture = {});
    ~DialingTransport() override;
    boost::asio::awaitable<Result<>> open(TimePoint deadline, const fmapi::WireFormat& format) override;
    void close() override;

  private:
    struct Dial;
    static boost::asio::awaitable<Result<>> dial(std::shared_ptr<Dial> dial, SwitchAddress address);

    boost::asio::any_io_executor executor_;
    SwitchAddress address_;
    std::weak_ptr<Dial> dial_;  // the one under way, if any
};

}  // namespace memtide::fm
