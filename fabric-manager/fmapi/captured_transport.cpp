#include "fabric-manager/fmapi/captured_transport.h"

#include <utility>

namespace memtide::fm {

CapturedTransport::CapturedTransport(std::unique_ptr<Transport> transport, fmapi::SwitchCapture capture)
    : transport_(std::move(transport)), capture_(std::move(capture)) {
    transport_->set_user(
        {.received =
             [this](fmapi::MctpMessage&& message) {
                 this->capture(fmapi::Sender::kSwitch, message);
                 user().received(std::move(message));
             },
         .lost =
             [this](Error error) {
                 tap_ = {};
                 user().lost(std::move(error));
             },
         .refused = [this](std::uint8_t tag, Error error) { user().refused(tag, std::move(error)); }});
}

boost::asio::awaitable<Result<>> CapturedTransport::open(TimePoint deadline,
                                                         const fmapi::WireFormat& format) {
    Result<> opened = co_await transport_->open(deadline, format);
    if (opened)
        tap_ = capture_.connection();
    else
        tap_ = {};
    co_return opened;
}

void CapturedTransport::send(const fmapi::MctpMessage& message) {
    capture(fmapi::Sender::kManager, message);
    transport_->send(message);
}

void CapturedTransport::close() {
    tap_ = {};
    transport_->close();
}

void CapturedTransport::capture(fmapi::Sender sender, const fmapi::MctpMessage& message) {
    if (tap_.is_on()) tap_.write(sender, fmapi::to_packets(message));
}

}  // namespace memtide::fm
