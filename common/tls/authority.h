#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/tls/openssl.h"

namespace memtide::tls {

struct CertificateRequest {
    std::string common_name{};
    std::vector<std::string> dns_names{};
    std::vector<std::string> addresses{};  // IP addresses
    enum class Use { kServer, kClient } use = Use::kServer;
    std::chrono::seconds begins{-300};  // from now; the past makes up for clocks that differ
    std::chrono::seconds ends{std::chrono::hours(24 * 365)};
};

struct CertificateAndKey {
    std::string certificate;  // PEM
    std::string key;          // PEM, PKCS #8
};

// What a certificate is, of those that an Authority issues.
struct CertificateFacts {
    std::string serial;       // hexadecimal
    std::string common_name;  // empty when there is none
    CertificateRequest::Use use = CertificateRequest::Use::kServer;
    std::chrono::system_clock::time_point ends;
};
// kInvalidArgument when it is no certificate in PEM. Thread safe.
Result<CertificateFacts> facts_of(const std::string& pem);

// A small certificate authority (ECDSA on P-256) for a rack that has no other. What it issues can be used for
// one purpose only, so that no agent passes for a server.
class Authority {
  public:
    static Result<Authority> create(const std::string& common_name, std::chrono::seconds lifetime);
    // What pem() gave before. kInvalidArgument when it is no CA.
    static Result<Authority> from_pem(const CertificateAndKey& pem);

    // kInvalidArgument when a name or an address cannot stand in a certificate.
    [[nodiscard]] Result<CertificateAndKey> issue(const CertificateRequest& request) const;
    [[nodiscard]] Result<CertificateAndKey> pem() const;
    // A revocation list in PEM with these certificates (PEM) on it, valid for `lifetime`.
    [[nodiscard]] Result<std::string> revoke(const std::vector<std::string>& certificates,
                                             std::chrono::seconds lifetime) const;

  private:
    Authority(X509Ptr certificate, KeyPtr key) : certificate_(std::move(certificate)), key_(std::move(key)) {}
    X509Ptr certificate_;
    KeyPtr key_;
};

}  // namespace memtide::tls
