#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace memtide {

// The known name that was probably meant by a mistyped one, for "did you mean": at most two edits (insert,
// delete or replace a character; Levenshtein) away. Empty when none is that near.
std::string_view nearest_name(std::string_view mistyped, const std::set<std::string, std::less<>>& known);

}  // namespace memtide
