#include "libmemtide/src/heap.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/sysfs/files.h"
#include "libmemtide/src/failure.h"
#include "libmemtide/src/slow_path.h"
#include "libmemtide/src/tiers.h"

namespace memtide::library {
namespace {

constexpr std::string_view kAny = "any";
// Memory of blocks as large as that goes back to the system when they are freed.
constexpr std::size_t kLarge = std::size_t{1} << 20;

// Never given up: memory may be freed at any time, also at the end of the process.
std::array<std::atomic<memtide_heap*>, Budget::kMostHeaps> heaps{};

const Files& files() {
    static const Files* const kFiles = new Files;
    return *kFiles;
}

// Addresses cost nothing; a heap that has none left cannot grow, though its memory could.
std::size_t addresses_for(Bytes capacity) {
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 30;
    constexpr std::uint64_t kMost = std::uint64_t{16} << 40;
    const auto strict = files().read_number("proc/sys/vm/overcommit_memory");
    if (strict && *strict == 2) return capacity.value;
    return std::clamp(4 * capacity.value, kLeast, kMost);
}

void give_pages_back(void* block, std::size_t size) {
    static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const auto begin = (address + kPage - 1) / kPage * kPage;
    const auto end = (address + size) / kPage * kPage;
    if (begin < end) ::madvise(static_cast<char*>(block) + (begin - address), end - begin, MADV_DONTNEED);
}

memtide_heap* find_open(std::string_view name) {
    for (const auto& slot : heaps) {
        memtide_heap* const heap = slot.load(std::memory_order_acquire);
        if (heap == nullptr) return nullptr;
        if (heap->name() == name) return heap;
    }
    return nullptr;
}

memtide_heap* open_heap(std::string_view name) {
    const std::lock_guard lock(slow_path());
    if (memtide_heap* const heap = find_open(name)) return heap;
    const auto free = std::ranges::find_if(heaps, [](const auto& slot) { return slot.load() == nullptr; });
    if (free == heaps.end()) {
        set_failure(E2BIG, fmt::format("{} heaps are open: \"{}\" is one too many", heaps.size(), name));
        return nullptr;
    }
    auto opened = memtide_heap::open(name, static_cast<std::size_t>(free - heaps.begin()));
    if (!opened) {
        set_failure(opened.error());
        return nullptr;
    }
    free->store(opened->get(), std::memory_order_release);
    return opened->release();
}

}  // namespace

std::mutex& slow_path() {
    static auto* const kMutex = new std::mutex;
    return *kMutex;
}

Result<HeapName> parse_heap_name(std::string_view text) {
    if (text == kAny) return HeapName{};
    const std::size_t comma = text.find(',');
    const std::string_view tier = text.substr(0, comma);
    const bool is_good = !tier.empty() && tier != kAny && tier.size() < sizeof(memtide_tier::name) &&
                         (comma == std::string_view::npos || text.substr(comma + 1) == kAny);
    if (!is_good)
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("\"{}\" is no name of a heap: write TIER, \"TIER,any\" or any", text.substr(0, 100)));
    return HeapName{std::string(tier),
                    comma == std::string_view::npos ? Placement::kBound : Placement::kPreferred};
}

memtide_heap* find_heap(const char* name) noexcept {
    if (name == nullptr) {
        set_failure(EINVAL, "no name of a heap is given");
        return nullptr;
    }
    if (memtide_heap* const heap = find_open(name)) return heap;
    try {
        return open_heap(name);
    } catch (const std::exception& error) {
        set_failure(ENOMEM, error.what());
        return nullptr;
    }
}

memtide_heap* heap_of(const void* pointer) noexcept {
    memtide_heap* other = nullptr;
    for (const auto& slot : heaps) {
        memtide_heap* const heap = slot.load(std::memory_order_acquire);
        if (heap == nullptr) break;
        if (heap->has(pointer)) return heap;
        if (heap->is_default()) other = heap;
    }
    return other;
}

}  // namespace memtide::library

using memtide::ErrorCode;
using memtide::fail;
using memtide::Result;
using memtide::library::Budget;
using memtide::library::Placement;
using memtide::library::Region;

Result<std::unique_ptr<memtide_heap>> memtide_heap::open(std::string_view name, std::size_t index) {
    namespace library = memtide::library;
    const auto parsed = library::parse_heap_name(name);
    if (!parsed) return std::unexpected(parsed.error());
    memtide::agent::Tier tier;
    if (parsed->placement != Placement::kAny) {
        auto found = library::find_tier(library::files(), library::tiers_wish(), parsed->tier);
        if (!found) return std::unexpected(std::move(found.error()));
        tier = *std::move(found);
        if (tier.nodes.empty())
            return fail(ErrorCode::kUnavailable, fmt::format("tier \"{}\" has no memory now", tier.name));
    }
    const auto memkind = library::load_memkind();
    if (!memkind) return std::unexpected(memkind.error());
    std::unique_ptr<memtide_heap> heap(new memtide_heap(std::string(name), **memkind));
    heap->tier_ = std::move(tier);
    if (parsed->placement == Placement::kAny)
        heap->kind_ = heap->memkind_.default_kind;
    else if (auto made = heap->make_kind(parsed->placement, index); !made)
        return std::unexpected(std::move(made.error()));
    return heap;
}

