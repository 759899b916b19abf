#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/tls/files.h"
#include "common/tls/session.h"

namespace memtide::tls {

struct ClientFiles {
    std::string ca;           // whose certificates servers must have; empty: the system's CAs
    std::string certificate;  // this client's own, with the chain behind it; may be empty
    std::string key;          // its key
};

// Whom clients trust. What OpenSSL keeps for it takes some 20 KiB: many clients of one process share it. Not
// thread safe.
class ClientTrust {
  public:
    // `ca` as in ClientFiles. kInvalidArgument, kIo: the file and what is wrong with it.
    static Result<std::shared_ptr<ClientTrust>> load(std::string ca);
    // Reads the file again when it has changed; when it cannot be used, the old one stays in use.
    [[nodiscard]] SSL_CTX* context();

  private:
    explicit ClientTrust(std::string ca) : ca_(std::move(ca)) {}
    Result<> reload();

    const std::string ca_;
    SslContextPtr context_;
    FileStamps loaded_;
};

// Whom a client trusts and what it shows. Not thread safe.
class ClientContext {
  public:
    // `trust`: that of `files.ca` when clients are to share it. kInvalidArgument, kPermission, kIo: the file
    // and what is wrong with it.
    static Result<std::shared_ptr<ClientContext>> load(ClientFiles files,
                                                       std::shared_ptr<ClientTrust> trust = nullptr);

    // For a connection to `server_name` (a DNS name or an IP address). Files that have changed are read
    // first; when they cannot be used, the old ones stay in use.
    [[nodiscard]] std::unique_ptr<Session> make_session(int fd, const std::string& server_name);
    [[nodiscard]] const ClientFiles& files() const { return files_; }
    // What is shown from the next session on; null: nothing.
    [[nodiscard]] X509* certificate() const { return identity_.certificate.get(); }
    // Why the session with `server_name` failed, with what to do about it.
    [[nodiscard]] std::string explain(Session& session, const std::string& server_name) const;

  private:
    ClientContext(ClientFiles files, std::shared_ptr<ClientTrust> trust)
        : files_(std::move(files)), trust_(std::move(trust)) {}
    Result<> reload();

    const ClientFiles files_;
    std::shared_ptr<ClientTrust> trust_;
    Identity identity_;
    FileStamps loaded_;
};

}  // namespace memtide::tls
