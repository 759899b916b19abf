#include "common/base/table.h"

#include <gtest/gtest.h>

namespace memtide {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCellAndNumbersStandRight) {
    Table table({"NAME", ">SIZE"});
    table.add({"a", "1GiB"});
    table.add({"longer", "256MiB"});
    EXPECT_EQ(table.text(), "NAME      SIZE\na         1GiB\nlonger  256MiB\n");
}

TEST(Table, CountsColumnsOfATerminalNotBytes) {
    Table table({"NAME", "X"});
    table.add({"\xc3\xa4\xc3\xb6", "1"});          // two letters of two bytes each
    table.add({"\xe6\xbc\xa2\xe5\xad\x97", "2"});  // two wide ones
    table.add({"e\xcc\x81t\xc3\xa9", "3"});        // an accent of its own joins the letter before
    EXPECT_EQ(table.text(),
              "NAME  X\n\xc3\xa4\xc3\xb6    1\n\xe6\xbc\xa2\xe5\xad\x97  2\ne\xcc\x81t\xc3\xa9   3\n");
}

}  // namespace
}  // namespace memtide
