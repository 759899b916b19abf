#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

// Whose new files are. Services run as users of their own, and people run their commands as root: what root
// wrote for itself there, the service could not read.
namespace memtide {

// The name of the user that the file or folder belongs to, its number when it has no name; empty when it is
// not there. Thread safe.
std::string owner_of(const std::string& path);

// As fail_errno(), for commands that people run: when it was forbidden, with the user to run it as, whom the
// file or else its folder belongs to.
std::unexpected<Error> fail_errno_with_owner(std::string_view action, const std::string& path,
                                             int error_number);

// Gives the open file `fd` (named `path` in errors) the owner and group of `replaced`, in whose place it will
// be put, or, when that is not there, those of the folder it will be in. Only root gives files to others; for
// anyone else this is the check that what is replaced is their own. kPermission says as which user to run the
// command. Call it before the file is put in place. Thread safe.
Result<> give_to_owner_of(int fd, const std::string& path, const std::string& replaced);
// So for a file that replaces nothing.
Result<> give_to_owner_of_folder(int fd, const std::string& path);

}  // namespace memtide
