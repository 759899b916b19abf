// docs/fm-api.md and the code say the same about every command.
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fmapi/commands.h"

namespace memtide::fmapi {
namespace {

// "18", or "4 + 16 n" with a list of 16-byte elements; "0" when there is no payload.
template <typename T>
std::string size_text() {
    std::string text = std::to_string(T::kWireSize);
    for (const auto& row : describe<T>())
        if (row.is_list && row.name.find("[].") == std::string::npos)
            text += row.width == 1 ? " + n" : fmt::format(" + {} n", row.width);
    return text;
}

TEST(Documentation, HasARowForEveryCommandWithItsSizes) {
    std::ifstream file(MEMTIDE_SOURCE_DIR "/docs/fm-api.md");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    ASSERT_FALSE(text.empty());
    for_each_command([&]<typename C>(C) {
        EXPECT_THAT(text,
                    testing::HasSubstr(fmt::format(
                        "| {:04x} | {} | {} | {} |", static_cast<unsigned>(C::kOpcode), name_of(C::kOpcode),
                        size_text<typename C::Request>(), size_text<typename C::Response>())));
    });
}

}  // namespace
}  // namespace memtide::fmapi
