#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/tls/files.h"
#include "common/tls/session.h"

namespace memtide::tls {

struct ServerFiles {
    std::string certificate;  // PEM, with the chain behind it
    std::string key;          // PEM
    std::string client_ca;    // whose certificates clients may show; empty: nobody is asked for one
    std::string revoked;      // revocation lists of those CAs; may be empty
    bool client_certificate_required = false;  // else a client may also come without one
    bool only_tls_1_3 = false;                 // else TLS 1.2 is spoken, too
};

// A server's certificate and whom it trusts. Sessions that exist keep what they began with when the files are
// read again. Not thread safe.
class ServerContext {
  public:
    // kInvalidArgument, kPermission, kIo: the file and what is wrong with it.
    static Result<std::shared_ptr<ServerContext>> load(ServerFiles files);

    // Reads the files again. When they cannot be used, the old ones stay in use.
    Result<> reload();
    // As reload() when a file has changed since they were read; false: none has, or half of a pair of files
    // is being replaced (tells of a mistake only once the files have stood still between two calls).
    Result<bool> reload_if_changed();

    [[nodiscard]] std::unique_ptr<Session> make_session(int fd) const;
    // Grows whenever files were read again: sessions of before were let in by what was trusted then.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }
    [[nodiscard]] const ServerFiles& files() const { return files_; }

  private:
    explicit ServerContext(ServerFiles files) : files_(std::move(files)) {}
    [[nodiscard]] FileStamps stamps() const;

    const ServerFiles files_;
    SslContextPtr context_;
    FileStamps loaded_;
    FileStamps seen_;
    std::uint64_t generation_ = 0;
};

}  // namespace memtide::tls
