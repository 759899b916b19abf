#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

// Whose files are. Services run as users of their own, and people run their commands as root: what root wrote
// for itself there, the service could not read.
namespace memtide {

// The name of the user that the file or folder belongs to, its number when it has no name; empty when it is
// not there. Thread safe.
std::string owner_of(const std::string& path);

// As fail_errno(), for commands that people run: when it was forbidden, with the user to run it as, whom the
// file or else its folder belongs to.
std::unexpected<Error> fail_errno_with_owner(std::string_view action, const std::string& path,
                                             int error_number);

// From here on the process is the user whom the folders on the way to `path` belong to, the first one that is
// not root's: for commands that root runs on files of a service. Whoever owns a folder can put links in it;
// as that user nothing is reached that the user could not reach alone, and what is made belongs to it. Links
// are followed, `path` need not be there. Answers the user's name; empty when nothing changes, since all is
// root's or the process is not root's. There is no way back. Not thread safe: before there are other threads.
Result<std::string> become_owner(const std::string& path);

// Gives the open regular file `fd` (named `path` in errors) the owner and group of the regular file
// `replaced`, in whose place it will be put; nothing when that is not there. Only root gives files to others,
// after become_owner(); for anyone else this is the check that what is replaced is their own. kPermission
// says as which user to run the command. Call it before the file is put in place. Thread safe.
Result<> give_to_owner_of(int fd, const std::string& path, const std::string& replaced);

// A descriptor for reading a regular file: kInvalidArgument for anything else (a FIFO would block). Other
// errors as fail_errno_with_owner().
Result<int> open_regular_file(std::string_view action, const std::string& path);

}  // namespace memtide
