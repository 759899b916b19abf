#include "common/tls/authority.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "common/tls/ip_address.h"
#include "common/tls/peer_certificate.h"

namespace memtide::tls {
namespace {

std::unexpected<Error> failed(std::string_view what) {
    return fail(ErrorCode::kInternal, fmt::format("{}: {}", what, take_error()));
}

KeyPtr new_key() { return KeyPtr(EVP_EC_gen("P-256")); }

// 20 bytes at most, positive (RFC 5280, 4.1.2.2).
bool set_random_serial(X509* certificate) {
    unsigned char bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
    bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);
    BIGNUM* const number = BN_bin2bn(bytes, sizeof bytes, nullptr);
    const bool done = BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nullptr;
    BN_free(number);
    return done;
}

bool set_subject(X509* certificate, const std::string& common_name) {
    return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(common_name.data()),
                                      static_cast<int>(common_name.size()), -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    if (extension == nullptr) return false;
    const bool added = X509_add_ext(certificate, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return added;
}

bool set_dates(X509* certificate, std::chrono::seconds begins, std::chrono::seconds ends) {
    return X509_gmtime_adj(X509_getm_notBefore(certificate), begins.count()) != nullptr &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), ends.count()) != nullptr;
}

// What may stand in the text that OpenSSL takes extensions from: a comma would begin another one.
bool is_name(const std::string& text) {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.' || c == '_' || c == '*';
    });
}
Result<std::string> alternative_names(const CertificateRequest& request) {
    std::string names;
    for (const std::string& name : request.dns_names) {
        if (!is_name(name))
            return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not a DNS name", name));
        names += (names.empty() ? "DNS:" : ",DNS:") + name;
    }
    for (const std::string& address : request.addresses) {
        if (!is_ip_address(address))
            return fail(ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not an IP address", address));
        names += (names.empty() ? "IP:" : ",IP:") + address;
    }
    return names;
}

template <typename Write>
Result<std::string> to_pem(Write write) {
    const BioPtr memory(BIO_new(BIO_s_mem()));
    if (write(memory.get()) != 1) return failed("write PEM");
    char* text = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &text);
    return std::string(text, static_cast<std::size_t>(size));
}

Result<CertificateAndKey> both_to_pem(X509* certificate, EVP_PKEY* key) {
    auto first = to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
    auto second = to_pem([&](BIO* bio) {
        return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
    if (!first) return std::unexpected(first.error());
    if (!second) return std::unexpected(second.error());
    return CertificateAndKey{*std::move(first), *std::move(second)};
}

BioPtr reader(const std::string& text) {
    return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

}  // namespace

Result<CertificateFacts> facts_of(const std::string& pem) {
    const X509Ptr certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
    std::tm ends{};
    if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &ends) != 1) {
        take_error();
        return fail(ErrorCode::kInvalidArgument, "not a certificate in PEM");
    }
    CertificateFacts facts;
    const ASN1_INTEGER* const serial = X509_get0_serialNumber(certificate.get());
    for (int i = 0; i < serial->length; ++i) facts.serial += fmt::format("{:02x}", serial->data[i]);
    facts.common_name = describe(certificate.get()).common_name;
    if ((X509_get_extended_key_usage(certificate.get()) & XKU_SSL_CLIENT) != 0)
        facts.use = CertificateRequest::Use::kClient;
    facts.ends = std::chrono::system_clock::from_time_t(::timegm(&ends));
    return facts;
}

Result<Authority> Authority::create(const std::string& common_name, std::chrono::seconds lifetime) {
    KeyPtr key = new_key();
    X509Ptr certificate(X509_new());
    X509* const raw = certificate.get();
    if (!key || !certificate) return failed("make a CA");
    const bool made = X509_set_version(raw, X509_VERSION_3) == 1 && set_random_serial(raw) &&
                      set_subject(raw, common_name) && set_dates(raw, std::chrono::seconds(-300), lifetime) &&
                      X509_set_issuer_name(raw, X509_get_subject_name(raw)) == 1 &&
                      X509_set_pubkey(raw, key.get()) == 1 &&
                      add_extension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                      add_extension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                      add_extension(raw, raw, NID_subject_key_identifier, "hash") &&
                      X509_sign(raw, key.get(), EVP_sha256()) > 0;
    if (!made) return failed("make a CA");
    return Authority(std::move(certificate), std::move(key));
}

