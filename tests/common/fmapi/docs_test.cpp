// docs/fm-api.md and docs/fm-api-payloads.md say what the descriptions of the commands say. With
// MEMTIDE_WRITE_DOCS=1 in the environment they are written instead of compared: what people wrote into the
// last columns of the table is kept.
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/fmapi/commands.h"
#include "tests/common/fmapi/generated.h"

namespace memtide::fmapi {
namespace {

constexpr std::string_view kBegin = "<!-- commands: generated, see add-a-command.md -->\n";
constexpr std::string_view kEnd = "<!-- commands: end -->\n";
constexpr std::size_t kKeptColumns = 3;  // client, emulated switch, tests

using test::contents;
using test::expect_or_write;
using test::kSource;

bool is_nested(const FieldDescription& row) { return row.name.find("[].") != std::string::npos; }

// "18", or "4 + 16 n" with a list of 16-byte elements; "0" when there is no payload.
template <typename T>
std::string size_text() {
    std::string text = std::to_string(T::kWireSize);
    for (const auto& row : describe<T>())
        if (row.is_list && !is_nested(row))
            text += row.width == 1 ? " + n" : fmt::format(" + {} n", row.width);
    return text;
}

std::vector<std::string> cells(const std::string& line) {
    std::vector<std::string> result;
    std::istringstream in(line.substr(1));
    for (std::string cell; std::getline(in, cell, '|');) {
        const auto first = cell.find_first_not_of(' ');
        result.push_back(
            first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    }
    return result;
}

// The columns that people write, by opcode.
std::map<std::string, std::vector<std::string>> kept_columns(const std::string& table) {
    std::map<std::string, std::vector<std::string>> kept;
    std::istringstream in(table);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("| ")) continue;
        const auto row = cells(line);
        if (row.size() < kKeptColumns + 1) continue;
        kept[row.front()].assign(row.end() - kKeptColumns, row.end());
    }
    return kept;
}

std::string how(Traits traits) {
    return traits.background ? "background" : traits.repeatable ? "repeatable" : "";
}

std::string cell(std::string_view text) { return text.empty() ? " |" : fmt::format(" {} |", text); }

std::string table(const std::map<std::string, std::vector<std::string>>& kept) {
    std::string text =
        "| opcode | command | request | response | | client (`FmApiClient`) | emulated switch "
        "(`cxl-emul/switch`) | tests |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for_each_command([&]<typename C>(C) {
        const std::string opcode = fmt::format("{:04x}", static_cast<unsigned>(C::kOpcode));
        text += fmt::format("| {} | {} | {} | {} |", opcode, C::kName, size_text<typename C::Request>(),
                            size_text<typename C::Response>());
        text += cell(how(C::kTraits));
        const auto row = kept.find(opcode);
        for (std::size_t i = 0; i < kKeptColumns; ++i) text += cell(row == kept.end() ? "" : row->second[i]);
        text += "\n";
    });
    return text;
}

TEST(Documentation, TheTableOfCommandsIsGenerated) {
    const auto path = kSource / "docs/fm-api.md";
    const std::string text = contents(path);
    const auto begin = text.find(kBegin);
    const auto end = text.find(kEnd);
    ASSERT_NE(begin, std::string::npos);
    ASSERT_NE(end, std::string::npos);
    const auto kept = kept_columns(text.substr(begin, end - begin));
    expect_or_write(path, text.substr(0, begin + kBegin.size()) + table(kept) + text.substr(end));
}

TEST(Documentation, EveryCommandSaysWhoAnswersItAndWhichTestShowsIt) {
    const auto kept = kept_columns(contents(kSource / "docs/fm-api.md"));
    for_each_command([&]<typename C>(C) {
        const auto row = kept.find(fmt::format("{:04x}", static_cast<unsigned>(C::kOpcode)));
        ASSERT_NE(row, kept.end()) << C::kName;
        EXPECT_FALSE(row->second[1].empty()) << C::kName << ": who answers it?";
        EXPECT_FALSE(row->second[2].empty()) << C::kName << ": where is it tested?";
        std::istringstream tests(row->second[2]);
        for (std::string name; tests >> name;) {
            if (name.ends_with(',')) name.pop_back();
            EXPECT_TRUE(std::filesystem::exists(kSource / "tests/cxl-emul/switch" / (name + "_test.cpp")))
                << name;
        }
    });
}

void describe_fields(std::string& text, const std::vector<FieldDescription>& rows) {
    text += "| byte | width | field |\n| --- | --- | --- |\n";
    bool behind_list = false;
    for (const auto& row : rows) {
        const std::string offset = is_nested(row)                ? fmt::format("+{}", row.offset)
                                   : behind_list && !row.is_list ? fmt::format("n, {}", row.offset)
                                                                 : std::to_string(row.offset);
        behind_list |= row.is_list && !is_nested(row);
        text += fmt::format("| {} | {}{} | {}{} |\n", offset, row.width, row.is_list ? " each" : "", row.name,
                            row.optional_tail ? ", may be missing" : "");
    }
    text += "\n";
}

template <typename T>
void describe_payload(std::string& text, std::string_view side, std::set<std::string_view>& described) {
    if (T::kWireSize == 0 && describe<T>().empty()) return;
    if (!described.insert(T::kName).second) {
        text += fmt::format("{}: {}, as above.\n\n", side, T::kName);
        return;
    }
    text += fmt::format("{}: {}, {} byte{}\n\n", side, T::kName, size_text<T>(),
                        size_text<T>() == "1" ? "" : "s");
    describe_fields(text, describe<T>());
}

TEST(Documentation, EveryPayloadIsListedFieldByField) {
    std::string text =
        "# FM API: every payload, field by field\n\n"
        "Generated from the descriptions in `common/fmapi/commands/`, where the meaning of every bit stands; "
        "[fm-api.md](fm-api.md) has\nthe table of commands. Offsets are in bytes from the payload's start; "
        "`+n` from "
        "the start of a list's element; `n, 8`: behind\nthe list's elements, which do not count. All "
        "integers are "
        "little endian.\n\n";
    std::set<std::string_view> described;
    for_each_command([&]<typename C>(C) {
        text += fmt::format("## {:04x}h {}\n\n", static_cast<unsigned>(C::kOpcode), C::kName);
        if (wire_size<typename C::Request>() == 0 && describe<typename C::Request>().empty() &&
            wire_size<typename C::Response>() == 0 && describe<typename C::Response>().empty())
            text += "Neither request nor response has a payload.\n\n";
        describe_payload<typename C::Request>(text, "Request", described);
        describe_payload<typename C::Response>(text, "Response", described);
    });
    text.pop_back();
    expect_or_write(kSource / "docs/fm-api-payloads.md", text);
}

}  // namespace
}  // namespace memtide::fmapi
