#include "fabric-manager/app/certs_command.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "common/base/table.h"
#include "common/daemon/exit_code.h"
#include "fabric-manager/app/certificate_folder.h"
#include "fabric-manager/app/exit_with.h"
#include "fabric-manager/rest/text.h"

namespace memtide::fm {
namespace {

struct CertsOptions {
    std::string folder;
    std::vector<std::string> servers;  // DNS names and IP addresses
    std::vector<std::string> agents;   // hosts
    std::string revoked;
    std::uint64_t emulated_hosts = 0;  // host0 and so on
    std::uint64_t days = 365;
};

std::chrono::seconds days(std::uint64_t count) { return std::chrono::hours(24 * count); }

// As memtide-cxl-emul hosts calls them. One line instead of two for each host, and one wait for the disk.
Result<> issue_emulated(const CertificateFolder& folder, const CertsOptions& options) {
    for (std::uint64_t i = 0; i < options.emulated_hosts; ++i)
        if (auto issued = folder.issue_agent(fmt::format("host{}", i), days(options.days),
                                             CertificateFolder::Order::kOfMany);
            !issued)
            return issued;
    if (auto synced = folder.sync(); !synced) return synced;
    fmt::print("{}/agent-HOST.pem and .key of {} hosts, host0 to host{}\n", options.folder,
               options.emulated_hosts, options.emulated_hosts - 1);
    return {};
}

Result<> issue_all(const CertificateFolder& folder, const CertsOptions& options) {
    if (!options.servers.empty())
        if (auto issued = folder.issue_server(options.servers, days(options.days)); !issued) return issued;
    for (const std::string& host : options.agents)
        if (auto issued = folder.issue_agent(host, days(options.days)); !issued) return issued;
    if (options.emulated_hosts > 0) return issue_emulated(folder, options);
    return {};
}

Result<> init(const CertsOptions& options) {
    const auto folder = CertificateFolder::create(options.folder, days(3650));
    if (!folder) return std::unexpected(folder.error());
    CertsOptions wanted = options;
    if (wanted.servers.empty()) wanted.servers = {"localhost", "127.0.0.1", "::1"};
    return issue_all(*folder, wanted);
}

Result<> issue(const CertsOptions& options) {
    const auto folder = CertificateFolder::open(options.folder);
    if (!folder) return std::unexpected(folder.error());
    if (options.servers.empty() && options.agents.empty() && options.emulated_hosts == 0)
        return fail(ErrorCode::kInvalidArgument,
                    "say what to issue: --server NAME, --agent HOST or --emulated-hosts N");
    return issue_all(*folder, options);
}

// What is wrong with the folder is an error after all that could be done was done.
Result<> judge_unreadable(const CertificateFolder::Entries& entries) {
    if (entries.unreadable.empty()) return {};
    std::string text = "done, but for files that are no certificates; whom they were issued to is not known:";
    for (const std::string& one : entries.unreadable) text += "\n  " + one;
    return fail(ErrorCode::kInvalidArgument, text);
}

Result<> revoke(const CertsOptions& options) {
    const auto folder = CertificateFolder::open(options.folder);
    if (!folder) return std::unexpected(folder.error());
    if (!options.revoked.empty()) {
        const auto count = folder->revoke_agent(options.revoked);
        if (!count) return std::unexpected(count.error());
        fmt::print(stderr, "{} certificate{} of {} {} revoked\n", *count, *count == 1 ? "" : "s",
                   options.revoked, *count == 1 ? "is" : "are");
    }
    if (auto written = folder->write_list(days(options.days)); !written) return written;
    return judge_unreadable(folder->entries());
}

Result<> list(const CertsOptions& options) {
    const auto folder = CertificateFolder::open(options.folder);
    if (!folder) return std::unexpected(folder.error());
    const CertificateFolder::Entries entries = folder->entries();
    const auto now = std::chrono::system_clock::now();
    Table table({"FOR", "KIND", "STATE", "ENDS", "SERIAL"});
    for (const CertificateFolder::Entry& one : entries.certificates) {
        const bool server = one.facts.use == tls::CertificateRequest::Use::kServer;
        table.add({one.facts.common_name, server ? "server" : "agent",
                   one.facts.ends <= now ? "expired"
                   : one.revoked         ? "revoked"
                   : one.in_use          ? "in use"
                                         : "replaced",
                   format_time(one.facts.ends), one.facts.serial});
    }
    fmt::print("{}", table.text());
    return judge_unreadable(entries);
}

}  // namespace

void add_certs_commands(CLI::App& app, std::function<int()>& command) {
    const auto options = std::make_shared<CertsOptions>();
    CLI::App* const certs = app.add_subcommand("certs", "A small CA for a rack that has no other");
    certs->require_subcommand(1);
    const auto add = [&](const char* name, const char* text, Result<> (*run)(const CertsOptions&)) {
        CLI::App* const one = certs->add_subcommand(name, text);
        one->add_option("DIR", options->folder, "Where it is")->required();
        one->callback([options, run, &command] {
            command = [options, run] {
                const auto done = run(*options);
                return done ? daemon::kExitOk : exit_with(done.error());
            };
        });
        return one;
    };
    const auto add_days = [&](CLI::App* one) {
        one->add_option("--days", options->days, "How long it holds (default: 365)")
            ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{36'500}));
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
    add_whom(add_days(
        add("init", "Make the CA, the manager's certificate (default: for this machine only) and agents'",
            init)));
    add_whom(add_days(add("issue", "Issue further certificates, or new ones in place of old", issue)));
    add_days(add("revoke",
                 "Put every certificate that a host was ever issued on the list crl.pem; without HOST, make "
                 "the list anew",
                 revoke))
        ->add_option("HOST", options->revoked, "Whose certificates");
    add("list", "What was issued, to whom, until when, and what became of it", list);
}

}  // namespace memtide::fm
