#include "fabric-manager/fmapi/mctp_transport.h"

#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <linux/mctp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace memtide::fm {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

#ifndef AF_MCTP
#define AF_MCTP 45
#endif

constexpr std::size_t kLargestDatagram = 64 * 1024;

class MctpTransport final : public Transport {
  public:
    MctpTransport(const asio::any_io_executor& executor, MctpEndpoint endpoint)
        : executor_(executor), endpoint_(endpoint) {}
    ~MctpTransport() override { MctpTransport::close(); }
    MctpTransport(const MctpTransport&) = delete;

    asio::awaitable<Result<>> open(TimePoint, const fmapi::WireFormat&) override {
        close();
        const int fd = ::socket(AF_MCTP, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 && errno == EAFNOSUPPORT)
            co_return fail(ErrorCode::kUnavailable,
                           fmt::format("connect to {}: this kernel has no AF_MCTP (CONFIG_MCTP)", name()));
        if (fd < 0) {
            Error error = fail_errno("open a socket to", name(), errno).error();
            error.code = ErrorCode::kUnavailable;
            co_return std::unexpected(std::move(error));
        }
        socket_ = std::make_shared<asio::posix::stream_descriptor>(executor_, fd);
        listen_for_requests(fd);
        receive(socket_);
        co_return Result<>{};
    }

    void send(const fmapi::MctpMessage& message) override {
        if (!socket_ || message.type == fmapi::MctpType::kControl) return;  // the kernel's own business
        const std::vector<std::byte> bytes = fmapi::encode_message(message.message);
        sockaddr_mctp to = address(message.type);
        to.smctp_tag = MCTP_TAG_OWNER;
        if (::sendto(socket_->native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                     reinterpret_cast<const sockaddr*>(&to), sizeof(to)) >= 0)
            return;
        const Error error = fail_errno("send to", name(), errno).error();
        const std::uint8_t tag = message.message.tag;
        asio::post(executor_, [this, tag, error, socket = std::weak_ptr(socket_)] {
            if (!socket.expired() && is_open()) user().refused(tag, {ErrorCode::kUnavailable, error.message});
        });
    }

    [[nodiscard]] bool is_open() const override { return socket_ != nullptr; }
    void close() override {
        error_code ignored;
        if (socket_) socket_->close(ignored);
        socket_.reset();
    }
    [[nodiscard]] bool has_formats() const override { return false; }
    [[nodiscard]] bool loses_messages() const override { return true; }

  private:
    using Socket = std::shared_ptr<asio::posix::stream_descriptor>;

    [[nodiscard]] std::string name() const {
        return fmt::format("mctp://{}@{}", endpoint_.eid, endpoint_.network);
    }
    [[nodiscard]] sockaddr_mctp address(fmapi::MctpType type) const {
        sockaddr_mctp out{};
        out.smctp_family = AF_MCTP;
        out.smctp_network = endpoint_.network;
        out.smctp_addr.s_addr = endpoint_.eid;
        out.smctp_type = static_cast<std::uint8_t>(type);
        return out;
    }

    // Event notifications are requests of the switch. Another process may have taken them: then there are
    // none, and the manager finds events at its next look.
    void listen_for_requests(int fd) const {
        sockaddr_mctp any = address(fmapi::MctpType::kFmApi);
        any.smctp_addr.s_addr = MCTP_ADDR_ANY;
        any.smctp_tag = MCTP_TAG_OWNER;
        (void)::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof(any));
    }

    void receive(const Socket& socket) {
        socket->async_wait(asio::posix::stream_descriptor::wait_read, [this, socket](error_code ec) {
            if (!socket->is_open()) return;
            if (ec || !take(socket)) {
                close();
                return user().lost({ErrorCode::kUnavailable, "receive: " + ec.message()});
            }
            if (socket->is_open()) receive(socket);
        });
    }

    // False when the socket is of no more use.
    bool take(const Socket& socket) {
        std::vector<std::byte> buffer(kLargestDatagram);
        while (socket->is_open()) {
            sockaddr_mctp from{};
            socklen_t size = sizeof(from);
            const ssize_t got = ::recvfrom(socket->native_handle(), buffer.data(), buffer.size(),
                                           MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
            if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
            if (from.smctp_addr.s_addr != endpoint_.eid) continue;
            auto message = fmapi::decode_message(std::span(buffer).first(static_cast<std::size_t>(got)));
            if (!message) continue;  // a datagram that makes no sense spoils no other
            fmapi::MctpMessage out;
            out.route.source = endpoint_.eid;
            out.type = static_cast<fmapi::MctpType>(from.smctp_type);
            out.message = *std::move(message);
            user().received(std::move(out));
        }
        return true;
    }

    asio::any_io_executor executor_;
    MctpEndpoint endpoint_;
    Socket socket_;
};

}  // namespace

std::unique_ptr<Transport> make_mctp_transport(const asio::any_io_executor& executor, MctpEndpoint endpoint) {
    return std::make_unique<MctpTransport>(executor, endpoint);
}

}  // namespace memtide::fm
