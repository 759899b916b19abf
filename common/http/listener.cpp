#include "common/http/listener.h"

#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/no_throw.h"

namespace memtide::http {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

using GenericSocket = asio::generic::stream_protocol::socket;

std::unexpected<Error> cannot_listen(const std::string& address, const error_code& error) {
    if (error == asio::error::address_in_use)
        return fail(
            ErrorCode::kUnavailable,
            fmt::format("listen on {}: the address is in use; stop what listens there or choose another",
                        address));
    if (error == error_code(EADDRNOTAVAIL, boost::system::system_category()))
        return fail(ErrorCode::kUnavailable,
                    fmt::format("listen on {}: this machine has no such address", address));
    return fail_errno("listen on", address, error.value());
}

class TcpListener : public Listener {
  public:
    TcpListener(asio::any_io_executor executor) : acceptor_(std::move(executor)) {}

    Result<> open(const std::string& address, const asio::ip::tcp::endpoint& endpoint) {
        error_code error;
        acceptor_.open(endpoint.protocol(), error);
        if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
        if (!error) acceptor_.bind(endpoint, error);
        if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
        if (error) return cannot_listen(address, error);
        port_ = acceptor_.local_endpoint(error).port();
        return {};
    }
    asio::awaitable<error_code> accept(GenericSocket& socket) override {
        const auto [error] = co_await acceptor_.async_accept(socket, kNoThrow);
        co_return error;
    }
    [[nodiscard]] std::uint16_t port() const override { return port_; }
    void close() override {
        error_code ignored;
        acceptor_.close(ignored);
    }

  private:
    asio::ip::tcp::acceptor acceptor_;
    std::uint16_t port_ = 0;
};

// A socket file that nobody listens on any more is in the way of whoever comes next.
void remove_stale_socket(const asio::local::stream_protocol::endpoint& endpoint,
                         const asio::any_io_executor& executor) {
    struct stat status{};
    if (::lstat(endpoint.path().c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
    asio::local::stream_protocol::socket probe(executor);
    error_code error;
    probe.connect(endpoint, error);
    if (error == asio::error::connection_refused) ::unlink(endpoint.path().c_str());
}

class UnixListener : public Listener {
  public:
    UnixListener(asio::any_io_executor executor) : acceptor_(std::move(executor)) {}
    ~UnixListener() override { UnixListener::close(); }

    Result<> open(const std::string& address, std::string path) {
        const asio::local::stream_protocol::endpoint endpoint(path);
        remove_stale_socket(endpoint, acceptor_.get_executor());
        error_code error;
        acceptor_.open(endpoint.protocol(), error);
        if (!error) acceptor_.bind(endpoint, error);
        if (error) return cannot_listen(address, error);
        path_ = std::move(path);
        acceptor_.listen(asio::socket_base::max_listen_connections, error);
        if (error) return cannot_listen(address, error);
        return {};
    }
    asio::awaitable<error_code> accept(GenericSocket& socket) override {
        const auto [error] = co_await acceptor_.async_accept(socket, kNoThrow);
        co_return error;
    }
    [[nodiscard]] std::uint16_t port() const override { return 0; }
    void close() override {
        error_code ignored;
        acceptor_.close(ignored);
        if (!path_.empty()) ::unlink(std::exchange(path_, {}).c_str());
    }

  private:
    asio::local::stream_protocol::acceptor acceptor_;
    std::string path_;  // of the file that is ours to remove
};

Result<asio::ip::tcp::endpoint> parse_endpoint(const std::string& address) {
    const auto bad = [&address] {
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("\"{}\" is not an address to listen on; write 127.0.0.1:8080, [::1]:8080 or "
                                "unix:/PATH",
                                address));
    };
    const auto colon = address.rfind(':');
    if (colon == std::string::npos || colon == 0) return bad();
    std::string host = address.substr(0, colon);
    if (host.front() == '[' && host.back() == ']')
        host = host.substr(1, host.size() - 2);
    else if (host.find(':') != std::string::npos)
        return bad();
    if (host == "localhost") host = "127.0.0.1";
    std::uint16_t port = 0;
    const char* const end = address.data() + address.size();
    const auto [stop, status] = std::from_chars(address.data() + colon + 1, end, port);
    error_code error;
    const auto ip = asio::ip::make_address(host, error);
    if (error || status != std::errc{} || stop != end) return bad();
    return asio::ip::tcp::endpoint(ip, port);
}

}  // namespace

Result<std::shared_ptr<Listener>> Listener::open(asio::any_io_executor executor, const std::string& address) {
    constexpr std::string_view kUnix = "unix:";
    if (address.starts_with(kUnix)) {
        std::string path = address.substr(kUnix.size());
        if (path.starts_with("//")) path.erase(0, 2);  // unix:///path
        constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
        if (path.empty() || path.size() > kLongest)
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("\"{}\" must name a path of 1 to {} bytes", address, kLongest));
        auto listener = std::make_shared<UnixListener>(std::move(executor));
        if (auto opened = listener->open(address, std::move(path)); !opened)
            return std::unexpected(std::move(opened.error()));
        return listener;
    }
    const auto endpoint = parse_endpoint(address);
    if (!endpoint) return std::unexpected(endpoint.error());
    auto listener = std::make_shared<TcpListener>(std::move(executor));
    if (auto opened = listener->open(address, *endpoint); !opened)
        return std::unexpected(std::move(opened.error()));
    return listener;
}

}  // namespace memtide::http
