#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/http/credentials.h"
#include "tests/integration/daemons.h"
#include "tests/integration/temp_folder.h"

namespace memtide::test {

// A TCP port of 127.0.0.1 that nobody else gets while this lives, and on which a daemon can listen again and
// again.
class ReservedPort {
  public:
    ReservedPort();
    ~ReservedPort();
    ReservedPort(const ReservedPort&) = delete;
    ReservedPort& operator=(const ReservedPort&) = delete;
    [[nodiscard]] std::uint16_t number() const { return number_; }

  private:
    int socket_ = -1;
    std::uint16_t number_ = 0;
};

// What a manager with TLS, agents' certificates and tokens needs, made by its own commands in FOLDER/certs
// and FOLDER/tokens: certificates of the manager and of host0, host1, ..., and an operator's token.
// Everything throws std::runtime_error with what the command printed when it fails.
class Secured {
  public:
    Secured(const TempFolder& folder, int hosts);

    [[nodiscard]] std::string url() const;
    [[nodiscard]] std::string certs(const std::string& name = {}) const;
    // Of a client with the operator's token.
    [[nodiscard]] std::shared_ptr<http::Credentials> client() const;
    // Those of start_fleet(), with this manager and the certificates.
    [[nodiscard]] FleetOptions fleet(FleetOptions options) const;
    [[nodiscard]] std::string audit() const;  // all of the log

    void renew_server() const;
    void renew_agent(const std::string& host) const;
    void revoke_agent(const std::string& host) const;
    // A command of the manager's program, `certs` or `token`.
    static void run(std::vector<std::string> words);

  private:
    const TempFolder& folder_;
    ReservedPort port_;
};

}  // namespace memtide::test
