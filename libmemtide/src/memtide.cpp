// The functions of memtide.h. Nothing is thrown across them.
#include "memtide/memtide.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "common/sysfs/files.h"
#include "libmemtide/src/failure.h"
#include "libmemtide/src/heap.h"
#include "libmemtide/src/hints.h"
#include "libmemtide/src/tiers.h"

namespace {

using memtide::Hint;
using namespace memtide::library;

bool is_good_alignment(std::size_t alignment) {
    if (std::has_single_bit(alignment)) return true;
    set_failure(EINVAL, "the alignment is no power of two");
    return false;
}

}  // namespace

void* memtide_malloc(const char* heap, size_t size) {
    memtide_heap* const found = find_heap(heap);
    return found == nullptr ? nullptr : found->allocate(0, size);
}

void* memtide_calloc(const char* heap, size_t count, size_t size) {
    memtide_heap* const found = find_heap(heap);
    return found == nullptr ? nullptr : found->allocate_zeroed(count, size);
}

void* memtide_aligned_alloc(const char* heap, size_t alignment, size_t size) {
    if (!is_good_alignment(alignment)) return nullptr;
    memtide_heap* const found = find_heap(heap);
    return found == nullptr ? nullptr : found->allocate(alignment, size);
}

void* memtide_realloc(const char* heap, void* pointer, size_t size) {
    if (pointer == nullptr) return memtide_malloc(heap, size);
    memtide_heap* const from = heap_of(pointer);
    memtide_heap* const to = heap == nullptr ? from : find_heap(heap);
    if (from == nullptr) {
        set_failure(EINVAL, "the pointer is of no heap of this library");
        return nullptr;
    }
    if (to == nullptr) return nullptr;
    if (to == from && !there_are_hints()) return from->reallocate(pointer, size);
    // Hints are of addresses: they do not follow, and must not stay behind. So it is freed here.
    const size_t before = from->usable_size(pointer);
    if (to == from && size <= before && size >= before / 2) return pointer;
    void* const block = to->allocate(0, size);
    if (block == nullptr) return nullptr;
    std::memcpy(block, pointer, std::min(size, before));
    memtide_free(pointer);
    return block;
}

void memtide_free(void* pointer) {
    if (pointer == nullptr) return;
    memtide_heap* const heap = heap_of(pointer);
    if (heap == nullptr) return;
    if (there_are_hints()) {
        const int error = errno;
        try {
            take_hints_back(reinterpret_cast<std::uintptr_t>(pointer), heap->usable_size(pointer));
        } catch (const std::exception&) {
            errno = error;  // no memory to split a range: the hint outlives it
        }
        errno = error;
    }
    heap->free(pointer);
}

size_t memtide_usable_size(const void* pointer) {
    const memtide_heap* const heap = pointer == nullptr ? nullptr : heap_of(pointer);
    return heap == nullptr ? 0 : heap->usable_size(pointer);
}

memtide_heap* memtide_heap_open(const char* heap) { return find_heap(heap); }

void* memtide_heap_alloc(memtide_heap* heap, size_t alignment, size_t size) {
    if (alignment != 0 && !is_good_alignment(alignment)) return nullptr;
    return heap->allocate(alignment, size);
}

int memtide_tier_at(unsigned position, struct memtide_tier* tier) try {
    const memtide::Files files;
    const auto tiers = known_tiers(files, tiers_wish());
    if (!tiers) {
        set_failure(tiers.error());
        return -1;
    }
    if (position >= tiers->size()) {
        set_failure(ENOENT, "there are not so many tiers");
        return -1;
    }
    const memtide::agent::Tier& found = (*tiers)[position];
    *tier = {};
    std::copy_n(found.name.data(), std::min(found.name.size(), sizeof tier->name - 1), tier->name);
    tier->capacity = found.capacity.value;
    tier->free = room_in(files, found.nodes).value;
    return 0;
} catch (const std::exception& error) {
    set_failure(ENOMEM, error.what());
    return -1;
}

int memtide_hint(const void* address, size_t length, int kind) try {
    if (kind < MEMTIDE_NORMAL || kind > MEMTIDE_PIN) {
        set_failure(EINVAL, "there is no such kind of hint");
        return -1;
    }
    return give_hint(reinterpret_cast<std::uintptr_t>(address), length, static_cast<Hint>(kind)) == 0 ? 0
                                                                                                      : -1;
} catch (const std::exception& error) {
    set_failure(ENOMEM, error.what());
    return -1;
}

const char* memtide_error() { return last_failure(); }

const char* memtide_version() { return MEMTIDE_VERSION; }
