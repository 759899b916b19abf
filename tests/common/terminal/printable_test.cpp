#include "common/terminal/printable.h"

#include <gtest/gtest.h>

namespace memtide {
namespace {

TEST(Printable, KeepsTextAndShowsWhatWouldSteer) {
    EXPECT_EQ(printable("plain äöü 漢 🙂"), "plain äöü 漢 🙂");
    EXPECT_EQ(printable("\x1b]0;t\x07\x7f\t\r"), "\\x1b]0;t\\x07\\x7f\\x09\\x0d");
    EXPECT_EQ(printable("\u009b1m"), "\\x9b1m");  // C1 in UTF-8
    EXPECT_EQ(printable("\x9b"
                        "1m \xc3"),
              "\\x9b1m \\xc3");                      // and not in UTF-8
    EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");  // an overlong ESC-like form
    EXPECT_EQ(printable("a\u202eb"), "a\\u202eb");
}

TEST(Printable, ShortensByColumns) {
    EXPECT_EQ(shorten("12345", 5), "12345");
    EXPECT_EQ(shorten("123456", 5), "12...");
    EXPECT_EQ(shorten("äöüäöü", 6), "äöüäöü");
    EXPECT_EQ(shorten("äöüäöüä", 6), "äöü...");
    EXPECT_EQ(shorten("", 5), "");
    EXPECT_EQ(shorten("漢字漢字", 8), "漢字漢字");
    EXPECT_EQ(shorten("漢字漢字", 7), "漢字...");
    EXPECT_EQ(shorten("漢字漢字", 6), "漢...");
    EXPECT_EQ(shorten("漢字", 3), "漢");
}

}  // namespace
}  // namespace memtide
