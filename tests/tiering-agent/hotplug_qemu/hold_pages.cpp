// Keeps pages on a NUMA node until SIGTERM, inside a test guest:  memtide-hold-pages NODE PAGES
// plain|locked|pinned
//
// plain and locked (mlock) pages can be moved away by the kernel; pinned ones, which a pipe holds (vmsplice),
// cannot. Prints "holding PID", at the end "intact" when every byte is still what it was, wherever the pages
// are now.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <numaif.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

int fail(const char* what) {
    std::fprintf(stderr, "memtide-hold-pages: %s: %s\n", what, std::strerror(errno));
    return 1;
}

unsigned char pattern_at(std::size_t i) { return static_cast<unsigned char>(i * 7 + i / 4096); }

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return fail("usage: NODE PAGES plain|locked|pinned");
    const unsigned long nodes = 1UL << std::atoi(argv[1]);
    const std::size_t size = static_cast<std::size_t>(std::atoi(argv[2])) * 4096;
    const std::string_view how = argv[3];

    sigset_t termination;
    sigemptyset(&termination);
    sigaddset(&termination, SIGTERM);
    sigprocmask(SIG_BLOCK, &termination, nullptr);

    void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail("mmap");
    if (mbind(memory, size, MPOL_BIND, &nodes, sizeof nodes * 8, 0) != 0) return fail("mbind");
    auto* const bytes = static_cast<unsigned char*>(memory);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern_at(i);
    if (how == "locked" && mlock(memory, size) != 0) return fail("mlock");
    int ends[2] = {-1, -1};
    if (how == "pinned") {
        const iovec whole{.iov_base = memory, .iov_len = size};
        if (pipe(ends) != 0) return fail("pipe");
        if (vmsplice(ends[1], &whole, 1, SPLICE_F_NONBLOCK) <= 0) return fail("vmsplice");
    }

    std::printf("holding %d\n", getpid());
    std::fflush(stdout);
    int received = 0;
    sigwait(&termination, &received);
    for (std::size_t i = 0; i < size; ++i)
        if (bytes[i] != pattern_at(i)) return fail("a byte changed");
    std::printf("intact\n");
    return 0;
}
