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

}  // namespace
}  // namespace memtide
