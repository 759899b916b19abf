#include "fabric-manager/app/certificate_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_owner.h"
#include "common/base/ids.h"
#include "common/base/nearest.h"
#include "common/tls/ip_address.h"

namespace memtide::fm {
namespace {

namespace fs = std::filesystem;
using Use = tls::CertificateRequest::Use;
using Order = CertificateFolder::Order;

constexpr const char* kIssued = "issued";
constexpr const char* kRevoked = "revoked";

// In place of what is there, at once.
Result<> write_file(const fs::path& path, const std::string& text, mode_t mode, Order order = Order::kOne) {
    const std::string fresh = path.string() + ".new";
    ::unlink(fresh.c_str());  // of a command that was killed
    const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return fail_errno_with_owner("create", fresh, errno);
    if (auto given = give_to_owner_of(fd, fresh, path.string()); !given) {
        ::close(fd);
        ::unlink(fresh.c_str());
        return given;
    }
    const bool written = ::fchmod(fd, mode) == 0 &&
                         ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                         (order == Order::kOfMany || ::fsync(fd) == 0);
    const int error = errno;
    ::close(fd);
    if (!written) return fail_errno("write", fresh, error);
    if (::rename(fresh.c_str(), path.c_str()) != 0) return fail_errno("put in place", path.string(), errno);
    return {};
}

Result<> write_and_tell(const fs::path& path, const std::string& text, mode_t mode,
                        Order order = Order::kOne) {
    if (auto written = write_file(path, text, mode, order); !written) return written;
    if (order == Order::kOne) fmt::print("{}\n", path.string());
    return {};
}

Result<std::string> read_pem(const fs::path& path) {
    const auto fd = open_regular_file("open", path.string());
    if (!fd) return std::unexpected(fd.error());
    std::string text;
    std::array<char, 16384> piece{};
    ssize_t got = 0;
    while ((got = ::read(*fd, piece.data(), piece.size())) > 0)
        text.append(piece.data(), static_cast<std::size_t>(got));
    const int error = errno;
    ::close(*fd);
    return got == 0 ? Result<std::string>(std::move(text)) : fail_errno("read", path.string(), error);
}

Result<> make_folder(const fs::path& folder) {
    if (::mkdir(folder.c_str(), 0750) == 0 || errno == EEXIST) return {};
    return fail_errno_with_owner("create the folder", folder.string(), errno);
}

// One command at a time: two would put a key beside the other's certificate.
Result<File> lock(const fs::path& folder) {
    const std::string path = (folder / "certs.lock").string();
    File held(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!held.is_open()) return fail_errno_with_owner("create", path, errno);
    while (::flock(held.fd(), LOCK_EX) != 0)
        if (errno != EINTR) return fail_errno("lock", path, errno);
    return held;
}

Result<> write_pair(const fs::path& folder, const std::string& name, const tls::CertificateAndKey& pair,
                    Order order = Order::kOne) {
    // The key first: a manager that reads both meanwhile then finds a pair that does not fit, and waits.
    if (auto written = write_and_tell(folder / (name + ".key"), pair.key, 0600, order); !written)
        return written;
    return write_and_tell(folder / (name + ".pem"), pair.certificate, 0644, order);
}

std::string file_of(const tls::CertificateFacts& facts) {
    return facts.use == Use::kServer ? "server.pem" : "agent-" + facts.common_name + ".pem";
}

}  // namespace

Result<CertificateFolder> CertificateFolder::create(const fs::path& folder, std::chrono::seconds lifetime) {
    if (const auto user = become_owner(folder.string()); !user) return std::unexpected(user.error());
    if (auto made = make_folder(folder); !made) return std::unexpected(made.error());
    auto held = lock(folder);
    if (!held) return std::unexpected(held.error());
    if (fs::exists(folder / "ca.pem") || fs::exists(folder / "ca.key"))
        return fail(ErrorCode::kAlreadyExists,
                    fmt::format("there is a CA in {} already; `certs issue {}` issues more of it",
                                folder.string(), folder.string()));
    auto authority = tls::Authority::create("Memtide rack CA", lifetime);
    if (!authority) return std::unexpected(authority.error());
    const auto pem = authority->pem();
    if (!pem) return std::unexpected(pem.error());
    if (auto written = write_pair(folder, "ca", *pem); !written) return std::unexpected(written.error());
    return CertificateFolder(folder, *std::move(authority), *std::move(held));
}

Result<CertificateFolder> CertificateFolder::open(const fs::path& folder) {
    if (const auto user = become_owner((folder / "ca.key").string()); !user)
        return std::unexpected(user.error());
    auto certificate = read_pem(folder / "ca.pem");
    if (!certificate) return std::unexpected(certificate.error());
    auto key = read_pem(folder / "ca.key");
    if (!key) return std::unexpected(key.error());
    auto held = lock(folder);
    if (!held) return std::unexpected(held.error());
    auto authority = tls::Authority::from_pem({*std::move(certificate), *std::move(key)});
    if (!authority) return std::unexpected(std::move(authority.error()).with_context(folder.string()));
    return CertificateFolder(folder, *std::move(authority), *std::move(held));
}

Result<> CertificateFolder::keep(const char* where, const std::string& pem, Order order) const {
    const auto facts = tls::facts_of(pem);
    if (!facts) return std::unexpected(facts.error());
    if (auto made = make_folder(folder_ / where); !made) return made;
    return write_file(folder_ / where / (facts->serial + ".pem"), pem, 0644, order);
}

Result<> CertificateFolder::put(const std::string& name, const tls::CertificateRequest& request,
                                Order order) const {
    const auto issued = authority_.issue(request);
    if (!issued) return std::unexpected(issued.error());
    // Folders of before do not have what they issued anywhere else. Something that is no certificate could
    // not be revoked anyway.
    const auto replaced = read_pem(folder_ / (name + ".pem"));
    if (replaced && tls::facts_of(*replaced))
        if (auto kept = keep(kIssued, *replaced, order); !kept) return kept;
    // Before anybody can have it.
    if (auto kept = keep(kIssued, issued->certificate, order); !kept) return kept;
    return write_pair(folder_, name, *issued, order);
}

Result<> CertificateFolder::issue_server(const std::vector<std::string>& names,
                                         std::chrono::seconds lifetime) const {
    tls::CertificateRequest request;
    request.common_name = "memtide-fabric-manager";
    request.ends = lifetime;
    for (const std::string& name : names)
        (tls::is_ip_address(name) ? request.addresses : request.dns_names).push_back(name);
    return put("server", request, Order::kOne);
}

Result<> CertificateFolder::issue_agent(const std::string& host, std::chrono::seconds lifetime,
                                        Order order) const {
    if (auto good = check_name(host); !good)
        return std::unexpected(std::move(good.error()).with_context(fmt::format("host \"{}\"", host)));
    tls::CertificateRequest request;
    request.common_name = host;
    request.dns_names = {host};
    request.use = Use::kClient;
    request.ends = lifetime;
    return put("agent-" + host, request, order);
}

Result<> CertificateFolder::sync() const {
    const int fd = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool synced = fd >= 0 && ::syncfs(fd) == 0;
    const int error = errno;
    if (fd >= 0) ::close(fd);
    return synced ? Result<>{} : fail_errno("write to the disk", folder_.string(), error);
}

CertificateFolder::Entries CertificateFolder::entries() const {
    Entries result;
    std::vector<Entry>& all = result.certificates;
    std::set<std::string> revoked;
    const auto read_all = [&](const fs::path& folder, const char* where) {
        std::error_code absent;
        for (const auto& file : fs::directory_iterator(folder, absent)) {
            const std::string name = file.path().filename().string();
            if (!name.ends_with(".pem")) continue;
            if (where == nullptr && name != "server.pem" && !name.starts_with("agent-")) continue;
            auto pem = read_pem(file.path());
            auto facts = pem ? tls::facts_of(*pem)
                             : Result<tls::CertificateFacts>(std::unexpected(std::move(pem.error())));
            if (!facts) {
                result.unreadable.push_back(
                    fmt::format("{}: {}", file.path().string(), facts.error().message));
                continue;
            }
            if (where == kRevoked) revoked.insert(facts->serial);
            const auto same = std::ranges::find_if(
                all, [&](const Entry& one) { return one.facts.serial == facts->serial; });
            const bool in_use = where == nullptr && name == file_of(*facts);
            if (same == all.end()) {
                all.push_back({*std::move(facts), in_use, false, *std::move(pem)});
            }
        }
    };
    for (const auto& [folder, where] : {std::pair{folder_, static_cast<const char*>(nullptr)},
                                        {folder_ / kIssued, kIssued},
                                        {folder_ / kRevoked, kRevoked}})
        read_all(folder, where);
    for (Entry& one : all) one.revoked = revoked.contains(one.facts.serial);
    std::ranges::sort(all, {}, [](const Entry& one) {
        return std::tuple(one.facts.common_name, one.facts.ends, one.facts.serial);
    });
    return result;
}

Result<std::size_t> CertificateFolder::revoke_agent(const std::string& host) const {
    if (auto good = check_name(host); !good) return std::unexpected(good.error());
    const std::vector<Entry> all = entries().certificates;
    std::set<std::string, std::less<>> agents;
    std::size_t count = 0;
    const auto now = std::chrono::system_clock::now();
    for (const Entry& one : all) {
        if (one.facts.use != Use::kClient) continue;
        agents.insert(one.facts.common_name);
        if (one.facts.common_name != host || one.facts.ends <= now) continue;
        if (!one.revoked) {
            if (auto kept = keep(kRevoked, one.pem, Order::kOne); !kept) return std::unexpected(kept.error());
            ++count;
        }
        std::error_code absent;
        fs::remove(folder_ / kIssued / (one.facts.serial + ".pem"), absent);
        if (!one.in_use) continue;
        fs::remove(folder_ / file_of(one.facts), absent);
        fs::remove(folder_ / ("agent-" + host + ".key"), absent);
    }
    if (agents.contains(host)) return count;
    const std::string_view near = nearest_name(host, agents);
    return fail(ErrorCode::kNotFound,
                fmt::format("{} has issued no certificate to the agent of {}{}", folder_.string(), host,
                            near.empty() ? std::string("; `certs list` has all that it issued")
                                         : fmt::format("; did you mean {}?", near)));
}

Result<> CertificateFolder::write_list(std::chrono::seconds lifetime) const {
    std::vector<std::string> revoked;
    for (const Entry& one : entries().certificates)
        if (one.revoked) revoked.push_back(one.pem);
    const auto list = authority_.revoke(revoked, lifetime);
    if (!list) return std::unexpected(list.error());
    return write_and_tell(folder_ / "crl.pem", *list, 0644);
}

}  // namespace memtide::fm
