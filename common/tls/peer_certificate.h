#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/tls/openssl.h"

namespace memtide::tls {

// What a verified certificate says about its holder.
struct PeerCertificate {
    std::string common_name;             // empty when there is none, or it is no plain text
    std::vector<std::string> dns_names;  // of the subject alternative name
    std::string fingerprint;             // SHA-256 of the certificate, in hexadecimal
    friend bool operator==(const PeerCertificate&, const PeerCertificate&) = default;

    // The host names it is for: the DNS names, or the common name when there are none (RFC 6125, 6.4.4).
    [[nodiscard]] std::vector<std::string> host_names() const;
};

// Names with a NUL or bytes outside of printable ASCII are left out: they only serve to deceive.
PeerCertificate describe(X509* certificate);
// As describe(), from DER; kProtocol when it is no certificate.
Result<PeerCertificate> describe_der(std::string_view der);

}  // namespace memtide::tls
