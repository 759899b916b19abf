#include "fabric-manager/rest/conditional.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "fabric-manager/rest/answer.h"

namespace memtide::fm {
namespace {

std::string hash_of(std::string_view text) {
    return fmt::format("{:016x}", std::hash<std::string_view>{}(text));
}

void skip_spaces(std::string_view& text) {
    while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
}

// Takes W/"..." or "..." from the front; empty when there is none.
std::string_view take_tag(std::string_view& text) {
    const std::size_t begin = text.starts_with("W/") ? 2 : 0;
    if (text.size() <= begin || text[begin] != '"') return {};
    const auto end = text.find('"', begin + 1);
    if (end == std::string_view::npos) return {};
    const std::string_view tag = text.substr(0, end + 1);
    const auto visible = [](char c) {
        return c != ' ' && static_cast<unsigned char>(c) > 0x20 && c != '\x7f';
    };
    if (!std::ranges::all_of(tag, visible)) return {};
    text.remove_prefix(end + 1);
    return tag;
}

std::string_view without_weakness(std::string_view tag) {
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    return tag;
}

Outcome<std::optional<TagList>> tags_of(const http::Request& request, std::string_view header) {
    const auto text = request.header(header);
    if (!text) return std::nullopt;
    auto list = parse_tags(header, *text);
    if (!list) return std::unexpected(std::move(list.error()));
    return *std::move(list);
}

}  // namespace

std::string etag_of(std::string_view body) { return fmt::format("\"{}-{:x}\"", hash_of(body), body.size()); }

std::string etag_of(const Composition& c) {
    std::string notes;
    for (const Part& part : c.parts) {
        if (part.waiting_for.empty() && part.holders.empty()) continue;
        notes += fmt::format("\n{} {}", part.number, part.waiting_for);
        for (const Holder& holder : part.holders)
            notes += fmt::format("\n{} {} {} {}", holder.block, holder.pid.value_or(-1), holder.bytes.value,
                                 holder.command);
    }
    if (notes.empty()) return fmt::format("\"{}\"", c.revision);
    return fmt::format("\"{}-{}\"", c.revision, hash_of(notes));
}

Outcome<TagList> parse_tags(std::string_view header, std::string_view text) {
    std::string_view rest = text;
    const auto wrong = [&] {
        return refuse(
            problem::kInvalidRequest,
            fmt::format("{} is {}; it must be * or a list of entity tags such as \"17\", with their "
                        "quotes",
                        header, text));
    };
    TagList list;
    skip_spaces(rest);
    if (rest == "*") {
        list.any = true;
        return list;
    }
    for (;;) {
        skip_spaces(rest);
        if (rest.starts_with(',')) {  // RFC 9110, 5.6.1: empty elements of a list do not count
            rest.remove_prefix(1);
            continue;
        }
        if (rest.empty()) break;
        const std::string_view tag = take_tag(rest);
        skip_spaces(rest);
        if (tag.empty() || (!rest.empty() && !rest.starts_with(','))) return wrong();
        list.tags.emplace_back(tag);
    }
    if (list.tags.empty()) return wrong();
    return list;
}

bool matches_strongly(const TagList& list, std::string_view tag) {
    return list.any || std::ranges::find(list.tags, tag) != list.tags.end();
}

bool matches_weakly(const TagList& list, std::string_view tag) {
    return list.any || std::ranges::any_of(list.tags, [&](const std::string& one) {
               return without_weakness(one) == without_weakness(tag);
           });
}

bool matches_revision(const TagList& list, std::uint64_t revision) {
    const std::string bare = fmt::format("\"{}\"", revision);
    const std::string noted = fmt::format("\"{}-", revision);
    return list.any || std::ranges::any_of(list.tags, [&](const std::string& one) {
               return one == bare || one.starts_with(noted);
           });
}

Outcome<std::optional<TagList>> if_match(const http::Request& request) {
    return tags_of(request, "If-Match");
}
Outcome<std::optional<TagList>> if_none_match(const http::Request& request) {
    return tags_of(request, "If-None-Match");
}

}  // namespace memtide::fm
