#pragma once

#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/tls/files.h"
#include "common/tls/session.h"

namespace memtide::tls {

struct ClientFiles {
    std::string ca;           // whose certificates servers must have; empty: the system's CAs
    std::string certificate;  // this client's own, with the chain behind it; may be empty
    std::string key;          // its key
};

// Whom a client trusts and what it shows. Not thread safe.
class ClientContext {
  public:
    // kInvalidArgument, kPermission, kIo: the file and what is wrong with it.
    static Result<std::shared_ptr<ClientContext>> load(ClientFiles files);

    // For a connection to `server_name` (a DNS name or an IP address). Files that have changed are read
    // first; when they cannot be used, the old ones stay in use.
    [[nodiscard]] std::unique_ptr<Session> make_session(int fd, const std::string& server_name);
    [[nodiscard]] const ClientFiles& files() const { return files_; }
    // Why the session with `server_name` failed, with what to do about it.
    [[nodiscard]] std::string explain(Session& session, const std::string& server_name) const;

  private:
    explicit ClientContext(ClientFiles files) : files_(std::move(files)) {}
    Result<> reload();

    const ClientFiles files_;
    SslContextPtr context_;
    FileStamps loaded_;
};

}  // namespace memtide::tls
