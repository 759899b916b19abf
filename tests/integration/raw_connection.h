#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace memtide::test {

// A TCP connection to 127.0.0.1 for clients that no HTTP library would be. Throws std::runtime_error when it
// cannot connect.
class RawConnection {
  public:
    explicit RawConnection(std::uint16_t port);
    ~RawConnection();
    RawConnection(RawConnection&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    RawConnection(const RawConnection&) = delete;
    RawConnection& operator=(const RawConnection&) = delete;
    RawConnection& operator=(RawConnection&&) = delete;

    // False once the peer has closed.
    bool send(std::string_view bytes);
    // Everything until the peer closes, or until 60 s have passed.
    std::string read_to_end();

  private:
    int fd_ = -1;
};

}  // namespace memtide::test
