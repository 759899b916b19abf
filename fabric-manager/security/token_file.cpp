#include "fabric-manager/security/token_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/file_owner.h"
#include "common/json/json.h"

namespace memtide::fm {
namespace {

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int get() const { return fd_; }

  private:
    int fd_;
};

std::int64_t to_seconds(Time time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}
Time from_seconds(std::int64_t seconds) { return Time(std::chrono::seconds(seconds)); }

bool is_hash(std::string_view text) {
    return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<TokenRecord> parse_line(std::string_view line) {
    constexpr std::int64_t kFarFuture = 9'214'646'400;  // the year 2262: Time counts nanoseconds
    const auto value = json::parse(line);
    if (!value) return std::unexpected(value.error());
    const json::Reader reader(*value);
    const json::Object object = reader.root().object();
    TokenRecord token;
    token.id = object.require("id").string(64);
    const json::Value hash = object.require("sha256");
    token.hash = hash.string(64);
    if (!is_hash(token.hash)) hash.reject("must be 64 hexadecimal digits");
    token.role = parse_role(object.require("role").one_of({"viewer", "admin", "operator", "tenant", "agent"}))
                     .value_or(Role::kViewer);
    if (const auto tenant = object.get("tenant")) token.tenant = tenant->name();
    if (const auto host = object.get("host")) token.host = HostId(host->name());
    if (const auto note = object.get("note")) token.note = note->string();
    token.created = from_seconds(object.require("created").integer<std::int64_t>(0, kFarFuture));
    if (const auto expires = object.get("expires"))
        token.expires = from_seconds(expires->integer<std::int64_t>(0, kFarFuture));
    if ((token.role == Role::kTenant) != token.tenant.has_value())
        object.reject("must have a tenant if its role is tenant, and only then");
    if ((token.role == Role::kAgent) != token.host.has_value())
        object.reject("must have a host if its role is agent, and only then");
    if (const auto good = reader.check(json::Reader::Unknown::kRefused); !good)
        return std::unexpected(good.error());
    return token;
}

boost::json::object to_json(const TokenRecord& token) {
    boost::json::object line{{"id", token.id}, {"sha256", token.hash}, {"role", to_string(token.role)}};
    if (token.tenant) line["tenant"] = *token.tenant;
    if (token.host) line["host"] = token.host->value;
    if (!token.note.empty()) line["note"] = token.note;
    line["created"] = to_seconds(token.created);
    if (token.expires) line["expires"] = to_seconds(*token.expires);
    return line;
}

Result<> write_whole(int fd, std::string_view text, const std::string& path) {
    while (!text.empty()) {
        const ssize_t put = ::write(fd, text.data(), text.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return fail_errno("write", path, errno);
        text.remove_prefix(static_cast<std::size_t>(put));
    }
    return {};
}

Result<> replace(const std::string& path, std::string_view text) {
    const std::string fresh = path + ".new";
    {
        const Descriptor file(
            ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (file.get() < 0) return fail_errno_with_owner("create", fresh, errno);
        if (auto given = give_to_owner_of(file.get(), fresh, path); !given) {
            ::unlink(fresh.c_str());
            return given;
        }
        if (auto written = write_whole(file.get(), text, fresh); !written) return written;
        if (::fsync(file.get()) != 0) return fail_errno("sync", fresh, errno);
    }
    if (::rename(fresh.c_str(), path.c_str()) != 0) return fail_errno("put in place", path, errno);
    const std::string folder = std::filesystem::absolute(path).parent_path().string();
    const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.get() < 0 || ::fsync(directory.get()) != 0) return fail_errno("sync", folder, errno);
    return {};
}

}  // namespace

Result<Tokens> parse_tokens(std::string_view text) {
    Tokens tokens;
    for (int number = 1; !text.empty(); ++number) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.empty() || line.starts_with('#')) continue;
        auto token = parse_line(line);
        if (!token)
            return std::unexpected(std::move(token.error()).with_context(fmt::format("line {}", number)));
        if (std::ranges::find(tokens, token->id, &TokenRecord::id) != tokens.end())
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("line {}: token {} is there already", number, token->id));
        tokens.push_back(*std::move(token));
    }
    return tokens;
}

std::string format_tokens(const Tokens& tokens) {
    std::string text = "# Written by memtide-fabric-manager token; one token a line, by its hash.\n";
    for (const TokenRecord& token : tokens) text += boost::json::serialize(to_json(token)) + "\n";
    return text;
}

Result<Tokens> load_tokens(const std::string& path) {
    const auto opened = open_regular_file("open the tokens", path);
    if (!opened && opened.error().code == ErrorCode::kNotFound) return Tokens{};
    if (!opened) return std::unexpected(opened.error());
    const Descriptor file(*opened);
    struct stat status{};
    if (::fstat(file.get(), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return fail(ErrorCode::kPermission,
                    fmt::format("others than its owner may use the tokens {}; chmod 600 {}", path, path));
    std::string text;
    std::array<char, 65536> piece{};
    for (;;) {
        const ssize_t got = ::read(file.get(), piece.data(), piece.size());
        if (got < 0) return fail_errno("read the tokens", path, errno);
        if (got == 0) break;
        text.append(piece.data(), static_cast<std::size_t>(got));
    }
    auto tokens = parse_tokens(text);
    if (!tokens) return std::unexpected(std::move(tokens.error()).with_context("the tokens " + path));
    return tokens;
}

Result<> edit_tokens(const std::string& path, const std::function<Result<>(Tokens&)>& edit) {
    const std::string lock_path = path + ".lock";
    const Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (lock.get() < 0) return fail_errno_with_owner("create", lock_path, errno);
    if (auto given = give_to_owner_of(lock.get(), lock_path, path); !given) return given;
    while (::flock(lock.get(), LOCK_EX) != 0)
        if (errno != EINTR) return fail_errno("lock", lock_path, errno);
    auto tokens = load_tokens(path);
    if (!tokens) return std::unexpected(std::move(tokens.error()));
    if (auto edited = edit(*tokens); !edited) return edited;
    return replace(path, format_tokens(*tokens));
}

}  // namespace memtide::fm
