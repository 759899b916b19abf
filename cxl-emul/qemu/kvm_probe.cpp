#include "cxl-emul/qemu/kvm_probe.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/process/child.h"

namespace memtide::emul {
namespace asio = boost::asio;

namespace {
constexpr auto kDeadline = std::chrono::seconds(15);  // a guest that KVM runs answers within a second or two

std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// What the answer depends on: this boot of the machine, the kernel tried and the QEMU that tried it.
std::string fingerprint(const std::string& kernel) {
    const auto stamp = [](const char* path) {
        struct stat info{};
        return ::stat(path, &info) == 0 ? fmt::format("{}:{}", info.st_size, info.st_mtime)
                                        : std::string("-");
    };
    auto boot = slurp("/proc/sys/kernel/random/boot_id");
    return boot.substr(0, boot.find('\n')) + " " + stamp(kernel.c_str()) + " " +
           stamp("/usr/bin/qemu-system-x86_64");
}

asio::awaitable<AcceleratorChoice> boot_once(asio::any_io_executor executor, const std::string& kernel,
                                             const std::string& initramfs, const std::string& folder) {
    const auto console = folder + "/kvm-probe.console";
    const auto output = folder + "/kvm-probe.log";
    ::unlink(console.c_str());
    process::Command command;
    command.argv = {"qemu-system-x86_64",
                    "-nodefaults",
                    "-no-user-config",
                    "-display",
                    "none",
                    "-vga",
                    "none",
                    "-machine",
                    "q35",
                    "-accel",
                    "kvm",
                    "-cpu",
                    "host,hypervisor=off",
                    "-m",
                    "256M",
                    "-no-reboot",
                    "-kernel",
                    kernel,
                    "-initrd",
                    initramfs,
                    "-append",
                    "console=ttyS0 panic=-1 memtide.probe",
                    "-serial",
                    "file:" + console};
    command.standard_output = process::Stream::file(output, false);
    command.standard_error = process::Stream::file(output);
    auto child = process::Child::spawn(command);
    if (!child) co_return AcceleratorChoice{Accelerator::kTcg, child.error().message};
    asio::steady_timer tick(executor);
    const auto deadline = std::chrono::steady_clock::now() + kDeadline;
    std::string why = fmt::format("KVM did not boot the guest kernel within {} s", kDeadline.count());
    while (std::chrono::steady_clock::now() < deadline) {
        tick.expires_after(std::chrono::milliseconds(50));
        co_await tick.async_wait(asio::as_tuple(asio::use_awaitable));
        const bool ended = child->try_wait().has_value();
        if (slurp(console).find("MEMTIDE-PROBE-OK") != std::string::npos)
            co_return AcceleratorChoice{Accelerator::kKvm, "KVM boots the guest kernel"};
        const auto said = slurp(output);
        if (const auto at = said.find("KVM internal error"); at != std::string::npos) {
            why = "KVM fails in early boot: " + said.substr(at, said.find('\n', at) - at);
            break;
        }
        if (ended) {
            why = "QEMU with KVM ended: " + said.substr(0, said.find('\n'));
            break;
        }
    }
    co_return AcceleratorChoice{Accelerator::kTcg, why};
}
}  // namespace

asio::awaitable<AcceleratorChoice> choose_accelerator(asio::any_io_executor executor, std::string kernel,
                                                      std::string initramfs, std::string cache_file,
                                                      std::string work_folder) {
    const int device = ::open("/dev/kvm", O_RDWR | O_CLOEXEC);
    if (device < 0)
        co_return AcceleratorChoice{Accelerator::kTcg, std::string("/dev/kvm: ") + std::strerror(errno)};
    ::close(device);

    const auto wanted = fingerprint(kernel);
    const auto cached = slurp(cache_file);
    if (cached.starts_with(wanted + "\n")) {
        const auto answer = cached.substr(wanted.size() + 1);
        const auto reason = answer.substr(4, answer.find('\n') - 4);
        co_return AcceleratorChoice{answer.starts_with("kvm ") ? Accelerator::kKvm : Accelerator::kTcg,
                                    reason};
    }
    auto choice = co_await boot_once(executor, kernel, initramfs, work_folder);
    const auto scratch = fmt::format("{}.{}", cache_file, ::getpid());
    {
        std::ofstream out(scratch);
        out << wanted << "\n" << to_string(choice.accelerator) << " " << choice.reason << "\n";
    }
    if (::rename(scratch.c_str(), cache_file.c_str()) != 0) ::unlink(scratch.c_str());
    co_return choice;
}

}  // namespace memtide::emul
