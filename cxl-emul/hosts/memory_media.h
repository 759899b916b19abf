#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "cxl-emul/switch/media.h"
#include "cxl-emul/switch/range_set.h"

namespace memtide::emul {

// A device's memory that costs only what is in it: words that are not zero. It outlives its switch, and
// nothing but an erase makes it zero again. Not thread safe: switch and hosts are on one thread.
class MemoryMedia final : public Media {
  public:
    MemoryMedia(std::string name, Bytes size) : name_(std::move(name)), size_(size) {}

    [[nodiscard]] const std::string& path() const override { return name_; }
    [[nodiscard]] Result<> check() const override { return {}; }
    // kIo while the medium is broken; then nothing changes.
    [[nodiscard]] Result<> erase(Bytes offset, Bytes size, EraseControl& control) override;
    void pretend_to_erase(Bytes offset, Bytes size) override;
    [[nodiscard]] bool erases_at_once() const override { return true; }

    // A word of 8 bytes at a multiple of 8 below the size.
    void write(Bytes at, std::uint64_t word);
    [[nodiscard]] std::uint64_t read(Bytes at) const;
    // Where the first word in the range is that is not zero.
    [[nodiscard]] std::optional<Bytes> first_written(Bytes offset, Bytes size) const;

    // Where the first one is of which an erase() has said that it is gone, and it is not.
    [[nodiscard]] std::optional<Bytes> first_kept(Bytes offset, Bytes size) const;

    // Who reaches which of it. hold() says which other host held some of the range before.
    std::optional<HostId> hold(ByteRange range, const HostId& host);
    void let_go(ByteRange range, const HostId& host) { held_[host].remove(range); }

    void break_erase(bool broken) { broken_ = broken; }
    // While it is so, erase() succeeds and does nothing.
    void ignore_erase(bool ignored) { ignored_ = ignored; }

  private:
    struct Word {
        std::uint64_t value = 0;
        bool kept = false;  // over an erase that did nothing
    };
    std::string name_;
    Bytes size_;
    std::map<std::uint64_t, Word> words_;
    std::map<HostId, RangeSet> held_;
    bool broken_ = false;
    bool ignored_ = false;
};

}  // namespace memtide::emul
