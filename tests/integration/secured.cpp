#include "tests/integration/secured.h"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/process/child.h"

namespace memtide::test {

// Bound, and never listening: who says SO_REUSEADDR as well may listen there, and no connection gets it as
// its own port.
ReservedPort::ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    const bool bound = socket_ >= 0 &&
                       ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                       ::bind(socket_, generic, size) == 0 && ::getsockname(socket_, generic, &size) == 0;
    if (!bound) throw std::runtime_error("cannot get a port");
    number_ = ntohs(address.sin_port);
}

ReservedPort::~ReservedPort() { ::close(socket_); }

void Secured::run(std::vector<std::string> words) {
    process::Command command;
    command.argv = {MEMTIDE_FABRIC_MANAGER};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    const auto output = process::run(command, std::chrono::seconds(60));
    if (!output) throw std::runtime_error(output.error().message);
    if (!output->exit.succeeded())
        throw std::runtime_error(fmt::format("{} {}: {}", words.at(0), words.at(1), output->standard_error));
}

Secured::Secured(const TempFolder& folder, int hosts) : folder_(folder) {
    run({"certs", "init", certs(), "--server", "127.0.0.1", "--emulated-hosts", std::to_string(hosts)});
    run({"certs", "revoke",
         certs()});  // a list with nothing on it: the manager reads it again when it changes
    run({"token", "create", "--tokens", folder.file("tokens"), "--role", "operator", "--out",
         folder.file("operator.token")});
}

std::string Secured::url() const { return fmt::format("https://127.0.0.1:{}", port_.number()); }

std::string Secured::certs(const std::string& name) const {
    return folder_.file("certs") + (name.empty() ? "" : "/" + name);
}

std::shared_ptr<http::Credentials> Secured::client() const {
    http::CredentialFiles files;
    files.tls.ca = certs("ca.pem");
    files.token_file = folder_.file("operator.token");
    auto loaded = http::Credentials::load(std::move(files));
    if (!loaded) throw std::runtime_error(loaded.error().message);
    return *std::move(loaded);
}

FleetOptions Secured::fleet(FleetOptions options) const {
    options.manager = url();
    options.options.push_back("--agent-certs=" + certs());
    return options;
}

std::string Secured::audit() const { return read_file(folder_.file("audit.log")); }

void Secured::renew_server() const { run({"certs", "issue", certs(), "--server", "127.0.0.1"}); }
void Secured::renew_agent(const std::string& host) const {
    run({"certs", "issue", certs(), "--agent", host});
}
void Secured::revoke_agent(const std::string& host) const { run({"certs", "revoke", certs(), host}); }

}  // namespace memtide::test
