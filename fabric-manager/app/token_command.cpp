#include "fabric-manager/app/token_command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/base/file_owner.h"
#include "common/base/nearest.h"
#include "common/base/table.h"
#include "common/daemon/exit_code.h"
#include "common/usage/explain.h"
#include "fabric-manager/app/config.h"
#include "fabric-manager/app/exit_with.h"
#include "fabric-manager/rest/text.h"
#include "fabric-manager/security/token_file.h"

namespace memtide::fm {
namespace {

struct TokenOptions {
    std::string config;
    std::string tokens;
    std::string role;
    std::string tenant;
    std::string host;
    std::string expires;
    std::string note;
    std::string out;
    std::string id;
};

int usage(const std::string& what) {
    fmt::print(stderr, "memtide-fabric-manager: {}\n", what);
    return daemon::kExitUsage;
}

// Where the tokens are, and whose they may be: by --tokens nothing is known of that.
struct Surroundings {
    std::string tokens;
    std::optional<AppConfig> config;
};

Result<Surroundings> find_surroundings(const TokenOptions& options) {
    if (!options.tokens.empty()) return Surroundings{options.tokens, {}};
    auto config = load_config(options.config);
    if (!config) return std::unexpected(config.error());
    if (!config->security.gate.authentication)
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("{} has no section \"authentication\": tokens would mean nothing", options.config));
    std::string tokens = config->security.gate.tokens;
    return Surroundings{std::move(tokens), *std::move(config)};
}

// From here on as the user whom the tokens belong to.
Result<Surroundings> surroundings(const TokenOptions& options) {
    auto found = find_surroundings(options);
    if (!found) return found;
    if (const auto user = become_owner(found->tokens); !user) return std::unexpected(user.error());
    return found;
}

Result<std::string> tokens_path(const TokenOptions& options) {
    auto found = surroundings(options);
    if (!found) return std::unexpected(std::move(found.error()));
    return std::move(found->tokens);
}

using Names = std::set<std::string, std::less<>>;

Result<> check_known(const char* kind, const std::string& name, const Names& known,
                     const std::string& config) {
    if (known.contains(name)) return {};
    const std::string_view near = nearest_name(name, known);
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} has no {} \"{}\"{}", config, kind, name,
                            near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
}

// A token of somebody whom the manager does not know is a mistyped one. Without a section "tenants" any name
// is a tenant's.
Result<> check_whose(const TokenOptions& options, const std::optional<AppConfig>& config) {
    if (!config) return {};
    Names tenants;
    for (const auto& [name, quota] : config->manager.tenants) tenants.insert(name);
    if (!options.tenant.empty() && !tenants.empty())
        if (auto known = check_known("tenant", options.tenant, tenants, options.config); !known) return known;
    Names hosts;
    for (const ManagerHost& host : config->manager.hosts) hosts.insert(host.id.value);
    return options.host.empty() ? Result<>{} : check_known("host", options.host, hosts, options.config);
}

Result<TokenRecord> wanted(const TokenOptions& options, const NewToken& token) {
    TokenRecord record;
    record.id = token.id;
    record.hash = token.hash;
    record.note = options.note;
    record.created = std::chrono::system_clock::now();
    const auto role = parse_role(options.role);
    if (!role)
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("--role must be admin, operator, viewer, tenant or agent, not \"{}\"{}", options.role,
                        did_you_mean(options.role, {"admin", "operator", "viewer", "tenant", "agent"})));
    record.role = *role;
    const auto need = [](const char* option, const std::string& value, bool needed) -> Result<> {
        if (needed == value.empty())
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("{} {} with this role", option, needed ? "is needed" : "makes no sense"));
        return needed ? check_name(value) : Result<>{};
    };
    if (auto good = need("--tenant", options.tenant, record.role == Role::kTenant); !good)
        return std::unexpected(std::move(good.error()));
    if (auto good = need("--host", options.host, record.role == Role::kAgent); !good)
        return std::unexpected(std::move(good.error()));
    if (!options.tenant.empty()) record.tenant = options.tenant;
    if (!options.host.empty()) record.host = HostId(options.host);
    if (!options.expires.empty()) {
        const auto lifetime = parse_duration(options.expires);
        if (!lifetime) return std::unexpected(lifetime.error());
        if (*lifetime > std::chrono::years(100))
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("--expires {} is longer than a hundred years", options.expires));
        record.expires = record.created + *lifetime;
    }
    return record;
}

