#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/tls/authority.h"
#include "fabric-manager/store/files.h"

namespace memtide::fm {

// The folder of a small CA: ca.pem and ca.key; server.pem, agent-HOST.pem and their keys, which are in use;
// a copy of every certificate that was ever issued in issued/, or in revoked/ once it is revoked; crl.pem.
// Every file is replaced as a whole, and its name is printed. One process at a time has it, further ones
// wait. Root becomes the owner of the folder first, see become_owner(). Errors: kNotFound, kPermission, kIo
// with the file.
class CertificateFolder {
  public:
    // Makes the folder when it is not there, and the CA. kAlreadyExists when there is one.
    static Result<CertificateFolder> create(const std::filesystem::path& folder,
                                            std::chrono::seconds lifetime);
    // Of a CA that is there.
    static Result<CertificateFolder> open(const std::filesystem::path& folder);

    // In place of the certificate that is there, which can still be revoked.
    [[nodiscard]] Result<> issue_server(const std::vector<std::string>& names,
                                        std::chrono::seconds lifetime) const;
    enum class Order { kOne, kOfMany };  // of many: the caller says which, and calls sync() at the end
    // kInvalidArgument when `host` is no name.
    [[nodiscard]] Result<> issue_agent(const std::string& host, std::chrono::seconds lifetime,
                                       Order order = Order::kOne) const;
    [[nodiscard]] Result<> sync() const;

    // Every certificate that was issued to the agent of `host`, is valid, and not revoked yet; answers how
    // many that were. kNotFound when none was ever issued to it.
    [[nodiscard]] Result<std::size_t> revoke_agent(const std::string& host) const;
    // Writes crl.pem with all that is revoked.
    [[nodiscard]] Result<> write_list(std::chrono::seconds lifetime) const;

    struct Entry {
        tls::CertificateFacts facts;
        bool in_use = false;   // it is server.pem or agent-HOST.pem
        bool revoked = false;  // the list has it, from its next writing on
        std::string pem{};
    };
    struct Entries {
        std::vector<Entry> certificates;      // by name, then by end
        std::vector<std::string> unreadable;  // files that are no certificate, and why
    };
    [[nodiscard]] Entries entries() const;

  private:
    CertificateFolder(std::filesystem::path folder, tls::Authority authority, File lock)
        : folder_(std::move(folder)), authority_(std::move(authority)), lock_(std::move(lock)) {}
    [[nodiscard]] Result<> put(const std::string& name, const tls::CertificateRequest& request,
                               Order order) const;
    [[nodiscard]] Result<> keep(const char* where, const std::string& pem, Order order) const;

    std::filesystem::path folder_;
    tls::Authority authority_;
    File lock_;  // of the one process that uses the folder
};

}  // namespace memtide::fm
