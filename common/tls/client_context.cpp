#include "common/tls/client_context.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace memtide::tls {
namespace {

Result<SslContextPtr> make_context(const std::string& ca) {
    SslContextPtr context(SSL_CTX_new(TLS_client_method()));
    if (!context) return fail(ErrorCode::kInternal, "set up TLS: " + take_error());
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    if (ca.empty()) {
        SSL_CTX_set_default_verify_paths(context.get());
    } else if (auto trusted = trust(context.get(), ca); !trusted) {
        return std::unexpected(std::move(trusted.error()));
    }
    return context;
}

FileStamps own_stamps(const ClientFiles& files) { return FileStamps({files.certificate, files.key}); }

}  // namespace

// --- Whom it trusts ---

Result<std::shared_ptr<ClientTrust>> ClientTrust::load(std::string ca) {
    std::shared_ptr<ClientTrust> result(new ClientTrust(std::move(ca)));
    if (auto loaded = result->reload(); !loaded) return std::unexpected(std::move(loaded.error()));
    return result;
}

Result<> ClientTrust::reload() {
    FileStamps before({ca_});
    auto context = make_context(ca_);
    if (!context) return std::unexpected(std::move(context.error()));
    context_ = *std::move(context);
    loaded_ = std::move(before);
    return {};
}

SSL_CTX* ClientTrust::context() {
    if (FileStamps({ca_}) != loaded_) (void)reload();
    return context_.get();
}

// --- What it shows ---

Result<std::shared_ptr<ClientContext>> ClientContext::load(ClientFiles files,
                                                           std::shared_ptr<ClientTrust> trust) {
    if (files.certificate.empty() != files.key.empty())
        return fail(ErrorCode::kInvalidArgument,
                    "a client certificate needs its key, and a key its certificate");
    if (!trust) {
        auto own = ClientTrust::load(files.ca);
        if (!own) return std::unexpected(std::move(own.error()));
        trust = *std::move(own);
    }
    std::shared_ptr<ClientContext> result(new ClientContext(std::move(files), std::move(trust)));
    if (auto loaded = result->reload(); !loaded) return std::unexpected(std::move(loaded.error()));
    return result;
}

Result<> ClientContext::reload() {
    FileStamps before = own_stamps(files_);
    if (!files_.certificate.empty()) {
        auto identity = read_identity(files_.certificate, files_.key);
        if (!identity) return std::unexpected(std::move(identity.error()));
        const SslPtr probe(SSL_new(trust_->context()));
        if (auto used = use_identity(probe.get(), *identity); !used)
            return std::unexpected(std::move(used.error()).with_context(files_.certificate));
        identity_ = *std::move(identity);
    }
    loaded_ = std::move(before);
    return {};
}

std::unique_ptr<Session> ClientContext::make_session(int fd, const std::string& server_name) {
    if (own_stamps(files_) != loaded_) (void)reload();
    auto session = std::make_unique<Session>(trust_->context(), fd, false, server_name);
    if (identity_.certificate && session->native() != nullptr)
        (void)use_identity(session->native(), identity_);  // has been tried when it was read
    return session;
}

std::string ClientContext::explain(Session& session, const std::string& server_name) const {
    const std::string ca = files_.ca.empty() ? "the system's CAs" : files_.ca;
    switch (session.verify_result()) {
        case X509_V_OK:
            break;
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            return fmt::format(
                "the server's certificate is not for {}; use a name or address that it is for, or have one "
                "issued for this one",
                server_name);
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return "the server's certificate has expired; it needs a new one (or is this machine's clock "
                   "wrong?)";
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return "the server's certificate is not valid yet; is this machine's clock right?";
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:
            return fmt::format(
                "the server's certificate was not issued by a CA in {}; give the right one with --ca", ca);
        default:
            return fmt::format("the server's certificate is not accepted: {}",
                               X509_verify_cert_error_string(session.verify_result()));
    }
    const std::string_view why = session.failure();
    if (why.find("wrong version number") != std::string_view::npos ||
        why.find("packet length too long") != std::string_view::npos ||
        why.find("unexpected message") != std::string_view::npos)
        return "it does not speak TLS; is it http:// in place of https://?";
    if (why.find("certificate required") != std::string_view::npos ||
        why.find("handshake failure") != std::string_view::npos)
        return "it wants a client certificate; give one with --cert and --key";
    if (why.find("alert") != std::string_view::npos && !files_.certificate.empty())
        return fmt::format("it did not accept the client certificate {}: {}", files_.certificate, why);
    return std::string(why);
}

}  // namespace memtide::tls
