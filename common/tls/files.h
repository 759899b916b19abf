#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/tls/openssl.h"

namespace memtide::tls {

// Loading of PEM files into a context. Every error names the file and says what is wrong with it.

// The certificate with the chain behind it. kInvalidArgument when it has expired or is not valid yet.
Result<> use_certificate(SSL_CTX* context, const std::string& path);
// The key that belongs to the certificate in `certificate_path`, which must be loaded already. kPermission
// when others than its owner and group may read the key.
Result<> use_key(SSL_CTX* context, const std::string& path, const std::string& certificate_path);
// Peers must have a certificate of one of these issuers.
Result<> trust(SSL_CTX* context, const std::string& path);
// Certificates on these revocation lists are refused; each issuer in use must have a list.
Result<> use_revocation_lists(SSL_CTX* context, const std::string& path);

// Tells whether files have changed since it was taken: by inode, size and time of change.
class FileStamps {
  public:
    FileStamps() = default;
    explicit FileStamps(const std::vector<std::string>& paths);
    friend bool operator==(const FileStamps&, const FileStamps&) = default;

  private:
    struct Stamp {
        std::uint64_t device = 0;
        std::uint64_t inode = 0;
        std::int64_t size = -1;  // -1: not there
        std::int64_t changed_ns = 0;
        friend bool operator==(const Stamp&, const Stamp&) = default;
    };
    std::vector<Stamp> stamps_;
};

}  // namespace memtide::tls
