#include "fabric-manager/security/authenticator.h"

#include <utility>

#include <fmt/format.h>

namespace memtide::fm {
namespace {

PrincipalPtr principal_of(const TokenRecord& token) {
    auto principal = std::make_shared<Principal>();
    principal->name = "token " + token.id;
    principal->role = token.role;
    principal->tenant = token.tenant;
    if (token.host) principal->hosts.push_back(*token.host);
    principal->token = token.id;
    return principal;
}

// Whoever the CA gave a client certificate is an agent of the hosts that are named in it.
PrincipalPtr principal_of(const tls::PeerCertificate& certificate) {
    auto principal = std::make_shared<Principal>();
    principal->name = "certificate " + certificate.common_name;
    principal->role = Role::kAgent;
    for (const std::string& name : certificate.host_names()) principal->hosts.emplace_back(name);
    return principal;
}

}  // namespace

Result<Authenticator> Authenticator::open(std::string tokens_path) {
    Authenticator result(std::move(tokens_path));
    if (auto loaded = result.load(); !loaded) return std::unexpected(std::move(loaded.error()));
    return result;
}

Result<> Authenticator::load() {
    tls::FileStamps before({path_});
    auto tokens = load_tokens(path_);
    stamp_ = std::move(before);  // also of a file that is wrong: it is told once
    if (!tokens) return std::unexpected(std::move(tokens.error()));
    tokens_.clear();
    for (TokenRecord& token : *tokens) {
        PrincipalPtr principal = principal_of(token);
        std::string id = token.id;
        tokens_.emplace(std::move(id), Known{std::move(token), std::move(principal)});
    }
    return {};
}

Result<bool> Authenticator::refresh() {
    if (tls::FileStamps({path_}) == stamp_) return false;
    if (auto loaded = load(); !loaded) return std::unexpected(std::move(loaded.error()));
    return true;
}

std::expected<PrincipalPtr, Authenticator::Refusal> Authenticator::identify_token(std::string_view text,
                                                                                  Time now) const {
    constexpr const char* kNotKnown = "the token is not known here; it may have been revoked";
    const auto id = token_id(text);
    if (!id) return std::unexpected(Refusal{"not a token", kNotKnown});
    const auto found = tokens_.find(*id);
    // As much work as with one that is known, so that the time tells nothing.
    static const std::string nobody(64, '0');
    const std::string& hash = found == tokens_.end() ? nobody : found->second.record.hash;
    const bool same = same_secret(hash_token(text), hash);
    if (found == tokens_.end()) return std::unexpected(Refusal{fmt::format("no token {}", *id), kNotKnown});
    if (!same) return std::unexpected(Refusal{fmt::format("wrong secret for token {}", *id), kNotKnown});
    if (const auto expires = found->second.record.expires; expires && *expires <= now)
        return std::unexpected(Refusal{fmt::format("token {} has expired", *id), "the token has expired"});
    return found->second.principal;
}

std::expected<PrincipalPtr, Authenticator::Refusal> Authenticator::identify(const http::Request& request,
                                                                            Time now) const {
    if (const auto header = request.header("Authorization")) {
        const auto text = bearer_token(*header);
        if (!text)
            return std::unexpected(Refusal{"another kind of Authorization",
                                           "send Authorization: Bearer TOKEN, and one of them"});
        return identify_token(*text, now);
    }
    if (request.certificate) return principal_of(*request.certificate);
    return anonymous_principal();
}

bool Authenticator::is_still_valid(const Principal& principal, Time now) const {
    if (principal.token.empty()) return true;
    const auto found = tokens_.find(principal.token);
    if (found == tokens_.end()) return false;
    const auto& expires = found->second.record.expires;
    return !expires || *expires > now;
}

}  // namespace memtide::fm
