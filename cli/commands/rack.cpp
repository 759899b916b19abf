#include "cli/commands/rack.h"

#include <cerrno>
#include <filesystem>
#include <iterator>

#include <unistd.h>

namespace memtide::cli {

std::optional<std::vector<std::string>> rack_arguments(const std::vector<std::string>& typed) {
    bool json = false;
    auto word = typed.begin();
    for (; word != typed.end() && word->starts_with("--"); ++word) {
        if (*word == "--json")
            json = true;
        else if (*word == "--url" && std::next(word) != typed.end())
            ++word;
        else if (!word->starts_with("--url="))
            return std::nullopt;
    }
    if (word == typed.end() || *word != "rack") return std::nullopt;
    std::vector<std::string> arguments(std::next(word), typed.end());
    // Behind the action, which knows it; further on it might stand in a command for a host.
    if (json && !arguments.empty()) arguments.insert(std::next(arguments.begin()), "--json");
    return arguments;
}

int become_emulator(const Output& output, const std::vector<std::string>& arguments) {
    std::error_code failed;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
    const std::string program = (self.parent_path() / "memtide-cxl-emul").string();
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    return output.complaint(fail_errno("start", program, errno).error().message);
}

int run_rack(const Output& output, const std::vector<std::string>& arguments) {
    std::vector<std::string> words{"rack"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return become_emulator(output, words);
}

}  // namespace memtide::cli