Result<Authority> Authority::from_pem(const CertificateAndKey& pem) {
    X509Ptr certificate(PEM_read_bio_X509(reader(pem.certificate).get(), nullptr, nullptr, nullptr));
    KeyPtr key(PEM_read_bio_PrivateKey(reader(pem.key).get(), nullptr, nullptr, nullptr));
    if (!certificate || !key || X509_check_ca(certificate.get()) != 1 ||
        X509_check_private_key(certificate.get(), key.get()) != 1) {
        take_error();
        return fail(ErrorCode::kInvalidArgument, "not the certificate and the key of a CA");
    }
    return Authority(std::move(certificate), std::move(key));
}

Result<CertificateAndKey> Authority::issue(const CertificateRequest& request) const {
    const auto names = alternative_names(request);
    if (!names) return std::unexpected(names.error());
    if (request.common_name.empty() || request.common_name.size() > 64)
        return fail(ErrorCode::kInvalidArgument, "a certificate's common name has 1 to 64 characters");
    const KeyPtr key = new_key();
    const X509Ptr certificate(X509_new());
    X509* const raw = certificate.get();
    X509* const issuer = certificate_.get();
    if (!key || !certificate) return failed("issue a certificate");
    const bool server = request.use == CertificateRequest::Use::kServer;
    const bool made = X509_set_version(raw, X509_VERSION_3) == 1 && set_random_serial(raw) &&
                      set_subject(raw, request.common_name) && set_dates(raw, request.begins, request.ends) &&
                      X509_set_issuer_name(raw, X509_get_subject_name(issuer)) == 1 &&
                      X509_set_pubkey(raw, key.get()) == 1 &&
                      add_extension(raw, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                      add_extension(raw, issuer, NID_key_usage, "critical,digitalSignature") &&
                      add_extension(raw, issuer, NID_ext_key_usage, server ? "serverAuth" : "clientAuth") &&
                      add_extension(raw, issuer, NID_authority_key_identifier, "keyid") &&
                      (names->empty() || add_extension(raw, issuer, NID_subject_alt_name, *names)) &&
                      X509_sign(raw, key_.get(), EVP_sha256()) > 0;
    if (!made) return failed("issue a certificate");
    return both_to_pem(raw, key.get());
}

Result<CertificateAndKey> Authority::pem() const { return both_to_pem(certificate_.get(), key_.get()); }

Result<std::string> Authority::revoke(const std::vector<std::string>& certificates,
                                      std::chrono::seconds lifetime) const {
    const CrlPtr list(X509_CRL_new());
    ASN1_TIME* const now = X509_gmtime_adj(nullptr, -300);
    ASN1_TIME* const later = X509_gmtime_adj(nullptr, lifetime.count());
    bool made = X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) == 1 &&
                X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(certificate_.get())) == 1 &&
                X509_CRL_set1_lastUpdate(list.get(), now) == 1 &&
                X509_CRL_set1_nextUpdate(list.get(), later) == 1;
    for (const std::string& pem : certificates) {
        const X509Ptr certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
        X509_REVOKED* const entry = X509_REVOKED_new();
        made = made && certificate &&
               X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate.get())) == 1 &&
               X509_REVOKED_set_revocationDate(entry, now) == 1 &&
               X509_CRL_add0_revoked(list.get(), entry) == 1;
    }
    ASN1_TIME_free(now);
    ASN1_TIME_free(later);
    made = made && X509_CRL_sort(list.get()) == 1 && X509_CRL_sign(list.get(), key_.get(), EVP_sha256()) > 0;
    if (!made) return failed("make a revocation list");
    return to_pem([&](BIO* bio) { return PEM_write_bio_X509_CRL(bio, list.get()); });
}

}  // namespace memtide::tls
