#pragma once

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "common/tls/authority.h"

namespace memtide::tls {

// A folder with certificates for a test; it goes with this.
class Certificates {
  public:
    Certificates() : ca_(*Authority::create("test CA", std::chrono::hours(24))) {
        std::string name = (std::filesystem::temp_directory_path() / "memtide-tls.XXXXXX").string();
        folder_ = ::mkdtemp(name.data());
        write("ca.pem", ca_.pem()->certificate);
    }
    ~Certificates() { std::filesystem::remove_all(folder_); }
    Certificates(const Certificates&) = delete;
    Certificates& operator=(const Certificates&) = delete;

    [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
    // Puts the file in place at once, mode 0600.
    std::string write(const std::string& name, const std::string& text) const {
        const std::string fresh = path(name + ".new");
        std::ofstream(fresh) << text;
        std::filesystem::permissions(
            fresh, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
        std::filesystem::rename(fresh, path(name));
        return path(name);
    }
    // NAME.pem and NAME.key, of the CA of this folder or another one.
    void issue(const std::string& name, const CertificateRequest& request,
               const Authority* by = nullptr) const {
        const auto issued = (by == nullptr ? ca_ : *by).issue(request);
        ASSERT_TRUE(issued) << issued.error().message;
        write(name + ".key", issued->key);
        write(name + ".pem", issued->certificate);
    }
    void issue_server(const std::string& name = "server") const {
        issue(name, {.common_name = "server", .dns_names = {"localhost"}, .addresses = {"127.0.0.1"}});
    }
    void issue_client(const std::string& host) const {
        issue(host, {.common_name = host, .dns_names = {host}, .use = CertificateRequest::Use::kClient});
    }
    [[nodiscard]] const Authority& ca() const { return ca_; }

  private:
    std::filesystem::path folder_;
    Authority ca_;
};

}  // namespace memtide::tls