Result<> memtide_heap::make_kind(Placement placement, std::size_t index) {
    auto region = Region::reserve(memtide::library::addresses_for(tier_.capacity));
    if (!region) return std::unexpected(std::move(region.error()));
    auto kept = std::make_pair(region->begin(), region->size());
    auto made = region->set_policy(placement, tier_.nodes);
    if (made) {
        if (const int failed = memkind_.create_fixed(region->begin(), region->size(), &kind_); failed != 0) {
            std::array<char, MEMKIND_ERROR_MESSAGE_SIZE> why{};
            memkind_.error_message(failed, why.data(), why.size());
            made = fail(ErrorCode::kIo,
                        fmt::format("memkind makes no heap for tier \"{}\": {}", tier_.name, why.data()));
        }
    }
    if (!made) {
        ::munmap(kept.first, kept.second);
        return made;
    }
    region_ = *region;
    if (placement == Placement::kBound) budget_.emplace(index, [this] { return room(); });
    return {};
}

// Called with slow_path() held, when it matters: nodes may have come or gone since.
Budget::Room memtide_heap::room() {
    namespace library = memtide::library;
    auto now = library::find_tier(library::files(), library::tiers_wish(), tier_.name);
    if (now && !now->nodes.empty()) {
        if (now->nodes != tier_.nodes) {
            const auto done = region_->set_policy(Placement::kBound, now->nodes);
            if (!done) now->nodes = tier_.nodes;
        }
        tier_ = *std::move(now);
    }
    return {.capacity = static_cast<std::int64_t>(tier_.capacity.value),
            .free = static_cast<std::int64_t>(library::room_in(library::files(), tier_.nodes).value)};
}

bool memtide_heap::take(std::size_t bytes) {
    return !budget_ || (bytes < PTRDIFF_MAX && budget_->take(static_cast<std::int64_t>(bytes)));
}

void* memtide_heap::note_taken(void* block, std::size_t taken) {
    if (!budget_) return block;
    if (block == nullptr)
        budget_->give(static_cast<std::int64_t>(taken));
    else
        budget_->take_more(static_cast<std::int64_t>(usable_size(block)) - static_cast<std::int64_t>(taken));
    return block;
}

void* memtide_heap::tell_full(std::size_t size) noexcept {
    std::array<char, 160> text{};
    const auto end =
        fmt::format_to_n(text.data(), text.size(), "heap \"{}\" has no room for {} bytes", name_, size);
    memtide::library::set_failure(ENOMEM, {text.data(), std::min(end.size, text.size())});
    return nullptr;
}

void* memtide_heap::allocate(std::size_t alignment, std::size_t size) noexcept try {
    size = std::max<std::size_t>(size, 1);
    if (!take(size)) return tell_full(size);
    void* block = nullptr;
    if (alignment <= alignof(std::max_align_t))
        block = memkind_.malloc(kind_, size);
    else if (memkind_.posix_memalign(kind_, &block, alignment, size) != 0)
        block = nullptr;
    return note_taken(block, size) != nullptr ? block : tell_full(size);
} catch (const std::exception&) {
    return tell_full(size);
}

void* memtide_heap::allocate_zeroed(std::size_t count, std::size_t size) noexcept try {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return tell_full(SIZE_MAX);
    bytes = std::max<std::size_t>(bytes, 1);
    if (!take(bytes)) return tell_full(bytes);
    void* const block = memkind_.calloc(kind_, 1, bytes);
    return note_taken(block, bytes) != nullptr ? block : tell_full(bytes);
} catch (const std::exception&) {
    return tell_full(count);
}

void* memtide_heap::reallocate(void* pointer, std::size_t size) noexcept try {
    size = std::max<std::size_t>(size, 1);
    const std::size_t before = usable_size(pointer);
    const std::size_t more = size - std::min(size, before);
    if (more > 0 && !take(more)) return tell_full(size);
    void* const block = memkind_.realloc(kind_, pointer, size);
    if (block == nullptr) {
        if (budget_) budget_->give(static_cast<std::int64_t>(more));
        return tell_full(size);
    }
    if (budget_) {
        const auto grown = static_cast<std::int64_t>(usable_size(block)) - static_cast<std::int64_t>(before);
        budget_->take_more(grown - static_cast<std::int64_t>(more));
    }
    return block;
} catch (const std::exception&) {
    return tell_full(size);
}

void memtide_heap::free(void* pointer) noexcept {
    const int error = errno;
    const std::size_t size = region_ ? usable_size(pointer) : 0;
    const bool is_large = size >= memtide::library::kLarge;
    // Before: afterwards it may be somebody else's.
    if (is_large) memtide::library::give_pages_back(pointer, size);
    memkind_.free(kind_, pointer);
    if (budget_ && is_large) budget_->give_back(static_cast<std::int64_t>(size));
    if (budget_ && !is_large) budget_->give(static_cast<std::int64_t>(size));
    errno = error;
}

std::size_t memtide_heap::usable_size(const void* pointer) const noexcept {
    return memkind_.usable_size(kind_, const_cast<void*>(pointer));
}
