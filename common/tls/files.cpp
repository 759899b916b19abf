#include "common/tls/files.h"

#include <cerrno>
#include <cstdio>

#include <fmt/format.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include "common/base/file_owner.h"

namespace memtide::tls {
namespace {

Result<BioPtr> open(std::string_view what, const std::string& path) {
    const auto fd = open_regular_file(fmt::format("open the {}", what), path);
    if (!fd) return std::unexpected(fd.error());
    return BioPtr(BIO_new_fp(::fdopen(*fd, "r"), BIO_CLOSE));
}

// A key with a passphrase would ask for it on the terminal of a daemon.
int no_passphrase(char*, int, int, void*) { return -1; }

std::string time_text(const ASN1_TIME* time) {
    const BioPtr memory(BIO_new(BIO_s_mem()));
    ASN1_TIME_print(memory.get(), time);
    char* text = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &text);
    return {text, static_cast<std::size_t>(size)};
}

Result<> check_dates(X509* certificate, const std::string& path) {
    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("the certificate in {} expired on {}; put a new one there", path,
                                time_text(X509_get0_notAfter(certificate))));
    if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("the certificate in {} is not valid before {}; is the clock right?", path,
                                time_text(X509_get0_notBefore(certificate))));
    return {};
}

Result<> read_certificates(const std::string& path, Identity& into) {
    const auto file = open("certificate", path);
    if (!file) return std::unexpected(file.error());
    into.certificate.reset(PEM_read_bio_X509(file->get(), nullptr, no_passphrase, nullptr));
    if (!into.certificate)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} holds no certificate in PEM (-----BEGIN CERTIFICATE-----): {}", path,
                                take_error()));
    if (auto good = check_dates(into.certificate.get(), path); !good) return good;
    while (X509* const next = PEM_read_bio_X509(file->get(), nullptr, no_passphrase, nullptr))
        into.chain.emplace_back(next);
    take_error();  // the end of the file is one
    return {};
}

Result<KeyPtr> read_key(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0 && (status.st_mode & S_IRWXO) != 0)
        return fail(ErrorCode::kPermission,
                    fmt::format("the key {} is readable by everyone; chmod 600 {}", path, path));
    const auto file = open("key", path);
    if (!file) return std::unexpected(file.error());
    KeyPtr key(PEM_read_bio_PrivateKey(file->get(), nullptr, no_passphrase, nullptr));
    if (key) return key;
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} holds no private key in PEM without a passphrase: {}", path, take_error()));
}

// Of a context or of a session: OpenSSL has each function twice.
Result<> judge_use(bool used) {
    if (used) return {};
    return fail(ErrorCode::kInvalidArgument, "the certificate cannot be used: " + take_error());
}

}  // namespace

Result<Identity> read_identity(const std::string& certificate_path, const std::string& key_path) {
    Identity identity;
    if (auto read = read_certificates(certificate_path, identity); !read)
        return std::unexpected(std::move(read.error()));
    auto key = read_key(key_path);
    if (!key) return std::unexpected(std::move(key.error()));
    identity.key = *std::move(key);
    if (X509_check_private_key(identity.certificate.get(), identity.key.get()) == 1) return identity;
    take_error();
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("the key in {} does not belong to the certificate in {}", key_path, certificate_path));
}

Result<> use_identity(SSL_CTX* context, const Identity& identity) {
    bool used = SSL_CTX_use_certificate(context, identity.certificate.get()) == 1 &&
                SSL_CTX_use_PrivateKey(context, identity.key.get()) == 1 &&
                SSL_CTX_clear_chain_certs(context) == 1;
    for (const X509Ptr& next : identity.chain)
        used = used && SSL_CTX_add1_chain_cert(context, next.get()) == 1;
    return judge_use(used);
}

Result<> use_identity(SSL* session, const Identity& identity) {
    bool used = SSL_use_certificate(session, identity.certificate.get()) == 1 &&
                SSL_use_PrivateKey(session, identity.key.get()) == 1 && SSL_clear_chain_certs(session) == 1;
    for (const X509Ptr& next : identity.chain) used = used && SSL_add1_chain_cert(session, next.get()) == 1;
    return judge_use(used);
}

Result<> trust(SSL_CTX* context, const std::string& path) {
    const auto file = open("CA", path);
    if (!file) return std::unexpected(file.error());
    X509_STORE* const store = SSL_CTX_get_cert_store(context);
    int count = 0;
    for (;; ++count) {
        const X509Ptr issuer(PEM_read_bio_X509(file->get(), nullptr, no_passphrase, nullptr));
        if (!issuer) break;
        X509_STORE_add_cert(store, issuer.get());
        SSL_CTX_add_client_CA(context, issuer.get());
    }
    const std::string why = take_error();
    if (count > 0) return {};
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the CA file {} holds no certificate in PEM: {}", path, why));
}

Result<> use_revocation_lists(SSL_CTX* context, const std::string& path) {
    const auto file = open("revocation list", path);
    if (!file) return std::unexpected(file.error());
    X509_STORE* const store = SSL_CTX_get_cert_store(context);
    int count = 0;
    for (;; ++count) {
        const CrlPtr list(PEM_read_bio_X509_CRL(file->get(), nullptr, no_passphrase, nullptr));
        if (!list) break;
        X509_STORE_add_crl(store, list.get());
    }
    const std::string why = take_error();
    if (count == 0)
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} holds no revocation list in PEM (-----BEGIN X509 CRL-----): {}", path, why));
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    return {};
}

FileStamps::FileStamps(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        Stamp stamp;
        struct stat status{};
        if (!path.empty() && ::stat(path.c_str(), &status) == 0)
            stamp = {status.st_dev, status.st_ino, status.st_size,
                     status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec};
        stamps_.push_back(stamp);
    }
}

}  // namespace memtide::tls
