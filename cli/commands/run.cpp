#include "cli/commands/run.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/consent/userfault.h"

namespace memtide::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibrary = "libmemtide-consent.so";

// Where it was built, or installed.
std::optional<std::string> find_library() {
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    if (error) return std::nullopt;
    for (const fs::path& place : {folder / "../libmemtide/consent", folder / ("../" MEMTIDE_LIBDIR)})
        if (fs::exists(place / kLibrary, error)) return fs::canonical(place / kLibrary, error).string();
    return std::nullopt;
}

// Whoever may not connect to it cannot know.
bool no_agent_listens(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path.data(), path.size());
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) return false;
    const bool refused =
        ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        (errno == ENOENT || errno == ECONNREFUSED);
    ::close(socket);
    return refused;
}

// What goes before the program's own LD_PRELOAD, or why it stays as it is.
Result<std::string> what_to_preload() {
    if (const auto tried = Userfault::open(); !tried) return std::unexpected(tried.error());
    const auto library = find_library();
    if (!library) return fail(ErrorCode::kNotFound, fmt::format("{} is not beside this program", kLibrary));
    // ld.so(8) has no way to quote.
    if (library->find_first_of(" :") != std::string::npos)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} has a blank or a colon in its path", *library));
    return *library;
}

void note(const std::string& text) { std::fprintf(stderr, "memtide: %s\n", text.c_str()); }

}  // namespace

int run_with_consent(const std::vector<std::string>& command, const std::string& agent_socket,
                     Output& output) {
    if (const auto library = what_to_preload(); !library) {
        note(fmt::format("{} is watched as any other program: {}", command.front(), library.error().message));
    } else {
        const char* const before = std::getenv("LD_PRELOAD");
        const std::string all = before && *before ? *library + ":" + before : *library;
        ::setenv("LD_PRELOAD", all.c_str(), 1);
        if (no_agent_listens(agent_socket))
            note(fmt::format("no tiering agent runs now; one that is started later watches {}, too",
                             command.front()));
    }
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    ::execvp(words.front(), words.data());
    const int error = errno;
    static_cast<void>(output.complaint(fmt::format("{}: {}", command.front(), std::strerror(error))));
    constexpr int kNotThere = 127;
    constexpr int kCannotRun = 126;
    return error == ENOENT ? kNotThere : kCannotRun;
}

}  // namespace memtide::cli
