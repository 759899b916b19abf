#include "common/http/credentials.h"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include <fmt/format.h>
#include <sys/stat.h>

namespace memtide::http {

Result<std::string> read_token_file(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return fail_errno("open the token file", path, errno);
    if (S_ISDIR(status.st_mode)) return fail_errno("read the token file", path, EISDIR);
    if ((status.st_mode & S_IRWXO) != 0)
        return fail(ErrorCode::kPermission,
                    fmt::format("the token file {} is readable by everyone; chmod 600 {}", path, path));
    std::ifstream file(path);
    if (!file) return fail_errno("open the token file", path, errno);
    std::string token;
    std::getline(file, token);
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!token.empty() && blank(token.back())) token.pop_back();
    token.erase(token.begin(), std::ranges::find_if_not(token, blank));
    const bool plain = std::ranges::all_of(token, [](char c) { return c > ' ' && c < '\x7f'; });
    if (token.empty() || token.size() > 4096 || !plain)
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("the token file {} must have a token, and nothing else, on its first line", path));
    return token;
}

Result<std::shared_ptr<Credentials>> Credentials::load(CredentialFiles files,
                                                       std::shared_ptr<tls::ClientTrust> trust) {
    std::shared_ptr<Credentials> result(new Credentials(std::move(files), std::move(trust)));
    const CredentialFiles& given = result->files_;
    if (!given.tls.ca.empty() || !given.tls.certificate.empty() || !given.tls.key.empty())
        if (const auto loaded = result->tls(); !loaded) return std::unexpected(loaded.error());
    if (given.token_file.empty()) return result;
    result->token_stamp_ = tls::FileStamps({given.token_file});
    auto token = read_token_file(given.token_file);
    if (!token) return std::unexpected(std::move(token.error()));
    result->token_ = *std::move(token);
    return result;
}

std::shared_ptr<Credentials> Credentials::none() {
    return std::shared_ptr<Credentials>(new Credentials(CredentialFiles{}));
}

Result<std::shared_ptr<tls::ClientContext>> Credentials::tls() {
    if (!tls_) {
        auto loaded = tls::ClientContext::load(files_.tls, trust_);
        if (!loaded) return std::unexpected(std::move(loaded.error()));
        tls_ = *std::move(loaded);
    }
    return tls_;
}

const std::string& Credentials::token() {
    if (files_.token_file.empty()) return token_;
    tls::FileStamps now({files_.token_file});
    if (now == token_stamp_) return token_;
    if (auto token = read_token_file(files_.token_file)) {
        token_ = *std::move(token);
        token_stamp_ = std::move(now);
    }
    return token_;
}

}  // namespace memtide::http
