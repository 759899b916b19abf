// Hands and eyes on pooled memory, for scripts/demo and the QEMU tests. Inside a guest:
//
//   memtide-memory-probe hold --node N --bytes B [--lock | --pin] [--until-terminated] --text T
//       allocates B bytes on node N, fills them with T, prints "holding PID", and keeps them until its
//       standard input ends, or until SIGTERM (an agent that drains the node migrates them meanwhile); then
//       checks every byte and prints "intact". With --lock they are mlocked, which migration respects but
//       survives; with --pin they cannot be migrated: a pipe refers to them, as in-flight I/O would.
//   memtide-memory-probe peek --physical ADDRESS --bytes B
//       prints B bytes of physical memory as hex, through /proc/kcore: what the device really holds,
//       without the kernel zeroing it first as it does for new pages.
//
// Beside the emulated switch:
//
//   memtide-memory-probe find --file MEDIA --text T
//       prints the first offset of T in a media file, or nothing; holes are passed over.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <elf.h>
#include <fcntl.h>
#include <numaif.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/bytes.h"

namespace {

using memtide::Bytes;

int fail(const std::string& what) {
    std::fprintf(stderr, "memtide-memory-probe: %s\n", what.c_str());
    return 1;
}

// Where the text repeats, byte by byte.
char expected_at(const std::string& text, std::size_t i) { return text[i % text.size()]; }

// Puts the pages themselves into a pipe that nobody reads: each then has a reference that keeps it in place.
bool pin_by_pipe(void* memory, Bytes size) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    const iovec pages{memory, size.value};
    return vmsplice(ends[1], &pages, 1, 0) == static_cast<ssize_t>(size.value);
}

struct Hold {
    int node = 0;
    bool lock = false;
    bool pin = false;
    bool until_terminated = false;
};

sigset_t termination() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    return signals;
}

void wait_for_the_end(const Hold& how) {
    if (how.until_terminated) {
        const sigset_t signals = termination();
        int received = 0;
        sigwait(&signals, &received);
        return;
    }
    char ignored = 0;
    while (read(STDIN_FILENO, &ignored, 1) > 0) {
    }
}

int hold(const Hold& how, Bytes size, const std::string& text) {
    if (how.until_terminated) {
        const sigset_t signals = termination();
        sigprocmask(SIG_BLOCK, &signals, nullptr);
    }
    void* const memory =
        mmap(nullptr, size.value, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return fail("mmap failed");
    const unsigned long mask = 1UL << how.node;
    // Preferred, not bound: a bound page could not leave the node, and a drain should move it.
    if (mbind(memory, size.value, MPOL_PREFERRED, &mask, sizeof mask * 8, 0) != 0)
        return fail("mbind to node " + std::to_string(how.node) + " failed: " + std::strerror(errno));
    auto* const bytes = static_cast<char*>(memory);
    for (std::size_t i = 0; i < size.value; ++i) bytes[i] = expected_at(text, i);

    std::vector<void*> pages;
    for (std::size_t offset = 0; offset < size.value; offset += 4096) pages.push_back(bytes + offset);
    std::vector<int> where(pages.size(), -1);
    if (move_pages(0, pages.size(), pages.data(), nullptr, where.data(), 0) != 0)
        return fail("move_pages failed");
    for (const int place : where)
        if (place != how.node) return fail("a page landed on node " + std::to_string(place));

    if (how.lock && mlock(memory, size.value) != 0)
        return fail(std::string("mlock failed: ") + std::strerror(errno));
    if (how.pin && !pin_by_pipe(memory, size)) return fail("vmsplice took less; --pin holds up to 64KiB");
    std::printf("holding %d\n", getpid());
    std::fflush(stdout);
    wait_for_the_end(how);
    for (std::size_t i = 0; i < size.value; ++i)
        if (bytes[i] != expected_at(text, i)) return fail("byte " + std::to_string(i) + " changed");
    std::printf("intact\n");
    return 0;
}

// The kcore segment that maps a physical address: the file offset of that address, or -1.
off_t kcore_offset(int kcore, std::uint64_t physical) {
    Elf64_Ehdr header{};
    if (pread(kcore, &header, sizeof header, 0) != sizeof header) return -1;
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment{};
        const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
        if (pread(kcore, &segment, sizeof segment, at) != sizeof segment) return -1;
        // Segments without a physical address carry all ones there (or zero for the kernel's text).
        if (segment.p_type != PT_LOAD || segment.p_paddr == ~0ULL) continue;
        if (physical >= segment.p_paddr && physical - segment.p_paddr < segment.p_memsz)
            return static_cast<off_t>(segment.p_offset + (physical - segment.p_paddr));
    }
    return -1;
}

