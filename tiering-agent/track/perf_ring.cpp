#include "tiering-agent/track/perf_ring.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace memtide::agent {
namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

}  // namespace

Result<PerfRing> PerfRing::open(perf_event_attr attributes, const Where& where, std::size_t bytes) {
    attributes.size = sizeof attributes;
    const int file = static_cast<int>(::syscall(SYS_perf_event_open, &attributes, where.thread,
                                                where.processor, where.group, PERF_FLAG_FD_CLOEXEC));
    if (file < 0 && errno == ENOSYS)
        return fail(ErrorCode::kUnavailable, "this kernel has no perf events (CONFIG_PERF_EVENTS)");
    if (file < 0) return fail_errno("open", "a perf event", errno);
    if (bytes == 0) return PerfRing(file, {});
    const std::size_t size = kPage + std::bit_ceil(std::max(bytes, kPage));
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        const int error = errno;
        ::close(file);
        return fail_errno("map", "a perf event", error);
    }
    return PerfRing(file, {static_cast<std::byte*>(memory), size});
}

PerfRing::~PerfRing() {
    if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
    if (file_ >= 0) ::close(file_);
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : file_(std::exchange(other.file_, -1)), memory_(std::exchange(other.memory_, {})) {}

PerfRing& PerfRing::operator=(PerfRing&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(memory_, other.memory_);
    return *this;
}

void PerfRing::drain(const Record& record) {
    if (memory_.empty()) return;
    auto* const page = reinterpret_cast<perf_event_mmap_page*>(memory_.data());
    const auto data = memory_.subspan(kPage);
    const std::atomic_ref<__u64> head_now(page->data_head);
    const std::atomic_ref<__u64> tail_now(page->data_tail);
    const std::uint64_t head = head_now.load(std::memory_order_acquire);
    std::uint64_t tail = tail_now.load(std::memory_order_relaxed);
    std::vector<std::byte> copied;
    const auto copy = [&](std::size_t size) {
        copied.resize(size);
        const std::size_t at = tail % data.size();
        const std::size_t first = std::min(size, data.size() - at);
        std::memcpy(copied.data(), data.data() + at, first);
        std::memcpy(copied.data() + first, data.data(), size - first);
    };
    perf_event_header header{};
    while (head - tail >= sizeof header) {
        copy(sizeof header);
        std::memcpy(&header, copied.data(), sizeof header);
        if (header.size < sizeof header || header.size > head - tail) break;
        copy(header.size);
        record(header.type, std::span<const std::byte>(copied).subspan(sizeof header));
        tail += header.size;
    }
    // What cannot be read as a record is passed over.
    tail_now.store(head, std::memory_order_release);
}

void PerfRing::wait(std::chrono::milliseconds most) const {
    pollfd poll{.fd = file_, .events = POLLIN, .revents = 0};
    ::poll(&poll, 1, static_cast<int>(most.count()));
}

void PerfRing::enable() const { ::ioctl(file_, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP); }

void PerfRing::disable() const { ::ioctl(file_, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP); }

Result<> PerfRing::join(const PerfRing& other) const {
    if (::ioctl(file_, PERF_EVENT_IOC_SET_OUTPUT, other.file_) != 0)
        return fail_errno("join", "perf events", errno);
    return {};
}

perf_event_attr trace_event(std::uint64_t event) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.config = event;
    attributes.sample_period = 1;
    attributes.sample_type = PERF_SAMPLE_RAW;
    return attributes;
}

std::span<const std::byte> raw_data(std::uint32_t type, std::span<const std::byte> body) {
    std::uint32_t size = 0;
    if (type != PERF_RECORD_SAMPLE || body.size() < sizeof size) return {};
    std::memcpy(&size, body.data(), sizeof size);
    return body.subspan(sizeof size).first(std::min<std::size_t>(size, body.size() - sizeof size));
}

}  // namespace memtide::agent
