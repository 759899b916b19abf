#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace memtide::fm {

struct AuditFileOptions {
    std::string path;
    std::uint64_t rotate_bytes = 64 << 20;  // a file is not made larger than that...
    int keep = 10;                          // ...and this many older ones stay, as PATH.1 (newest) to PATH.N
    bool sync_each_line = false;            // else what a crash of the machine may lose is bounded by sync()
};

// Appends whole lines to a file of mode 0600: a line is there as a whole or not at all, also when the disk
// fills up in the middle of it. Not thread safe.
class AuditFile {
  public:
    virtual ~AuditFile() = default;
    // `line` without its end. kExhausted when the disk is full, kIo otherwise; the next line may work again.
    virtual Result<> append(std::string_view line) = 0;
    // Makes what was appended survive a crash of the machine. Cheap when there is nothing new.
    virtual Result<> sync() = 0;
    // For whoever moved the file away.
    virtual Result<> reopen() = 0;
};

// kIo, kPermission: the path, and why it cannot be written.
Result<std::unique_ptr<AuditFile>> open_audit_file(AuditFileOptions options);

}  // namespace memtide::fm