// The file must not be there: whose token is in it might still be needed.
Result<> write_private(const std::string& path, std::string_view text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return fail_errno_with_owner("create", path, errno);
    const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int error = errno;
    ::close(fd);
    return written ? Result<>{} : fail_errno("write", path, error);
}

int create(const TokenOptions& options) {
    const auto where = surroundings(options);
    if (!where) return usage(where.error().message);
    const std::string& path = where->tokens;
    const NewToken token = make_token();
    auto record = wanted(options, token);
    if (!record) return usage(record.error().message);
    if (const auto known = check_whose(options, where->config); !known) return usage(known.error().message);
    // First the file: a token that nobody has could only be revoked again.
    if (!options.out.empty())
        if (const auto written = write_private(options.out, token.text + "\n"); !written)
            return exit_with(written.error());
    const auto added = edit_tokens(path, [&](Tokens& tokens) -> Result<> {
        tokens.push_back(*std::move(record));
        return {};
    });
    if (!added) {
        if (!options.out.empty()) ::unlink(options.out.c_str());
        return exit_with(added.error());
    }
    if (options.out.empty()) fmt::print("{}\n", token.text);
    fmt::print(stderr, "token {} is in {}{}\n", token.id, path,
               options.out.empty() ? "; its text is shown this once" : "; its text in " + options.out);
    return daemon::kExitOk;
}

int list(const TokenOptions& options) {
    const auto path = tokens_path(options);
    if (!path) return usage(path.error().message);
    const auto tokens = load_tokens(*path);
    if (!tokens) return exit_with(tokens.error());
    const Time now = std::chrono::system_clock::now();
    Table table({"ID", "ROLE", "FOR", "CREATED", "EXPIRES", "NOTE"});
    for (const TokenRecord& token : *tokens) {
        std::string expires = token.expires ? format_time(*token.expires) : "never";
        if (token.expires && *token.expires <= now) expires += " (expired)";
        table.add({token.id, std::string(to_string(token.role)),
                   token.tenant.value_or(token.host.value_or(HostId("-")).value), format_time(token.created),
                   std::move(expires), token.note});
    }
    fmt::print("{}", table.text());
    return daemon::kExitOk;
}

int revoke(const TokenOptions& options) {
    const auto path = tokens_path(options);
    if (!path) return usage(path.error().message);
    // Whoever has only the text may paste that.
    const std::string id(token_id(options.id).value_or(options.id));
    const auto removed = edit_tokens(*path, [&](Tokens& tokens) -> Result<> {
        if (std::erase_if(tokens, [&](const TokenRecord& token) { return token.id == id; }) > 0) return {};
        return fail(ErrorCode::kNotFound, fmt::format("there is no token {} in {}", id, *path));
    });
    if (!removed) return exit_with(removed.error());
    fmt::print(stderr, "token {} is revoked; a running manager takes notice within two seconds\n", id);
    return daemon::kExitOk;
}

}  // namespace

void add_token_commands(CLI::App& app, std::function<int()>& command) {
    const auto options = std::make_shared<TokenOptions>();
    CLI::App* const token = app.add_subcommand("token", "Create, list and revoke bearer tokens");
    token->require_subcommand(1);
    const auto add = [&](const char* name, const char* text, int (*run)(const TokenOptions&)) {
        CLI::App* const one = token->add_subcommand(name, text);
        CLI::Option_group* const where = one->add_option_group("Which tokens");
        where->add_option("-c,--config", options->config, "Configuration of the manager");
        where->add_option("--tokens", options->tokens, "The file itself, in place of the configuration");
        where->require_option(1);
        one->callback([options, run, &command] { command = [options, run] { return run(*options); }; });
        return one;
    };
    CLI::App* const made = add("create", "Print a new token; only its hash is kept", create);
    made->add_option("--role", options->role, "admin, operator, viewer, tenant or agent")->required();
    made->add_option("--tenant", options->tenant, "Whose it is, with role tenant");
    made->add_option("--host", options->host, "Which host's, with role agent");
    made->add_option("--expires", options->expires, "When it ends, from now: 12h, 90d (default: never)");
    made->add_option("--note", options->note, "What it is for");
    made->add_option("--out", options->out,
                     "Write it to this new file (mode 0600) in place of standard output");
    add("list", "List the tokens, without their text", list);
    add("revoke", "Make a token worthless", revoke)->add_option("ID", options->id, "Which")->required();
}

}  // namespace memtide::fm
