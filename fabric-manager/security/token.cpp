#include "fabric-manager/security/token.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

namespace memtide::fm {
namespace {

constexpr std::string_view kPrefix = "mt_";  // so that scanners for leaked secrets can tell
constexpr std::size_t kIdLength = 10;
constexpr std::size_t kSecretBytes = 32;

template <std::size_t Size>
std::array<unsigned char, Size> random_bytes() {
    std::array<unsigned char, Size> bytes{};
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
        throw std::runtime_error("the system gives no random numbers");
    return bytes;
}

template <typename Bytes>
std::string to_hex(const Bytes& bytes) {
    std::string text;
    for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

}  // namespace

NewToken make_token() {
    constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";  // Crockford: no i l o u
    NewToken token;
    for (const unsigned char byte : random_bytes<kIdLength>()) token.id += kLetters[byte & 31];
    token.text = fmt::format("{}{}_{}", kPrefix, token.id, to_hex(random_bytes<kSecretBytes>()));
    token.hash = hash_token(token.text);
    return token;
}

std::optional<std::string_view> token_id(std::string_view text) {
    if (text.size() != kPrefix.size() + kIdLength + 1 + 2 * kSecretBytes || !text.starts_with(kPrefix))
        return std::nullopt;
    const std::string_view id = text.substr(kPrefix.size(), kIdLength);
    if (!std::ranges::all_of(id, is_letter_or_digit) || text[kPrefix.size() + kIdLength] != '_')
        return std::nullopt;
    return id;
}

std::string hash_token(std::string_view text) {
    std::array<unsigned char, 32> digest{};
    unsigned size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
        throw std::runtime_error("SHA-256 is not there");
    return to_hex(digest);
}

bool same_secret(std::string_view a, std::string_view b) {
    return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::string_view> bearer_token(std::string_view header) {
    constexpr std::string_view kScheme = "bearer";
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    if (header.size() <= kScheme.size() + 1 || header[kScheme.size()] != ' ' ||
        !std::ranges::equal(header.substr(0, kScheme.size()), kScheme, {}, lower))
        return std::nullopt;
    header.remove_prefix(kScheme.size());
    while (header.starts_with(' ')) header.remove_prefix(1);
    const bool plain = std::ranges::all_of(header, [](char c) { return c > ' ' && c < '\x7f'; });
    if (header.empty() || !plain) return std::nullopt;
    return header;
}

}  // namespace memtide::fm
