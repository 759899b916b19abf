#include "fabric-manager/app/certs_command.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/ids.h"
#include "common/daemon/exit_code.h"
#include "common/tls/authority.h"
#include "fabric-manager/app/exit_with.h"

namespace memtide::fm {
namespace {

namespace fs = std::filesystem;

struct CertsOptions {
    std::string folder;
    std::vector<std::string> servers;  // DNS names and IP addresses
    std::vector<std::string> agents;   // hosts
    std::string revoked;
    std::uint64_t emulated_hosts = 0;  // host0 and so on
    std::uint64_t days = 365;
};

std::chrono::seconds days(std::uint64_t count) { return std::chrono::hours(24 * count); }

enum class Order { kOne, kOfMany };  // of many: the caller says which and has them written to the disk

// In place of what is there, at once.
Result<> write_file(const fs::path& path, const std::string& text, mode_t mode, Order order = Order::kOne) {
    const std::string fresh = path.string() + ".new";
    const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return fail_errno("create", fresh, errno);
    const bool written = ::fchmod(fd, mode) == 0 &&
                         ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                         (order == Order::kOfMany || ::fsync(fd) == 0);
    const int error = errno;
    ::close(fd);
    if (!written) return fail_errno("write", fresh, error);
    if (::rename(fresh.c_str(), path.c_str()) != 0) return fail_errno("put in place", path.string(), errno);
    if (order == Order::kOne) fmt::print("{}\n", path.string());
    return {};
}

Result<std::string> read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return fail_errno("open", path.string(), errno);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<> write_pair(const fs::path& folder, const std::string& name, const tls::CertificateAndKey& pair,
                    Order order = Order::kOne) {
    // The key first: a manager that reads both meanwhile then finds a pair that does not fit, and waits.
    if (auto written = write_file(folder / (name + ".key"), pair.key, 0600, order); !written) return written;
    return write_file(folder / (name + ".pem"), pair.certificate, 0644, order);
}

Result<tls::Authority> open_authority(const fs::path& folder) {
    auto certificate = read_file(folder / "ca.pem");
    if (!certificate) return std::unexpected(certificate.error());
    auto key = read_file(folder / "ca.key");
    if (!key) return std::unexpected(key.error());
    return tls::Authority::from_pem({*std::move(certificate), *std::move(key)});
}

bool is_address(const std::string& text) {
    in6_addr parsed{};
    return ::inet_pton(AF_INET, text.c_str(), &parsed) == 1 ||
           ::inet_pton(AF_INET6, text.c_str(), &parsed) == 1;
}

Result<> issue_server(const tls::Authority& authority, const CertsOptions& options) {
    tls::CertificateRequest request;
    request.common_name = "memtide-fabric-manager";
    request.ends = days(options.days);
    for (const std::string& name : options.servers)
        (is_address(name) ? request.addresses : request.dns_names).push_back(name);
    const auto issued = authority.issue(request);
    if (!issued) return std::unexpected(issued.error());
    return write_pair(options.folder, "server", *issued);
}

Result<> issue_agent(const tls::Authority& authority, const CertsOptions& options, const std::string& host,
                     Order order = Order::kOne) {
    if (auto good = check_name(host); !good)
        return std::unexpected(std::move(good.error()).with_context(fmt::format("host \"{}\"", host)));
    tls::CertificateRequest request;
    request.common_name = host;
    request.dns_names = {host};
    request.use = tls::CertificateRequest::Use::kClient;
    request.ends = days(options.days);
    const auto issued = authority.issue(request);
    if (!issued) return std::unexpected(issued.error());
    return write_pair(options.folder, "agent-" + host, *issued, order);
}

// As memtide-cxl-emul hosts calls them. One line instead of two for each host, and one wait for the disk.
Result<> issue_emulated(const tls::Authority& authority, const CertsOptions& options) {
    for (std::uint64_t i = 0; i < options.emulated_hosts; ++i)
        if (auto issued = issue_agent(authority, options, fmt::format("host{}", i), Order::kOfMany); !issued)
            return issued;
    const int fd = ::open(options.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::syncfs(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    if (!synced) return fail_errno("write to the disk", options.folder, error);
    fmt::print("{}/agent-HOST.pem and .key of {} hosts, host0 to host{}\n", options.folder,
               options.emulated_hosts, options.emulated_hosts - 1);
    return {};
}

Result<> issue_all(const tls::Authority& authority, const CertsOptions& options) {
    if (!options.servers.empty())
        if (auto issued = issue_server(authority, options); !issued) return issued;
    for (const std::string& host : options.agents)
        if (auto issued = issue_agent(authority, options, host); !issued) return issued;
    if (options.emulated_hosts > 0) return issue_emulated(authority, options);
    return {};
}

Result<> init(const CertsOptions& options) {
    const fs::path folder(options.folder);
    if (::mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST)
        return fail_errno("create the folder", folder.string(), errno);
    if (fs::exists(folder / "ca.pem") || fs::exists(folder / "ca.key"))
        return fail(ErrorCode::kAlreadyExists,
                    fmt::format("there is a CA in {} already; `certs issue {}` issues more of it",
                                folder.string(), folder.string()));
    const auto authority = tls::Authority::create("Memtide rack CA", days(3650));
    if (!authority) return std::unexpected(authority.error());
    const auto pem = authority->pem();
    if (!pem) return std::unexpected(pem.error());
    if (auto written = write_pair(folder, "ca", *pem); !written) return written;
    CertsOptions wanted = options;
    if (wanted.servers.empty()) wanted.servers = {"localhost", "127.0.0.1", "::1"};
    return issue_all(*authority, wanted);
}

Result<> issue(const CertsOptions& options) {
    const auto authority = open_authority(options.folder);
    if (!authority) return std::unexpected(authority.error());
    if (options.servers.empty() && options.agents.empty() && options.emulated_hosts == 0)
        return fail(ErrorCode::kInvalidArgument,
                    "say what to issue: --server NAME, --agent HOST or --emulated-hosts N");
    return issue_all(*authority, options);
}

// The certificate moves to DIR/revoked, and crl.pem lists everything that is there.
Result<> revoke(const CertsOptions& options) {
    const fs::path folder(options.folder);
    const auto authority = open_authority(folder);
    if (!authority) return std::unexpected(authority.error());
    if (!options.revoked.empty()) {
        if (auto good = check_name(options.revoked); !good) return good;
        const std::string name = "agent-" + options.revoked;
        const auto certificate = read_file(folder / (name + ".pem"));
        if (!certificate) return std::unexpected(certificate.error());
        std::error_code error;
        fs::create_directory(folder / "revoked", error);
        const std::string stamp = std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
        fs::rename(folder / (name + ".pem"), folder / "revoked" / (name + "-" + stamp + ".pem"), error);
        if (error) return fail_errno("move", (folder / (name + ".pem")).string(), error.value());
        fs::remove(folder / (name + ".key"), error);
    }
    std::vector<std::string> all;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder / "revoked", error)) {
        auto certificate = read_file(entry.path());
        if (!certificate) return std::unexpected(certificate.error());
        all.push_back(*std::move(certificate));
    }
    const auto list = authority->revoke(all, days(options.days));
    if (!list) return std::unexpected(list.error());
    return write_file(folder / "crl.pem", *list, 0644);
}

}  // namespace

void add_certs_commands(CLI::App& app, std::function<int()>& command) {
    const auto options = std::make_shared<CertsOptions>();
    CLI::App* const certs = app.add_subcommand("certs", "A small CA for a rack that has no other");
    certs->require_subcommand(1);
    const auto add = [&](const char* name, const char* text, Result<> (*run)(const CertsOptions&)) {
        CLI::App* const one = certs->add_subcommand(name, text);
        one->add_option("DIR", options->folder, "Where it is")->required();
        one->add_option("--days", options->days, "How long it holds (default: 365)")
            ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{36'500}));
        one->callback([options, run, &command] {
            command = [options, run] {
                const auto done = run(*options);
                return done ? daemon::kExitOk : exit_with(done.error());
            };
        });
        return one;
    };
    const auto add_whom = [&](CLI::App* one) {
        one->add_option("--server", options->servers,
                        "Names and IP addresses that clients use for the manager");
        one->add_option("--agent", options->agents, "Hosts to issue agents' certificates for");
        one->add_option("--emulated-hosts", options->emulated_hosts,
                        "Agents' certificates for this many hosts host0, host1, ..., as "
                        "`memtide-cxl-emul hosts --count` calls them")
            ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000}));
    };
    add_whom(add(
        "init", "Make the CA, the manager's certificate (default: for this machine only) and agents'", init));
    add_whom(add("issue", "Issue further certificates, or new ones in place of old", issue));
    add("revoke", "Put a host's certificate on the list crl.pem; without HOST, make the list anew", revoke)
        ->add_option("HOST", options->revoked, "Whose certificate");
}

}  // namespace memtide::fm
