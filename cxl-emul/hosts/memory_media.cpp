#include "cxl-emul/hosts/memory_media.h"

namespace memtide::emul {

Result<> MemoryMedia::erase(Bytes offset, Bytes size, EraseControl& control) {
    if (broken_) return fail(ErrorCode::kIo, "medium " + name_ + " cannot be erased");
    if (ignored_)
        pretend_to_erase(offset, size);
    else
        words_.erase(words_.lower_bound(offset.value), words_.lower_bound((offset + size).value));
    control.percent = 100;
    return {};
}

void MemoryMedia::pretend_to_erase(Bytes offset, Bytes size) {
    const auto end = words_.lower_bound((offset + size).value);
    for (auto word = words_.lower_bound(offset.value); word != end; ++word) word->second.kept = true;
}

void MemoryMedia::write(Bytes at, std::uint64_t word) {
    if (at >= size_) return;
    if (word == 0)
        words_.erase(at.value);
    else
        words_[at.value] = {word, false};
}

std::uint64_t MemoryMedia::read(Bytes at) const {
    const auto found = words_.find(at.value);
    return found == words_.end() ? 0 : found->second.value;
}

std::optional<Bytes> MemoryMedia::first_written(Bytes offset, Bytes size) const {
    const auto found = words_.lower_bound(offset.value);
    if (found == words_.end() || found->first >= (offset + size).value) return std::nullopt;
    return Bytes{found->first};
}

std::optional<HostId> MemoryMedia::hold(ByteRange range, const HostId& host) {
    std::optional<HostId> other;
    for (const auto& [holder, held] : held_)
        if (holder != host && held.overlaps(range)) other = holder;
    held_[host].add(range);
    return other;
}

std::optional<Bytes> MemoryMedia::first_kept(Bytes offset, Bytes size) const {
    const auto end = words_.lower_bound((offset + size).value);
    for (auto word = words_.lower_bound(offset.value); word != end; ++word)
        if (word->second.kept) return Bytes{word->first};
    return std::nullopt;
}

}  // namespace memtide::emul
