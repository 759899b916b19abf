#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "fabric-manager/security/token.h"

namespace memtide::fm {

// The tokens of a manager in a file of JSON lines, one a token, which `memtide-fabric-manager token`
// maintains while the manager runs. It has hashes only; nobody but its owner may read it all the same.
using Tokens = std::vector<TokenRecord>;

// kInvalidArgument with "line N: ..." when a line is none.
Result<Tokens> parse_tokens(std::string_view text);
std::string format_tokens(const Tokens& tokens);

// No tokens when the file is not there. kPermission when others may read or write it.
Result<Tokens> load_tokens(const std::string& path);

// Lets `edit` change the tokens and puts the new file in place of the old one at once: readers see one or the
// other, and so does a machine that loses power. Others who edit wait for their turn. Errors of `edit` are
// passed on; nothing changes then.
Result<> edit_tokens(const std::string& path, const std::function<Result<>(Tokens&)>& edit);

}  // namespace memtide::fm
