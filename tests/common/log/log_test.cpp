#include "common/log/log.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

namespace memtide {
namespace {

TEST(Log, LinesAreLogfmtWithHostileValuesQuoted) {
    const std::string path = testing::TempDir() + "/memtide_log_test." + std::to_string(getpid());
    ASSERT_TRUE(log::to_file(path));
    log::info("vPPB bound", {{"host", HostId("host0")},
                             {"size", mebibytes(256)},
                             {"count", 3},
                             {"text", "a \"b\"\nforged=1\x01"},
                             {"empty", ""}});
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(text.str().find(
                  R"(info event="vPPB bound" host=host0 size=256MiB count=3 text="a \"b\"\nforged=1\x01")"),
              std::string::npos)
        << text.str();
    std::remove(path.c_str());
}

TEST(Log, AFileThatCannotBeOpenedIsAnError) { EXPECT_FALSE(log::to_file("/proc/nonexistent/log")); }

}  // namespace
}  // namespace memtide