int peek(std::uint64_t physical, std::uint64_t size) {
    const int kcore = open("/proc/kcore", O_RDONLY | O_CLOEXEC);
    if (kcore < 0) return fail("open /proc/kcore failed");
    const off_t offset = kcore_offset(kcore, physical);
    if (offset < 0) return fail("no memory at that physical address");
    std::vector<unsigned char> bytes(size);
    if (pread(kcore, bytes.data(), bytes.size(), offset) != static_cast<ssize_t>(bytes.size()))
        return fail("read of /proc/kcore failed");
    for (const unsigned char byte : bytes) std::printf("%02x", byte);
    std::printf("\n");
    return 0;
}

int find(const std::string& path, const std::string& text) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return fail("open " + path + " failed: " + std::strerror(errno));
    off_t hole = 0;
    for (off_t data = lseek(file, 0, SEEK_DATA); data >= 0; data = lseek(file, hole, SEEK_DATA)) {
        hole = lseek(file, data, SEEK_HOLE);
        std::string bytes(static_cast<std::size_t>(hole - data), 0);
        if (pread(file, bytes.data(), bytes.size(), data) != static_cast<ssize_t>(bytes.size()))
            return fail("read of " + path + " failed");
        if (const auto at = bytes.find(text); at != std::string::npos) {
            std::printf("%lld\n", static_cast<long long>(data) + static_cast<long long>(at));
            break;
        }
    }
    close(file);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Writes, reads and searches pooled memory for tests"};
    app.require_subcommand(1);
    Hold how;
    std::string size = "64KiB";
    std::string text = "memtide";
    auto* const hold_command =
        app.add_subcommand("hold", "Fill memory of a node and keep it until stdin ends");
    hold_command->add_option("--node", how.node, "NUMA node")->required()->check(CLI::Range(0, 63));
    hold_command->add_option("--bytes", size, "How much, e.g. 64KiB");
    hold_command->add_option("--text", text, "What to fill it with");
    hold_command->add_flag("--lock", how.lock, "mlock the pages");
    hold_command->add_flag("--pin", how.pin, "Keep the pages from being migrated");
    hold_command->add_flag("--until-terminated", how.until_terminated,
                           "Wait for SIGTERM, not for stdin to end");
    std::uint64_t physical = 0;
    auto* const peek_command = app.add_subcommand("peek", "Print physical memory as hex");
    peek_command->add_option("--physical", physical, "Physical address")->required();
    peek_command->add_option("--bytes", size, "How much, e.g. 64B");
    std::string file;
    auto* const find_command = app.add_subcommand("find", "Print where a media file holds a text");
    find_command->add_option("--file", file, "Media file")->required();
    find_command->add_option("--text", text, "What to look for");
    CLI11_PARSE(app, argc, argv);

    const auto bytes = memtide::parse_bytes(size);
    if (!bytes || bytes->value == 0 || text.empty())
        return fail("--bytes must be a size above 0, --text not empty");
    if (find_command->parsed()) return find(file, text);
    return hold_command->parsed() ? hold(how, *bytes, text) : peek(physical, bytes->value);
}
