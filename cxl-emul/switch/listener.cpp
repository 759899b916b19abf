#include "cxl-emul/switch/listener.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/keep_alive.h"

namespace memtide::emul {
namespace asio = boost::asio;
using asio::ip::tcp;
using UnixStream = asio::local::stream_protocol;
using boost::system::error_code;

// The file that a listening unix socket makes; removed by its owner only.
struct Listener::SocketFile {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;

    ~SocketFile() {
        struct stat status{};
        if (lstat(path.c_str(), &status) == 0 && status.st_dev == device && status.st_ino == inode)
            unlink(path.c_str());
    }
};

namespace {

std::unexpected<Error> listen_error(const std::string& address, const error_code& error) {
    if (error == asio::error::address_in_use)
        return fail(ErrorCode::kAlreadyExists,
                    fmt::format("listen on {}: already in use by another process", address));
    if (error == asio::error::access_denied)
        return fail(ErrorCode::kPermission, fmt::format("listen on {}: {}", address, error.message()));
    return fail(ErrorCode::kIo, fmt::format("listen on {}: {}", address, error.message()));
}

enum class Occupant { kNobody, kDeadSocket, kLivingSocket, kOtherFile };

Occupant occupant_of(const std::string& path) {
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0) return Occupant::kNobody;
    if (!S_ISSOCK(status.st_mode)) return Occupant::kOtherFile;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return Occupant::kLivingSocket;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const int status_code = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    const bool refused = status_code != 0 && errno == ECONNREFUSED;
    ::close(fd);
    return refused ? Occupant::kDeadSocket : Occupant::kLivingSocket;
}

}  // namespace

Listener::Listener(std::variant<TcpAcceptor, UnixAcceptor> acceptor, std::string address,
                   std::unique_ptr<SocketFile> file)
    : acceptor_(std::move(acceptor)), address_(std::move(address)), file_(std::move(file)) {}

Listener::~Listener() = default;
Listener::Listener(Listener&&) noexcept = default;

Result<Listener> Listener::open(const asio::any_io_executor& executor, const Endpoint& endpoint) {
    return endpoint.kind == Endpoint::Kind::kTcp ? open_tcp(executor, endpoint)
                                                 : open_unix(executor, endpoint);
}

Result<Listener> Listener::open_tcp(const asio::any_io_executor& executor, const Endpoint& endpoint) {
    TcpAcceptor acceptor(executor);
    const tcp::endpoint address(asio::ip::make_address(endpoint.host), endpoint.port);
    error_code error;
    acceptor.open(address.protocol(), error);
    // Connections of a killed predecessor may linger; a living listener still makes bind() fail.
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(address, error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (error) return listen_error(format_endpoint(endpoint), error);
    Endpoint real = endpoint;
    real.port = acceptor.local_endpoint().port();
    return Listener(std::move(acceptor), format_endpoint(real), nullptr);
}

Result<Listener> Listener::open_unix(const asio::any_io_executor& executor, const Endpoint& endpoint) {
    const Occupant occupant = occupant_of(endpoint.path);
    if (occupant == Occupant::kOtherFile)
        return fail(ErrorCode::kAlreadyExists, fmt::format("listen on {}: there is a file that is no socket",
                                                           format_endpoint(endpoint)));
    if (occupant == Occupant::kDeadSocket) unlink(endpoint.path.c_str());
    UnixAcceptor acceptor(executor);
    const UnixStream::endpoint address(endpoint.path);
    error_code error;
    acceptor.open(address.protocol(), error);
    if (!error) acceptor.bind(address, error);
    struct stat status{};
    if (!error && (chmod(endpoint.path.c_str(), 0600) != 0 || lstat(endpoint.path.c_str(), &status) != 0))
        error = error_code(errno, boost::system::system_category());
    if (!error) acceptor.listen(UnixAcceptor::max_listen_connections, error);
    if (error) return listen_error(format_endpoint(endpoint), error);
    std::unique_ptr<SocketFile> file(new SocketFile{endpoint.path, status.st_dev, status.st_ino});
    return Listener(std::move(acceptor), format_endpoint(endpoint), std::move(file));
}

asio::awaitable<Result<StreamSocket>> Listener::accept() {
    error_code error;
    std::optional<StreamSocket> socket;
    if (auto* acceptor = std::get_if<TcpAcceptor>(&acceptor_)) {
        tcp::socket accepted =
            co_await acceptor->async_accept(asio::redirect_error(asio::use_awaitable, error));
        if (!error) {
            error_code ignored;  // answers are small and waited for
            accepted.set_option(tcp::no_delay(true), ignored);
            keep_alive(accepted.native_handle());
            socket.emplace(std::move(accepted));
        }
    } else {
        UnixStream::socket accepted = co_await std::get<UnixAcceptor>(acceptor_).async_accept(
            asio::redirect_error(asio::use_awaitable, error));
        if (!error) socket.emplace(std::move(accepted));
    }
    if (socket) co_return *std::move(socket);
    const bool closed = error == asio::error::operation_aborted || error == asio::error::bad_descriptor;
    co_return fail(closed ? ErrorCode::kCancelled : ErrorCode::kIo,
                   fmt::format("accept on {}: {}", address_, error.message()));
}

void Listener::close() {
    error_code ignored;
    std::visit([&](auto& acceptor) { acceptor.close(ignored); }, acceptor_);
    file_.reset();
}

}  // namespace memtide::emul
