#include "common/consent/userfault.h"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/consent/userfault_abi.h"

namespace memtide {
namespace {

namespace abi = userfault_abi;

std::unexpected<Error> refused(std::string_view action, int error) {
    const std::string what = fmt::format("cannot {} memory by userfaultfd", action);
    switch (error) {
        case ESRCH:
            return fail(ErrorCode::kNotFound, what + ": the process is gone");
        case EBUSY:
            return fail(ErrorCode::kConflict, what + ": another userfaultfd has it");
        case ENOENT:
            return fail(ErrorCode::kConflict, what + ": it is not covered");
        case EINVAL:
        case EPERM:  // of a file that may not be written to
            return fail(ErrorCode::kInvalidArgument, what + ": its mapping is of another kind");
        default:
            return fail_errno(action, "memory by userfaultfd", error);
    }
}

// Of /proc/self/fdinfo: "API:\taa:80060000:7ff", that is the API, the features asked for, those there are.
std::optional<std::uint64_t> features_of(int descriptor) {
    std::ifstream info(fmt::format("/proc/self/fdinfo/{}", descriptor));
    for (std::string line; std::getline(info, line);) {
        constexpr std::string_view kPrefix = "API:\taa:";
        if (!line.starts_with(kPrefix)) continue;
        std::uint64_t features = 0;
        const char* const begin = line.data() + kPrefix.size();
        const auto [end, error] = std::from_chars(begin, line.data() + line.size(), features, 16);
        if (error == std::errc{} && *end == ':') return features;
    }
    return std::nullopt;
}

}  // namespace

Result<Userfault> Userfault::open() {
    const int descriptor =
        static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | abi::kUserModeOnly));
    if (descriptor < 0)
        return fail(errno == EPERM ? ErrorCode::kPermission : ErrorCode::kUnavailable,
                    fmt::format("userfaultfd(2): {}", fail_errno("call", "it", errno).error().message));
    Userfault userfault(descriptor);
    abi::Api api{.features = abi::kFeatures};
    if (::ioctl(descriptor, abi::kApi, &api) != 0)
        return fail(ErrorCode::kUnavailable,
                    "this kernel cannot protect pages from reads (UFFD_FEATURE_RWP, Linux 7.3)");
    return userfault;
}

Result<Userfault> Userfault::adopt(int descriptor) {
    Userfault userfault(descriptor);
    constexpr std::uint64_t kInitialized = 1U << 31;  // of the kernel's own, fs/userfaultfd.c
    const auto features = features_of(descriptor);
    if (!features || (*features & ~kInitialized) != abi::kFeatures)
        return fail(ErrorCode::kInvalidArgument,
                    "it is no userfaultfd for asynchronous read-write protection");
    return userfault;
}

Userfault::~Userfault() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Result<> Userfault::cover(std::uint64_t begin, std::uint64_t end) {
    abi::Register wanted{.range = {begin, end - begin}, .mode = abi::kRegisterReadWrite};
    if (::ioctl(descriptor_, abi::kRegister, &wanted) != 0) return refused("cover", errno);
    return {};
}

Result<> Userfault::protect(std::uint64_t begin, std::uint64_t end) {
    return set_protection(begin, end, abi::kProtect);
}

Result<> Userfault::unprotect(std::uint64_t begin, std::uint64_t end) {
    return set_protection(begin, end, 0);
}

Result<> Userfault::set_protection(std::uint64_t begin, std::uint64_t end, std::uint64_t mode) {
    abi::Protect wanted{.range = {begin, end - begin}, .mode = mode};
    if (::ioctl(descriptor_, abi::kReadWriteProtect, &wanted) != 0) return refused("protect", errno);
    return {};
}

Result<> Userfault::uncover(std::uint64_t begin, std::uint64_t end) {
    abi::Range range{begin, end - begin};
    if (::ioctl(descriptor_, abi::kUnregister, &range) != 0) return refused("uncover", errno);
    return {};
}

}  // namespace memtide
