#include "common/tls/session.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "common/tls/ip_address.h"
#include "common/tls/socket_bio.h"

namespace memtide::tls {
namespace {

// OpenSSL takes int.
int bounded(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

}  // namespace

Session::Session(SSL_CTX* context, int fd, bool is_server, const std::string& server_name)
    : ssl_(SSL_new(context)) {
    if (!ssl_) return;
    BioPtr bio = make_socket_bio(fd);
    SSL_set_bio(ssl_.get(), bio.get(), bio.get());
    (void)bio.release();
    // Buffers are given back while nothing is under way; a partial write is no mistake.
    SSL_set_mode(ssl_.get(), SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (is_server) {
        SSL_set_accept_state(ssl_.get());
        return;
    }
    SSL_set_connect_state(ssl_.get());
    if (is_ip_address(server_name)) {
        X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), server_name.c_str());
    } else if (!server_name.empty()) {
        SSL_set_tlsext_host_name(ssl_.get(), server_name.c_str());
        SSL_set_hostflags(ssl_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
        SSL_set1_host(ssl_.get(), server_name.c_str());
    }
}

Session::Status Session::judge(int result) {
    const int system_error = errno;
    switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_NONE:
            return Status::kDone;
        case SSL_ERROR_WANT_READ:
            return Status::kWantRead;
        case SSL_ERROR_WANT_WRITE:
            return Status::kWantWrite;
        case SSL_ERROR_ZERO_RETURN:
            return Status::kEnd;
        case SSL_ERROR_SYSCALL:
            ERR_clear_error();
            failure_ =
                result == 0 || system_error == 0 ? "the connection ended" : std::strerror(system_error);
            return Status::kFailed;
        default:
            break;
    }
    const unsigned long error = ERR_peek_error();
    was_plain_http_ = ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_HTTP_REQUEST;
    const bool ended = ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    const bool unverified = ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED;
    failure_ = ended ? "the connection ended" : take_error();
    ERR_clear_error();
    if (unverified) {
        failure_ += ": ";
        failure_ += X509_verify_cert_error_string(verify_result());
    }
    return Status::kFailed;
}

Session::Status Session::handshake() {
    if (!ssl_) return Status::kFailed;
    ERR_clear_error();
    errno = 0;
    return judge(SSL_do_handshake(ssl_.get()));
}

Session::Progress Session::read(std::span<char> into) {
    ERR_clear_error();
    errno = 0;
    const int got = SSL_read(ssl_.get(), into.data(), bounded(into.size()));
    if (got > 0) return {Status::kDone, static_cast<std::size_t>(got)};
    return {judge(got), 0};
}

Session::Progress Session::write(std::string_view text) {
    if (text.empty()) return {Status::kDone, 0};
    ERR_clear_error();
    errno = 0;
    const int put = SSL_write(ssl_.get(), text.data(), bounded(text.size()));
    if (put > 0) return {Status::kDone, static_cast<std::size_t>(put)};
    return {judge(put), 0};
}

bool Session::has_more() {
    char byte = 0;
    ERR_clear_error();
    const int got = SSL_peek(ssl_.get(), &byte, 1);
    return got > 0 || SSL_get_error(ssl_.get(), got) != SSL_ERROR_WANT_READ;
}

void Session::shutdown() {
    if (!ssl_ || !failure_.empty() || !SSL_is_init_finished(ssl_.get())) return;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
}

std::shared_ptr<const PeerCertificate> Session::peer() const {
    const X509Ptr certificate(SSL_get1_peer_certificate(ssl_.get()));
    if (!certificate || verify_result() != X509_V_OK) return nullptr;
    return std::make_shared<const PeerCertificate>(describe(certificate.get()));
}

}  // namespace memtide::tls
