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

TEST(Log, JsonLinesAreJsonWhateverTheValuesHold) {
    const std::string path = testing::TempDir() + "/memtide_log_json_test." + std::to_string(getpid());
    ASSERT_TRUE(log::to_file(path));
    log::set_format(log::Format::kJson);
    log::info("vPPB \"bound\"", {{"host", HostId("host0")},
                                 {"count", -3},
                                 {"forced", true},
                                 {"ratio", 0.5},
                                 {"text", "a\\\n\x01\xff\xc3\xa4"},
                                 {"empty", ""}});
    log::set_format(log::Format::kText);
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_NE(
        text.str().find(R"("level":"info","event":"vPPB \"bound\"","host":"host0","count":-3,"forced":true,)"
                        R"("ratio":0.500000,"text":"a\\\u000a\u0001\ufffd)"
                        "\xc3\xa4\"}\n"),
        std::string::npos)
        << text.str();
    EXPECT_TRUE(text.str().starts_with("{\"time\":\"2")) << text.str();
    std::remove(path.c_str());
}

TEST(Log, AFileThatCannotBeOpenedIsAnError) { EXPECT_FALSE(log::to_file("/proc/nonexistent/log")); }

}  // namespace
}  // namespace memtide
