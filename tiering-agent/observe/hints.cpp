#include "tiering-agent/observe/hints.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/hints/hint_table.h"

namespace memtide::agent {
namespace {

using hint_table::Entry;
using hint_table::Header;

constexpr std::uint64_t kPageMask = 4095;

// Memory of another process. /proc/PID/mem fails where process_vm_readv(2) would wait for the process, so
// that a table over userfaultfd(2) stops nobody.
class OtherMemory {
  public:
    OtherMemory(const Files& files, int pid)
        : file_(::open(files.absolute(fmt::format("proc/{}/mem", pid)).c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~OtherMemory() {
        if (file_ >= 0) ::close(file_);
    }
    OtherMemory(const OtherMemory&) = delete;
    OtherMemory& operator=(const OtherMemory&) = delete;

    [[nodiscard]] bool read(std::uint64_t address, std::span<char> into) const {
        return file_ >= 0 && ::pread(file_, into.data(), into.size(), static_cast<off_t>(address)) ==
                                 static_cast<ssize_t>(into.size());
    }
    [[nodiscard]] std::optional<Header> header(std::uint64_t address) const {
        Header header;
        if (!read(address, std::span(reinterpret_cast<char*>(&header), sizeof header))) return std::nullopt;
        return header;
    }

  private:
    int file_;
};

bool is_good(const Header& header) {
    return std::memcmp(header.magic, hint_table::kMagic, sizeof header.magic) == 0 &&
           header.sequence % 2 == 0 && header.entries <= hint_table::kMostEntries;
}

}  // namespace

std::optional<HintRanges> parse_hints(std::string_view table) {
    Header header;
    if (table.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, table.data(), sizeof header);
    if (!is_good(header) || table.size() < sizeof header + header.entries * sizeof(Entry))
        return std::nullopt;
    HintRanges hints;
    std::uint64_t behind = 0;
    for (std::size_t i = 0; i < header.entries; ++i) {
        Entry entry;
        std::memcpy(&entry, table.data() + sizeof header + i * sizeof entry, sizeof entry);
        const std::uint64_t begin = entry.begin_and_hint & ~kPageMask;
        const std::uint64_t hint = entry.begin_and_hint & kPageMask;
        const bool is_range = begin >= behind && begin < entry.end && (entry.end & kPageMask) == 0;
        if (!is_range || hint < 1 || hint > 3) return std::nullopt;
        behind = entry.end;
        hints.set({begin >> 12, entry.end >> 12, static_cast<Hint>(hint)});
    }
    return hints;
}

void HintReader::refresh(const Files& files, int pid, const std::vector<Vma>& vmas) {
    const auto table = std::ranges::find_if(vmas, [](const Vma& vma) {
        return vma.name == hint_table::kMappingName && vma.range.size().value >= hint_table::kSize;
    });
    if (table == vmas.end()) {
        *this = {};
        return;
    }
    if (address_ != table->range.begin) {
        *this = {};
        address_ = table->range.begin;
    }
    const OtherMemory memory(files, pid);
    const auto before = memory.header(address_);
    if (!before || !is_good(*before) || before->sequence == sequence_) return;
    std::string bytes(sizeof(Header) + before->entries * sizeof(Entry), '\0');
    if (!memory.read(address_, bytes)) return;
    const auto after = memory.header(address_);
    if (!after || after->sequence != before->sequence) return;  // it is being written: the next time
    if (auto hints = parse_hints(bytes)) hints_ = *std::move(hints);
    sequence_ = before->sequence;
}

}  // namespace memtide::agent
