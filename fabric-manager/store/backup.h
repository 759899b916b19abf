#pragma once

#include <cstdint>
#include <string>

#include "common/base/error.h"

// Backup and restore of a state file, for the subcommands of the manager.
namespace memtide::fm {

// By so much the revisions of hosts are above those of the backup after a restore: above every one that an
// agent can have seen since. A host whose revision is not below it has a state that was restored once.
inline constexpr std::uint64_t kRevisionLeap = std::uint64_t{1} << 32;

// Writes a copy of the state to `out`, which must not exist; it is checked before it gets that name. Works
// while a manager runs. Answers a sentence for people. Errors: kNotFound (no state file), kAlreadyExists,
// kProtocol (the state is damaged), those of files.h.
Result<std::string> backup_state(const std::string& state, const std::string& out);

// Puts a copy of the backup `in` in the place of the state file, and puts what was there aside. Nothing has
// changed after an error. Agents see it as a new state: the revisions of their hosts go on from far above
// what they can have seen. Answers a sentence for people. Errors: kConflict (a manager runs), kNotFound,
// kProtocol (the backup is damaged), kInvalidArgument (it is no state file, or of a newer version), those of
// files.h.
Result<std::string> restore_state(const std::string& state, const std::string& in);

}  // namespace memtide::fm
