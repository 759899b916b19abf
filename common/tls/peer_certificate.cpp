#include "common/tls/peer_certificate.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <openssl/x509v3.h>

namespace memtide::tls {
namespace {

// Empty when it is not plain text.
std::string plain_text(const ASN1_STRING* text) {
    if (text == nullptr) return {};
    const auto* const data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
    std::string result(data, static_cast<std::size_t>(ASN1_STRING_length(text)));
    const bool plain = std::ranges::all_of(result, [](char c) { return c > ' ' && c < '\x7f'; });
    return plain ? result : std::string();
}

std::string common_name_of(X509* certificate) {
    X509_NAME* const subject = X509_get_subject_name(certificate);
    const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0) return {};
    return plain_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

std::vector<std::string> dns_names_of(X509* certificate) {
    std::vector<std::string> result;
    auto* const names =
        static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
    for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
        const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_DNS) continue;
        if (std::string text = plain_text(name->d.dNSName); !text.empty()) result.push_back(std::move(text));
    }
    GENERAL_NAMES_free(names);
    return result;
}

}  // namespace

std::vector<std::string> PeerCertificate::host_names() const {
    if (!dns_names.empty() || common_name.empty()) return dns_names;
    return {common_name};
}

PeerCertificate describe(X509* certificate) {
    PeerCertificate result{common_name_of(certificate), dns_names_of(certificate), {}};
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) == 1)
        for (unsigned i = 0; i < size; ++i) result.fingerprint += fmt::format("{:02x}", digest[i]);
    return result;
}

Result<PeerCertificate> describe_der(std::string_view der) {
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    const X509Ptr certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
    if (!certificate) return fail(ErrorCode::kProtocol, "not a certificate: " + take_error());
    return describe(certificate.get());
}

}  // namespace memtide::tls
