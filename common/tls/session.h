#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/tls/openssl.h"
#include "common/tls/peer_certificate.h"

namespace memtide::tls {

// TLS over a non-blocking socket: every call does what can be done at once and says what to wait for. Reads
// and writes the socket itself instead of passing through Asio's buffers, which would cost an idle connection
// four times 17 KiB. Does not own the descriptor. Not thread safe.
class Session {
  public:
    enum class Status {
        kDone,
        kWantRead,   // call again once the socket is readable
        kWantWrite,  // call again once the socket is writable
        kEnd,        // the peer has said that nothing follows
        kFailed,     // failure() says why; nothing works any more
    };
    struct Progress {
        Status status = Status::kFailed;
        std::size_t bytes = 0;
    };

    // `server_name`: the name or address that a server's certificate must be for; empty on the server's side.
    Session(SSL_CTX* context, int fd, bool is_server, const std::string& server_name = {});
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    Status handshake();
    Progress read(std::span<char> into);
    Progress write(std::string_view text);
    // Whether bytes have been taken from the socket that read() has not given yet: waiting for the socket to
    // be readable would be in vain.
    [[nodiscard]] bool holds_some() const { return SSL_has_pending(ssl_.get()) == 1; }
    // Whether there is something to read, or the end, as far as can be told without waiting.
    bool has_more();
    // Tells the peer that nothing follows; does not wait for it.
    void shutdown();

    // A sentence: "certificate verify failed: certificate has expired".
    [[nodiscard]] const std::string& failure() const { return failure_; }
    // The client spoke HTTP where TLS is spoken.
    [[nodiscard]] bool was_plain_http() const { return was_plain_http_; }
    // X509_V_OK or why the peer's certificate was not accepted.
    [[nodiscard]] long verify_result() const { return SSL_get_verify_result(ssl_.get()); }
    // The peer's verified certificate, after the handshake; null when it has none.
    [[nodiscard]] std::shared_ptr<const PeerCertificate> peer() const;
    [[nodiscard]] SSL* native() { return ssl_.get(); }

  private:
    Status judge(int result);

    SslPtr ssl_;
    std::string failure_;
    bool was_plain_http_ = false;
};

}  // namespace memtide::tls
