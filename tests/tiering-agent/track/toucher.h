#pragma once

#include <array>
#include <csignal>
#include <cstdint>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tiering-agent/observe/address_space.h"
#include "tiering-agent/policy/heat_map.h"

namespace memtide::agent {

// A process that touches some of its pages when it is told to.
class Toucher {
  public:
    explicit Toucher(std::size_t pages) : size_(pages << kPageShift) {
        memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(memory_, size_, MADV_NOHUGEPAGE);
        if (pipe(go_.data()) != 0 || pipe(done_.data()) != 0) throw std::runtime_error("no pipe");
        pid_ = fork();
        if (pid_ != 0) return;
        std::uint64_t page = 0;
        while (read(go_[0], &page, sizeof page) == sizeof page) {
            volatile char& byte = static_cast<volatile char*>(memory_)[(page & ~kRead) << kPageShift];
            if ((page & kRead) != 0)
                static_cast<void>(char{byte});
            else
                byte = 1;
            if (write(done_[1], &page, sizeof page) < 0) break;
        }
        _exit(0);
    }
    ~Toucher() {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        for (const int file : {go_[0], go_[1], done_[0], done_[1]}) close(file);
        munmap(memory_, size_);
    }
    Toucher(const Toucher&) = delete;
    Toucher& operator=(const Toucher&) = delete;
    void touch(std::uint64_t page) const { tell(page); }
    void look_at(std::uint64_t page) const { tell(page | kRead); }  // reads
    [[nodiscard]] int pid() const { return pid_; }
    [[nodiscard]] VirtualRange memory() const {
        const auto address = reinterpret_cast<std::uint64_t>(memory_);
        return {address, address + size_};
    }
    [[nodiscard]] std::uint64_t first_page() const { return memory().begin >> kPageShift; }

  private:
    static constexpr std::uint64_t kRead = std::uint64_t{1} << 63;
    void tell(std::uint64_t page) const {
        EXPECT_EQ(write(go_[1], &page, sizeof page), ssize_t{sizeof page});
        EXPECT_EQ(read(done_[0], &page, sizeof page), ssize_t{sizeof page});
    }
    std::size_t size_;
    void* memory_;
    std::array<int, 2> go_{};
    std::array<int, 2> done_{};
    int pid_ = 0;
};

}  // namespace memtide::agent
