#include "common/tls/server_context.h"

#include <utility>

namespace memtide::tls {
namespace {

Result<SslContextPtr> make_context(const ServerFiles& files) {
    SslContextPtr context(SSL_CTX_new(TLS_server_method()));
    if (!context) return fail(ErrorCode::kInternal, "set up TLS: " + take_error());
    SSL_CTX_set_min_proto_version(context.get(), files.only_tls_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
    // Every connection is verified against the files of now: no session is resumed.
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context.get(), 0);
    SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                           SSL_OP_CIPHER_SERVER_PREFERENCE);
    // Of TLS 1.2 only what keeps old traffic secret when the key gets out, and authenticates what it
    // encrypts.
    SSL_CTX_set_cipher_list(context.get(), "ECDHE+AESGCM:ECDHE+CHACHA20");
    const auto identity = read_identity(files.certificate, files.key);
    if (!identity) return std::unexpected(identity.error());
    if (auto used = use_identity(context.get(), *identity); !used)
        return std::unexpected(std::move(used.error()).with_context(files.certificate));
    if (files.client_ca.empty()) return context;
    if (auto trusted = trust(context.get(), files.client_ca); !trusted)
        return std::unexpected(std::move(trusted.error()));
    if (!files.revoked.empty())
        if (auto used = use_revocation_lists(context.get(), files.revoked); !used)
            return std::unexpected(std::move(used.error()));
    int mode = SSL_VERIFY_PEER;
    if (files.client_certificate_required) mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(context.get(), mode, nullptr);
    return context;
}

}  // namespace

FileStamps ServerContext::stamps() const {
    return FileStamps({files_.certificate, files_.key, files_.client_ca, files_.revoked});
}

Result<std::shared_ptr<ServerContext>> ServerContext::load(ServerFiles files) {
    std::shared_ptr<ServerContext> result(new ServerContext(std::move(files)));
    if (auto loaded = result->reload(); !loaded) return std::unexpected(std::move(loaded.error()));
    return result;
}

Result<> ServerContext::reload() {
    FileStamps before = stamps();
    auto context = make_context(files_);
    if (!context) return std::unexpected(std::move(context.error()));
    context_ = *std::move(context);
    loaded_ = std::move(before);
    ++generation_;
    return {};
}

Result<bool> ServerContext::reload_if_changed() {
    FileStamps now = stamps();
    const bool stands_still = now == seen_;
    seen_ = now;
    if (now == loaded_) return false;
    auto loaded = reload();
    if (loaded) return true;
    if (!stands_still) return false;
    loaded_ = std::move(now);  // told once
    return std::unexpected(std::move(loaded.error()));
}

std::unique_ptr<Session> ServerContext::make_session(int fd) const {
    return std::make_unique<Session>(context_.get(), fd, true);
}

}  // namespace memtide::tls
