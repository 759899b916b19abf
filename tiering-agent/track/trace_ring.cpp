#include "tiering-agent/track/trace_ring.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace memtide::agent {
namespace {

const std::size_t kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

}  // namespace

Result<TraceRing> TraceRing::open(std::uint64_t event, int thread, std::size_t bytes) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_TRACEPOINT;
    attributes.size = sizeof attributes;
    attributes.config = event;
    attributes.sample_period = 1;
    attributes.sample_type = PERF_SAMPLE_RAW;
    const int file =
        static_cast<int>(::syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (file < 0 && errno == ENOSYS)
        return fail(ErrorCode::kUnavailable, "this kernel has no perf events (CONFIG_PERF_EVENTS)");
    if (file < 0) return fail_errno("open", "a perf event", errno);
    const std::size_t size = kPage + std::bit_ceil(std::max(bytes, kPage));
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        const int error = errno;
        ::close(file);
        return fail_errno("map", "a perf event", error);
    }
    return TraceRing(file, {static_cast<std::byte*>(memory), size});
}

TraceRing::~TraceRing() {
    if (file_ < 0) return;
    ::munmap(memory_.data(), memory_.size());
    ::close(file_);
}

TraceRing::TraceRing(TraceRing&& other) noexcept
    : file_(std::exchange(other.file_, -1)), memory_(std::exchange(other.memory_, {})) {}

TraceRing& TraceRing::operator=(TraceRing&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(memory_, other.memory_);
    return *this;
}

void TraceRing::drain(const std::function<void(std::span<const std::byte>)>& raw,
                      const std::function<void()>& lost) {
    auto* const page = reinterpret_cast<perf_event_mmap_page*>(memory_.data());
    const auto data = memory_.subspan(kPage);
    const std::atomic_ref<__u64> head_now(page->data_head);
    const std::atomic_ref<__u64> tail_now(page->data_tail);
    const std::uint64_t head = head_now.load(std::memory_order_acquire);
    std::uint64_t tail = tail_now.load(std::memory_order_relaxed);
    std::vector<std::byte> record;
    const auto copy = [&](std::size_t size) {
        record.resize(size);
        const std::size_t at = tail % data.size();
        const std::size_t first = std::min(size, data.size() - at);
        std::memcpy(record.data(), data.data() + at, first);
        std::memcpy(record.data() + first, data.data(), size - first);
    };
    perf_event_header header{};
    while (head - tail >= sizeof header) {
        copy(sizeof header);
        std::memcpy(&header, record.data(), sizeof header);
        if (header.size < sizeof header || header.size > head - tail) break;
        copy(header.size);
        const auto body = std::span<const std::byte>(record).subspan(sizeof header);
        std::uint32_t size = 0;
        if (header.type == PERF_RECORD_LOST) lost();
        if (header.type == PERF_RECORD_SAMPLE && body.size() >= sizeof size) {
            std::memcpy(&size, body.data(), sizeof size);
            raw(body.subspan(sizeof size).first(std::min<std::size_t>(size, body.size() - sizeof size)));
        }
        tail += header.size;
    }
    // What cannot be read as a record is passed over.
    tail_now.store(head, std::memory_order_release);
}

void TraceRing::wait(std::chrono::milliseconds most) const {
    pollfd poll{.fd = file_, .events = POLLIN, .revents = 0};
    ::poll(&poll, 1, static_cast<int>(most.count()));
}

}  // namespace memtide::agent
