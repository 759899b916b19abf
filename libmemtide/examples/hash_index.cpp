// A store of values by key, as databases have them: a hash index that every look-up reads, and values of
// which hardly any is read. The index spans tiers and says that it is hot; values go to the slow tier, and
// elsewhere when that is full.
//
//   c++ -std=c++17 hash_index.cpp -o hash_index $(pkg-config --cflags --libs memtide) && ./hash_index
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory_resource>
#include <string>
#include <vector>

#include <memtide/memory_resource.h>

namespace {

class Store {
  public:
    // A power of two of slots; at most three of four may be used.
    explicit Store(std::size_t slots)
        : index_memory_("any"),
          value_memory_("slow,any"),
          slots_(slots, &index_memory_),
          values_(&value_memory_) {
        hint(MEMTIDE_HOT);
    }
    ~Store() { hint(MEMTIDE_NORMAL); }
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    void put(std::uint64_t key, const std::string& value) {
        values_.emplace_back(value);
        slots_[find(key)] = {key, values_.size()};
    }
    const std::pmr::string* get(std::uint64_t key) const {
        const std::size_t value = slots_[find(key)].value;
        return value == 0 ? nullptr : &values_[value - 1];
    }

  private:
    struct Slot {
        std::uint64_t key = 0;
        std::size_t value = 0;  // position + 1; 0: free
    };
    std::size_t find(std::uint64_t key) const {
        std::size_t slot = key * 0x9e3779b97f4a7c15ULL % slots_.size();
        while (slots_[slot].value != 0 && slots_[slot].key != key) slot = (slot + 1) % slots_.size();
        return slot;
    }
    // A wish: without it the store works as well, and the agent finds out by itself.
    void hint(memtide_hint_kind kind) const {
        if (memtide_hint(slots_.data(), slots_.size() * sizeof(Slot), kind) != 0)
            std::fprintf(stderr, "no hint: %s\n", memtide_error());
    }

    memtide::memory_resource index_memory_;
    memtide::memory_resource value_memory_;
    std::pmr::vector<Slot> slots_;
    std::pmr::vector<std::pmr::string> values_;  // their text is of value_memory_, too
};

}  // namespace

int main() try {
    constexpr std::uint64_t kKeys = 20'000;
    Store store(std::size_t{1} << 15);
    for (std::uint64_t key = 0; key < kKeys; ++key)
        store.put(key, std::to_string(key) + std::string(500, '.'));
    std::uint64_t found = 0;
    for (std::uint64_t key = 0; key < 2 * kKeys; ++key) {
        const std::pmr::string* const value = store.get(key);
        if (value != nullptr && value->compare(0, value->find('.'), std::to_string(key)) == 0) ++found;
    }
    std::printf("%llu of %llu keys found\n", static_cast<unsigned long long>(found),
                static_cast<unsigned long long>(kKeys));
    return found == kKeys ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
