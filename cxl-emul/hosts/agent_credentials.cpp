#include "cxl-emul/hosts/agent_credentials.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memtide::emul {
namespace {

namespace fs = std::filesystem;
using All = std::vector<std::shared_ptr<http::Credentials>>;

std::string file_of(const std::string& folder, const HostId& host, const char* kind) {
    return (fs::path(folder) / fmt::format("agent-{}.{}", host.value, kind)).string();
}

// All that are missing are told of at once: they are made at once.
Result<> check_folder(const std::string& folder, std::span<const HostId> hosts) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("there is no folder {}; `memtide-fabric-manager certs init {} "
                                "--emulated-hosts {}` makes it",
                                folder, folder, hosts.size()));
    std::string first;
    std::size_t missing = 0;
    for (const HostId& host : hosts)
        for (const char* const kind : {"pem", "key"}) {
            std::string file = file_of(folder, host, kind);
            if (fs::exists(file, error)) continue;
            if (missing++ == 0) first = std::move(file);
        }
    if (missing == 0) return {};
    const std::string others = missing > 1 ? fmt::format(" (nor are {} others)", missing - 1) : "";
    return fail(ErrorCode::kNotFound,
                fmt::format("{} is not there{}; `memtide-fabric-manager certs issue {} --emulated-hosts {}` "
                            "makes the certificates of all hosts",
                            first, others, folder, hosts.size()));
}

Result<> check_name(http::Credentials& credentials, const HostId& host) {
    const auto context = credentials.tls();
    if (!context) return std::unexpected(context.error());
    const std::vector<std::string> names = tls::describe((*context)->certificate()).host_names();
    if (std::ranges::find(names, host.value) != names.end()) return {};
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("the certificate in {} is for {}, and not for {}",
                            (*context)->files().certificate, fmt::join(names, ", "), host.value));
}

Result<std::shared_ptr<http::Credentials>> load_one(const AgentCertificateFiles& files, const HostId& host,
                                                    const std::shared_ptr<tls::ClientTrust>& trust) {
    http::CredentialFiles own;
    own.tls.ca = files.ca;
    own.tls.certificate = file_of(files.folder, host, "pem");
    own.tls.key = file_of(files.folder, host, "key");
    auto loaded = http::Credentials::load(std::move(own), trust);
    if (!loaded) return loaded;
    if (auto good = check_name(**loaded, host); !good) return std::unexpected(std::move(good.error()));
    return loaded;
}

}  // namespace

Result<All> load_agent_credentials(const AgentCertificateFiles& given, std::span<const HostId> hosts) {
    AgentCertificateFiles files = given;
    if (files.ca.empty() && !files.folder.empty()) files.ca = (fs::path(files.folder) / "ca.pem").string();
    if (!files.folder.empty())
        if (auto good = check_folder(files.folder, hosts); !good) return std::unexpected(good.error());
    if (files.folder.empty()) {
        http::CredentialFiles of_all;
        of_all.tls.ca = files.ca;
        auto loaded = http::Credentials::load(std::move(of_all));
        if (!loaded) return std::unexpected(std::move(loaded.error()));
        return All(hosts.size(), *loaded);
    }
    const auto trust = tls::ClientTrust::load(files.ca);
    if (!trust) return std::unexpected(trust.error());
    All all;
    all.reserve(hosts.size());
    for (const HostId& host : hosts) {
        auto loaded = load_one(files, host, *trust);
        if (!loaded) return std::unexpected(std::move(loaded.error()).with_context(host.value));
        all.push_back(*std::move(loaded));
    }
    return all;
}

}  // namespace memtide::emul
