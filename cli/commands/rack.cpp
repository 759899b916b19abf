#include "cli/commands/rack.h"

#include <cerrno>
#include <filesystem>

#include <unistd.h>

namespace memtide::cli {

int run_rack(const Output& output, const std::vector<std::string>& arguments) {
    std::error_code failed;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
    const std::string program = (self.parent_path() / "memtide-cxl-emul").string();
    std::vector<std::string> words{program, "rack"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    return output.failure(fail_errno("start", program, errno).error());
}

}  // namespace memtide::cli
