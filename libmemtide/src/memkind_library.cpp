#include "libmemtide/src/memkind_library.h"

#include <optional>

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>

#include "libmemtide/src/slow_path.h"

namespace memtide::library {
namespace {

constexpr char kName[] = "libmemkind.so.0";

template <typename Function>
bool find(void* library, const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(library, name));
    return into != nullptr;
}

}  // namespace

Result<const MemkindLibrary*> load_memkind() {
    static std::optional<MemkindLibrary> loaded;
    if (loaded) return &*loaded;
    const auto missing = [] {
        const char* const why = ::dlerror();
        return fail(
            ErrorCode::kConflict,
            fmt::format("heaps need {}, which cannot be loaded ({}); on Debian: apt install libmemkind0",
                        kName, why == nullptr ? "it is not as expected" : why));
    };
    void* const library = ::dlopen(kName, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) return missing();
    MemkindLibrary found;
    memkind_t* default_kind = nullptr;
    const bool is_complete =
        find(library, "memkind_create_fixed", found.create_fixed) &&
        find(library, "memkind_malloc", found.malloc) && find(library, "memkind_calloc", found.calloc) &&
        find(library, "memkind_posix_memalign", found.posix_memalign) &&
        find(library, "memkind_realloc", found.realloc) && find(library, "memkind_free", found.free) &&
        find(library, "memkind_malloc_usable_size", found.usable_size) &&
        find(library, "memkind_error_message", found.error_message) &&
        find(library, "MEMKIND_DEFAULT", default_kind);
    if (!is_complete) return missing();
    found.default_kind = *default_kind;
    // Its allocator registers for fork(2) when it is first used. Who comes later is asked earlier: so nobody
    // is amid a slow path, which allocates, when the allocator's own locks are taken.
    found.free(found.default_kind, found.malloc(found.default_kind, 1));
    ::pthread_atfork([] { slow_path().lock(); }, [] { slow_path().unlock(); }, [] { slow_path().unlock(); });
    loaded = found;
    return &*loaded;
}

}  // namespace memtide::library
