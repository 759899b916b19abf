// Heaps of libmemtide for C++17 and later: a std::pmr::memory_resource and an allocator. Header only;
// link libmemtide (-lmemtide). What fails throws std::bad_alloc, but where it says otherwise.
#ifndef MEMTIDE_MEMORY_RESOURCE_H
#define MEMTIDE_MEMORY_RESOURCE_H

#include <cerrno>
#include <cstddef>
#include <limits>
#include <memory_resource>
#include <new>
#include <string>
#include <system_error>

#include <memtide/memtide.h>

namespace memtide {

// The heap of that name ("slow", "fast,any", "any": memtide.h). Throws std::system_error when there is none.
inline memtide_heap* open_heap(const char* name) {
    if (memtide_heap* const heap = memtide_heap_open(name)) return heap;
    const int error = errno;
    throw std::system_error(error, std::generic_category(), memtide_error());
}

// Two resources are equal when they are of one heap. Thread safe.
class memory_resource final : public std::pmr::memory_resource {
  public:
    // Throws std::system_error when there is no such heap.
    explicit memory_resource(const char* heap) : heap_(open_heap(heap)) {}
    explicit memory_resource(const std::string& heap) : memory_resource(heap.c_str()) {}

  private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (void* const memory = memtide_heap_alloc(heap_, alignment, bytes)) return memory;
        throw std::bad_alloc();
    }
    void do_deallocate(void* memory, std::size_t, std::size_t) override { memtide_free(memory); }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        const auto* const same = dynamic_cast<const memory_resource*>(&other);
        return same != nullptr && same->heap_ == heap_;
    }

    memtide_heap* heap_;
};

// For containers with an allocator of their own: std::vector<int, memtide::allocator<int>>. Two are equal
// when they are of one heap.
template <typename T>
class allocator {
  public:
    using value_type = T;
    using propagate_on_container_move_assignment = std::true_type;
    using propagate_on_container_swap = std::true_type;

    // Throws std::system_error when there is no such heap.
    explicit allocator(const char* heap) : heap_(open_heap(heap)) {}
    explicit allocator(memtide_heap* heap) noexcept : heap_(heap) {}
    template <typename U>
    allocator(const allocator<U>& other) noexcept : heap_(other.heap()) {}

    [[nodiscard]] T* allocate(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
        if (void* const memory = memtide_heap_alloc(heap_, alignof(T), count * sizeof(T)))
            return static_cast<T*>(memory);
        throw std::bad_alloc();
    }
    void deallocate(T* memory, std::size_t) noexcept { memtide_free(memory); }

    [[nodiscard]] memtide_heap* heap() const noexcept { return heap_; }
    template <typename U>
    friend bool operator==(const allocator& a, const allocator<U>& b) noexcept {
        return a.heap() == b.heap();
    }
    template <typename U>
    friend bool operator!=(const allocator& a, const allocator<U>& b) noexcept {
        return a.heap() != b.heap();
    }

  private:
    memtide_heap* heap_;
};

}  // namespace memtide

#endif
