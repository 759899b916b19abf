#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/tls/openssl.h"

namespace memtide::tls {

// Loading of PEM files into a context. Every error names the file and says what is wrong with it.

// What a server or client shows: a certificate with the chain behind it, and its key.
struct Identity {
    X509Ptr certificate;
    std::vector<X509Ptr> chain;
    KeyPtr key;
};
// kInvalidArgument when the certificate has expired or is not valid yet, or the key is another one's;
// kPermission when others than its owner and group may read the key.
Result<Identity> read_identity(const std::string& certificate_path, const std::string& key_path);
// Shows it in all sessions of the context, or in this one. kInvalidArgument when OpenSSL does not take it
// (a key that is too short).
Result<> use_identity(SSL_CTX* context, const Identity& identity);
Result<> use_identity(SSL* session, const Identity& identity);
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
