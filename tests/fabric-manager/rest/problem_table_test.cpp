// Holds the table of problem codes to the sources that send them, and docs/rest.md to the table.
#include "fabric-manager/rest/problem_table.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric-manager/model/problem.h"
#include "fabric-manager/rest/answer.h"

namespace memtide::fm {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

void collect(const std::string& text, const std::regex& pattern, std::set<std::string>& found) {
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
        found.insert((*it)[1]);
}

// Every code that a source file of the server can answer: the named ones, and those written out in
// problem(404, "code", ...) or refuse(400, "code", ...).
std::set<std::string> codes_in_sources() {
    std::set<std::string> found;
    const fs::path root = MEMTIDE_SOURCE_DIR;
    for (const auto* header :
         {"fabric-manager/model/problem.h", "fabric-manager/model/tenant.h", "fabric-manager/rest/answer.h"})
        collect(read(root / header), std::regex(R"re(string_view k\w+ = "([a-z-]+)")re"), found);
    for (const auto* room : {"common/http", "fabric-manager"})
        for (const auto& entry : fs::recursive_directory_iterator(root / room))
            if (entry.path().extension() == ".cpp")
                collect(read(entry.path()), std::regex(R"re((?:problem|refuse)\(\s*\d+,\s*"([a-z-]+)")re"),
                        found);
    return found;
}

std::set<std::string> codes_in_table() {
    std::set<std::string> codes;
    for (const ProblemRow& row : problem_table()) codes.emplace(row.code);
    return codes;
}

TEST(ProblemTable, HasEveryCodeThatCanBeSentAndNoOther) {
    const std::set<std::string> sent = codes_in_sources();
    EXPECT_GT(sent.size(), 20U);
    EXPECT_EQ(codes_in_table(), sent);
    EXPECT_EQ(codes_in_table().size(), problem_table().size()) << "a code stands there twice";
}

TEST(ProblemTable, StandsInTheRestReference) {
    const std::string document = read(fs::path(MEMTIDE_SOURCE_DIR) / "docs/rest.md");
    std::string rows;
    for (const ProblemRow& row : problem_table()) rows += markdown_row(row) + "\n";
    EXPECT_THAT(document, testing::HasSubstr(rows)) << "docs/rest.md must have these rows";
}

TEST(ProblemTable, GivesEveryCodeOneStatusUnlessItSaysSeveral) {
    for (const ProblemRow& row : problem_table()) {
        const unsigned status = status_of({std::string(row.code), ""});
        EXPECT_TRUE(row.status == 0 ? status < 500 : status == row.status) << row.code << " " << status;
    }
    EXPECT_EQ(status_of({"never-heard-of", ""}), 500U);
}

}  // namespace
}  // namespace memtide::fm
