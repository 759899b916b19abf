// libmemtide-consent.so, which `memtide agent run` preloads: lets the agent see which pages this program
// touches (common/consent/consent_table.h). Whatever goes wrong, the program runs as it would without it: no
// output, no thread, errno as it was, one descriptor with a high number. It needs nothing but the C library.
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/consent/consent_table.h"
#include "common/consent/userfault_abi.h"

namespace {

using memtide::consent_table::kSize;
using memtide::consent_table::Table;
namespace abi = memtide::userfault_abi;

// Above the numbers that programs choose themselves, below the usual limit of 1024.
constexpr int kHighDescriptor = 900;

int given = -1;            // the userfaultfd
struct stat given_file{};  // what it was when it was opened

// -1: none is to be had.
int open_userfault() {
    const int opened =
        static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | abi::kUserModeOnly));
    if (opened < 0) return -1;
    abi::Api api;
    api.features = abi::kFeatures;
    if (ioctl(opened, abi::kApi, &api) != 0) {
        close(opened);
        return -1;
    }
    const int high = fcntl(opened, F_DUPFD_CLOEXEC, kHighDescriptor);
    if (high < 0) return opened;
    close(opened);
    return high;
}

// Whether it is told to the agent now.
bool tell(int descriptor) {
    const int file =
        static_cast<int>(syscall(SYS_memfd_create, memtide::consent_table::kMemfdName, 1U /* MFD_CLOEXEC */));
    if (file < 0) return false;
    void* mapped = MAP_FAILED;
    if (ftruncate(file, kSize) == 0)
        mapped = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (mapped == MAP_FAILED) return false;
    // A child has another memory than this userfaultfd is for.
    if (madvise(mapped, kSize, MADV_DONTFORK) != 0) {
        munmap(mapped, kSize);
        return false;
    }
    auto* const table = static_cast<Table*>(mapped);
    table->descriptor = descriptor;
    std::memcpy(table->magic, memtide::consent_table::kMagic, sizeof table->magic);
    return true;
}

void consent() {
    const int descriptor = open_userfault();
    if (descriptor < 0) return;
    if (fstat(descriptor, &given_file) != 0 || !tell(descriptor)) {
        close(descriptor);
        return;
    }
    given = descriptor;
}

// In the child of a fork(2): its copy of the descriptor is for the parent's memory. The program may have
// closed it meanwhile, and have another file under its number.
void consent_after_fork() {
    const int error = errno;
    struct stat now{};
    if (given >= 0 && fstat(given, &now) == 0 && now.st_dev == given_file.st_dev &&
        now.st_ino == given_file.st_ino)
        close(given);
    given = -1;
    consent();
    errno = error;
}

__attribute__((constructor)) void consent_at_start() {
    const int error = errno;
    pthread_atfork(nullptr, nullptr, consent_after_fork);
    consent();
    errno = error;
}

}  // namespace
