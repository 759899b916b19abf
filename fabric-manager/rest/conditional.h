#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/http/message.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/problem.h"

// Entity tags and conditional requests (RFC 9110, 8.8.3 and 13.1).
namespace memtide::fm {

// A strong tag of these bytes: another representation has another one.
std::string etag_of(std::string_view body);

// "17" for revision 17. While the manager notes what a composition waits for or who holds its memory, which
// is not part of its revision, "17-HASH" of those notes.
std::string etag_of(const Composition& composition);

// The tags of an If-Match or If-None-Match header, as they stand there with their quotes.
struct TagList {
    bool any = false;  // "*"
    std::vector<std::string> tags;
};
// Fails with invalid-request, naming `header`, when the text is neither "*" nor a list of entity tags.
Outcome<TagList> parse_tags(std::string_view header, std::string_view text);

// If-Match: strong comparison, so W/"x" matches nothing.
bool matches_strongly(const TagList& list, std::string_view tag);
// If-None-Match: weak comparison.
bool matches_weakly(const TagList& list, std::string_view tag);
// If-Match of a composition at this revision. What is merely noted about it is no change: of "17-HASH" only
// the revision counts.
bool matches_revision(const TagList& list, std::uint64_t revision);

// The If-Match header; nullopt when there is none. Fails as parse_tags() does.
Outcome<std::optional<TagList>> if_match(const http::Request& request);
Outcome<std::optional<TagList>> if_none_match(const http::Request& request);

}  // namespace memtide::fm
