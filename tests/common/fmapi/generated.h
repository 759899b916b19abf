#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

// Files of the repository that follow from the descriptions of the commands. With MEMTIDE_WRITE_DOCS=1 in the
// environment they are written instead of compared.
namespace memtide::fmapi::test {

inline const std::filesystem::path kSource = MEMTIDE_SOURCE_DIR;

inline std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void expect_or_write(const std::filesystem::path& path, const std::string& right) {
    if (std::getenv("MEMTIDE_WRITE_DOCS") != nullptr)
        std::ofstream(path) << right;
    else
        EXPECT_EQ(contents(path), right) << "MEMTIDE_WRITE_DOCS=1 build/bin/memtide_fmapi_test writes it";
}

// Puts `right` between the two lines, which the file has.
inline void expect_or_write_between(const std::filesystem::path& path, std::string_view begin_line,
                                    std::string_view end_line, const std::string& right) {
    const std::string text = contents(path);
    const auto begin = text.find(begin_line);
    const auto end = text.find(end_line);
    ASSERT_NE(begin, std::string::npos) << path;
    ASSERT_NE(end, std::string::npos) << path;
    expect_or_write(path, text.substr(0, begin + begin_line.size()) + right + text.substr(end));
}

}  // namespace memtide::fmapi::test
