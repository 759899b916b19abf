#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "fabric-manager/model/time.h"
#include "fabric-manager/security/role.h"

namespace memtide::fm {

// What is kept of a token. Its text, "mt_ID_SECRET", is shown once and kept nowhere: 256 random bits cannot
// be guessed from their SHA-256, so that no slow hash is needed.
struct TokenRecord {
    std::string id;    // 10 letters and digits; public
    std::string hash;  // SHA-256 of the whole text, 64 hexadecimal digits
    Role role = Role::kViewer;
    std::optional<std::string> tenant;  // of role tenant, always
    std::optional<HostId> host;         // of role agent, always
    std::string note;                   // for people
    Time created;
    std::optional<Time> expires;
    friend bool operator==(const TokenRecord&, const TokenRecord&) = default;
};

struct NewToken {
    std::string text;
    std::string id;
    std::string hash;
};
// From the system's random numbers; throws std::runtime_error when it gives none.
NewToken make_token();

// The id inside a token's text; nothing when it does not look like one.
std::optional<std::string_view> token_id(std::string_view text);
// SHA-256 in hexadecimal.
std::string hash_token(std::string_view text);
// Takes as long whatever the texts are, given their lengths.
bool same_secret(std::string_view a, std::string_view b);

// The token of "Authorization: Bearer TOKEN" (RFC 6750, 2.1); nothing when the header is of another form.
std::optional<std::string_view> bearer_token(std::string_view header);

}  // namespace memtide::fm
