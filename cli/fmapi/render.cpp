#include "cli/fmapi/render.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "common/base/table.h"
#include "common/json/write.h"
#include "common/terminal/printable.h"

namespace memtide::cli {
namespace {

std::string pad(std::size_t indent) { return std::string(indent, ' '); }

std::string indented(const std::string& text, std::size_t indent) {
    std::string result;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) result += pad(indent) + line + "\n";
    return result;
}

std::string scalar_text(const boost::json::value& value) {
    if (value.is_string()) return printable(std::string_view(value.get_string()));
    return json::write(value);
}

bool is_flat(const boost::json::value& value) {
    if (value.is_object()) return false;
    if (!value.is_array()) return true;
    return std::ranges::none_of(value.get_array(),
                                [](const auto& item) { return item.is_object() || item.is_array(); });
}

std::string flat_text(const boost::json::value& value) {
    if (!value.is_array()) return scalar_text(value);
    std::string text;
    for (const auto& item : value.get_array()) text += (text.empty() ? "" : ", ") + scalar_text(item);
    return text.empty() ? "none" : text;
}

// Elements whose fields are all flat, in one table; nothing when they are not alike.
std::optional<std::string> as_table(const boost::json::array& list) {
    std::vector<std::string> headings;
    for (const auto& [name, value] : list.front().get_object()) {
        if (value.is_object()) return std::nullopt;
        headings.push_back((value.is_number() ? ">" : "") + std::string(name));
    }
    Table table(headings);
    for (const auto& item : list) {
        if (!item.is_object() || item.get_object().size() != headings.size()) return std::nullopt;
        std::vector<std::string> cells;
        for (const auto& [name, value] : item.get_object()) {
            if (!is_flat(value)) return std::nullopt;
            cells.push_back(flat_text(value));
        }
        table.add(std::move(cells));
    }
    return table.text();
}

std::string render_list(std::string_view name, const boost::json::array& list, std::size_t indent) {
    std::string text = pad(indent) + fmt::format("{}:\n", name);
    if (const auto table = list.front().is_object() ? as_table(list) : std::nullopt)
        return text + indented(*table, indent + 2);
    for (std::size_t i = 0; i < list.size(); ++i)
        text += list[i].is_object() ? pad(indent + 2) + fmt::format("[{}]\n", i) +
                                          render_fields(list[i].get_object(), indent + 4)
                                    : pad(indent + 2) + flat_text(list[i]) + "\n";
    return text;
}

}  // namespace

std::string render_fields(const boost::json::object& object, std::size_t indent) {
    std::size_t width = 0;
    for (const auto& [name, value] : object)
        if (is_flat(value)) width = std::max(width, name.size());
    std::string text;
    for (const auto& [name, value] : object) {
        if (is_flat(value))
            text +=
                pad(indent) + fmt::format("{:<{}}  {}\n", std::string_view(name), width, flat_text(value));
        else if (value.is_array())
            text += render_list(name, value.get_array(), indent);
        else
            text += pad(indent) + std::string(name) + ":\n" + render_fields(value.get_object(), indent + 2);
    }
    return text;
}

std::string render_layout(const std::vector<fmapi::FieldText>& fields, std::size_t indent) {
    std::size_t width = 0;
    for (const auto& field : fields) width = std::max(width, field.name.size());
    std::string text;
    for (const auto& field : fields) {
        text += pad(indent) + fmt::format("{:<{}}  {} byte{}{}", field.name, width, field.width,
                                          field.width == 1 ? "" : "s", field.is_list ? " each, a list" : "");
        for (std::size_t i = 0; i < field.values.size(); ++i)
            text += fmt::format("{}{}", i == 0 ? ": " : ", ", field.values[i]);
        text += "\n" + render_layout(field.inner, indent + 2);
    }
    return text;
}

std::string render_commands() {
    Table table({"OPCODE", "COMMAND", "NAME", ""});
    for (const fmapi::CommandText& command : fmapi::command_texts())
        table.add({fmt::format("{:04x}", static_cast<unsigned>(command.opcode)), command.word,
                   std::string(command.name), command.traits.background ? "background" : ""});
    return table.text();
}

}  // namespace memtide::cli
