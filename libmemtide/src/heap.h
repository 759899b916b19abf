#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "libmemtide/src/budget.h"
#include "libmemtide/src/memkind_library.h"
#include "memtide/memtide.h"
#include "tiering-agent/observe/tiers.h"

namespace memtide::library {

enum class Placement {
    kBound,      // "TIER"
    kPreferred,  // "TIER,any"
    kAny,        // "any"
};
struct HeapName {
    std::string tier{};
    Placement placement = Placement::kAny;

    friend bool operator==(const HeapName&, const HeapName&) = default;
};
// kInvalidArgument for what is no name of a heap. Pure.
Result<HeapName> parse_heap_name(std::string_view text);

// Addresses that a heap hands out, with the memory policy of its tier. Never given back, as the heap.
class Region {
  public:
    // `wanted` bytes, or as many as can be had. kExhausted.
    static Result<Region> reserve(std::size_t wanted);
    // kIo, kUnavailable when none of the nodes has memory now. Pages that are there already stay where they
    // are.
    [[nodiscard]] Result<> set_policy(Placement placement, const std::vector<int>& nodes) const;

    [[nodiscard]] char* begin() const { return begin_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool has(const void* pointer) const {
        const auto address = reinterpret_cast<std::uintptr_t>(pointer);
        const auto begin = reinterpret_cast<std::uintptr_t>(begin_);
        return address >= begin && address - begin < size_;
    }

  private:
    char* begin_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace memtide::library

// A heap (the handle of memtide.h): a kind of memkind over a region of its own, or memkind's own default.
// Thread safe.
struct memtide_heap {
  public:
    // The caller holds slow_path(). `index`: less than Budget::kMostHeaps.
    static memtide::Result<std::unique_ptr<memtide_heap>> open(std::string_view name, std::size_t index);

    // NULL and errno, as memtide.h has it. Alignment 0: for any type.
    void* allocate(std::size_t alignment, std::size_t size) noexcept;
    void* allocate_zeroed(std::size_t count, std::size_t size) noexcept;
    void* reallocate(void* pointer, std::size_t size) noexcept;
    void free(void* pointer) noexcept;
    [[nodiscard]] std::size_t usable_size(const void* pointer) const noexcept;

    [[nodiscard]] const std::string& name() const { return name_; }
    // Of what no region has, the default heap is the owner.
    [[nodiscard]] bool has(const void* pointer) const { return region_ && region_->has(pointer); }
    [[nodiscard]] bool is_default() const { return !region_; }

  private:
    memtide_heap(std::string name, const memtide::library::MemkindLibrary& memkind)
        : name_(std::move(name)), memkind_(memkind) {}
    memtide::Result<> make_kind(memtide::library::Placement placement, std::size_t index);
    memtide::library::Budget::Room room();
    bool take(std::size_t bytes);
    void* note_taken(void* block, std::size_t taken);
    void* tell_full(std::size_t size) noexcept;

    std::string name_;
    const memtide::library::MemkindLibrary& memkind_;
    memkind_t kind_ = nullptr;
    std::optional<memtide::library::Region> region_;
    std::optional<memtide::library::Budget> budget_;  // of kBound
    memtide::agent::Tier tier_;                       // as it was last seen; of slow_path()
};

namespace memtide::library {

// The heap of that name, opened when it is not. nullptr and errno. Thread safe.
memtide_heap* find_heap(const char* name) noexcept;
// Of memory that some heap handed out. Thread safe.
memtide_heap* heap_of(const void* pointer) noexcept;

}  // namespace memtide::library
