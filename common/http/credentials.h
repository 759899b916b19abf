#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/tls/client_context.h"

namespace memtide::http {

// What a client shows to a server, and whom it believes.
struct CredentialFiles {
    tls::ClientFiles tls;    // for https:// only
    std::string token_file;  // its first line is sent as "Authorization: Bearer ..."; may be empty
};

// The files above, read. What changes on the disk is used from the next connection or request on. Not thread
// safe.
class Credentials {
  public:
    // `trust`: as for tls::ClientContext::load(). kInvalidArgument, kPermission, kIo: the file and what is
    // wrong with it. No message has the token in it.
    static Result<std::shared_ptr<Credentials>> load(CredentialFiles files,
                                                     std::shared_ptr<tls::ClientTrust> trust = nullptr);
    // The system's CAs and no token.
    static std::shared_ptr<Credentials> none();

    // Null, with none(), until the first use of TLS.
    [[nodiscard]] Result<std::shared_ptr<tls::ClientContext>> tls();
    // The token of now, empty when there is none. A file that cannot be read any more leaves the last one.
    [[nodiscard]] const std::string& token();

  private:
    explicit Credentials(CredentialFiles files, std::shared_ptr<tls::ClientTrust> trust = nullptr)
        : files_(std::move(files)), trust_(std::move(trust)) {}

    const CredentialFiles files_;
    std::shared_ptr<tls::ClientTrust> trust_;  // null: its own
    std::shared_ptr<tls::ClientContext> tls_;
    std::string token_;
    tls::FileStamps token_stamp_;
};

// The token in a file: its first line without the white space around it. kPermission when everyone may read
// the file, kInvalidArgument when there is none in it.
Result<std::string> read_token_file(const std::string& path);

}  // namespace memtide::http
