// The recorded conversations that the packet fuzzer starts from still read as captures.txt says.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/fmapi/mctp.h"

namespace memtide::fmapi {
namespace {

std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

// One line a message; the last one is the error when the stream breaks, or what is left over. The first byte
// of a capture is for the fuzzer.
std::string summary(const std::string& capture) {
    PacketAssembler assembler;
    assembler.feed(std::as_bytes(std::span(capture)).subspan(1));
    std::string text;
    while (true) {
        const auto next = assembler.next();
        if (!next) return text + "error " + next.error().message + "\n";
        if (!*next) break;
        text += to_string((*next)->message) + "\n";
    }
    if (assembler.pending() != 0) text += "unfinished " + std::to_string(assembler.pending()) + " bytes\n";
    return text;
}

TEST(Corpus, CapturesReadAsTheyDid) {
    const std::filesystem::path fuzz(MEMTIDE_FUZZ_FOLDER);
    std::vector<std::filesystem::path> captures;
    for (const auto& entry : std::filesystem::directory_iterator(fuzz / "corpus/memtide_fmapi_packets_fuzz"))
        if (!entry.path().filename().string().starts_with("reaches-"))  // found by fuzzing, not recorded
            captures.push_back(entry.path());
    std::ranges::sort(captures);
    ASSERT_FALSE(captures.empty());
    std::string text;
    for (const auto& capture : captures)
        text += "[" + capture.stem().string() + "]\n" + summary(contents(capture)) + "\n";
    EXPECT_EQ(text, contents(fuzz / "fmapi/captures.txt"));
}

}  // namespace
}  // namespace memtide::fmapi
