#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/http/message.h"
#include "common/tls/files.h"
#include "fabric-manager/security/principal.h"
#include "fabric-manager/security/token_file.h"

namespace memtide::fm {

// Finds out whose request it is: by its bearer token, else by its client certificate. Not thread safe.
class Authenticator {
  public:
    // Errors as load_tokens().
    static Result<Authenticator> open(std::string tokens_path);

    // Why somebody is not let in, for the audit log; clients are not told more than `told`.
    struct Refusal {
        std::string why;
        std::string told;
    };
    // Anonymous when the request shows nothing.
    [[nodiscard]] std::expected<PrincipalPtr, Refusal> identify(const http::Request& request, Time now) const;
    // Whether what a caller once showed would still let it in: streams ask from time to time.
    [[nodiscard]] bool is_still_valid(const Principal& principal, Time now) const;

    // Reads the file again when it has changed. On an error the tokens of before stay in use, and the error
    // is told once.
    Result<bool> refresh();
    [[nodiscard]] std::size_t token_count() const { return tokens_.size(); }

  private:
    struct Known {
        TokenRecord record;
        PrincipalPtr principal;
    };
    explicit Authenticator(std::string path) : path_(std::move(path)) {}
    Result<> load();
    [[nodiscard]] std::expected<PrincipalPtr, Refusal> identify_token(std::string_view text, Time now) const;

    std::string path_;
    tls::FileStamps stamp_;
    std::map<std::string, Known, std::less<>> tokens_;
};

}  // namespace memtide::fm
