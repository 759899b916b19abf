#include "common/fmapi/capture/pcap_writer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace memtide::fmapi {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// Of the file format: its readers turn it round where the byte order is another.
constexpr std::uint32_t kNanosecondMagic = 0xa1b23c4d;
constexpr std::uint32_t kVersion = 4U << 16 | 2U;  // 2.4, the major number first
constexpr std::uint32_t kSnapLength = 65'536;
constexpr std::uint32_t kLinkTypeRawIp = 101;
constexpr std::array<std::uint32_t, 6> kFileHeader{kNanosecondMagic, kVersion,      0, 0,
                                                   kSnapLength,      kLinkTypeRawIp};
using PacketHeader = std::array<std::uint32_t, 4>;  // seconds, nanoseconds, bytes here, bytes on the wire

constexpr std::uint32_t kManagerAddress = 0x0a000001;
constexpr std::uint32_t kFirstSwitchAddress = 0x0a000002;
constexpr std::uint64_t kFirstManagerPort = 40'000;
constexpr std::uint64_t kManagerPorts = 20'000;
constexpr std::size_t kHeaders = 40;      // IPv4 and TCP
constexpr std::size_t kSegment = 16'384;  // bytes of payload

constexpr unsigned kFin = 0x01;
constexpr unsigned kSyn = 0x02;
constexpr unsigned kPush = 0x08;
constexpr unsigned kAck = 0x10;
constexpr unsigned kHeaderWords = 0x5000;

// A capture must not be what fills the disk that the state of a manager is on.
constexpr std::uint64_t kLookForRoomEvery = std::uint64_t{1} << 20;
constexpr std::uint64_t kRoomLeftToOthers = std::uint64_t{64} << 20;

void put_big(std::vector<std::byte>& out, std::size_t value, unsigned width) {
    while (width-- > 0) out.push_back(static_cast<std::byte>(value >> (8 * width)));
}

template <typename T>
bool read_at(int file, std::uint64_t at, T& into) {
    return ::pread(file, &into, sizeof into, static_cast<off_t>(at)) == static_cast<ssize_t>(sizeof into);
}

}  // namespace

std::string PcapWriter::address_of_switch(std::uint32_t which_switch) {
    const std::uint32_t address = kFirstSwitchAddress + which_switch;
    return fmt::format("{}.{}.{}.{}:{}", address >> 24, address >> 16 & 0xff, address >> 8 & 0xff,
                       address & 0xff, kSwitchPort);
}

Result<PcapWriter> PcapWriter::open(const std::string& path) {
    // Not waiting for whoever is to read a pipe, and later not for how fast.
    constexpr int kFlags = O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    struct stat status{};
    const bool is_there = ::stat(path.c_str(), &status) == 0;
    const bool is_file = !is_there || S_ISREG(status.st_mode);
    const int file = ::open(path.c_str(), kFlags | (is_file ? O_RDWR | O_APPEND : O_WRONLY), 0600);
    if (file < 0 && errno == ENXIO)
        return fail(ErrorCode::kUnavailable,
                    fmt::format("write to {}: nobody reads this pipe; start its reader first", path));
    if (file < 0) return fail_errno("write to", path, errno);
    PcapWriter writer(path, file);
    writer.is_file_ = is_file;
    // Until it is closed: two that append would cut off each other's packets after a write that failed.
    if (is_file && ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return fail(ErrorCode::kConflict, fmt::format("write to {}: another capture writes to it", path));
    if (auto ready = writer.take_up(); !ready) return std::unexpected(std::move(ready).error());
    return writer;
}

PcapWriter::~PcapWriter() {
    if (file_ >= 0) ::close(file_);
}

PcapWriter::PcapWriter(PcapWriter&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      is_file_(other.is_file_),
      size_(other.size_),
      room_known_(other.room_known_),
      begun_(other.begun_),
      connections_(std::move(other.connections_)) {}

// Behind the last whole packet that is there already.
Result<> PcapWriter::take_up() {
    struct stat status{};
    if (::fstat(file_, &status) != 0) return fail_errno("look at", path_, errno);
    if (!is_file_ || status.st_size == 0) return append(std::as_bytes(std::span(kFileHeader)));
    auto header = kFileHeader;
    if (!read_at(file_, 0, header) || header != kFileHeader)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("write to {}: something else than a capture of Memtide's is in it", path_));
    const auto whole = static_cast<std::uint64_t>(status.st_size);
    size_ = sizeof kFileHeader;
    PacketHeader packet{};
    while (size_ + sizeof packet <= whole && read_at(file_, size_, packet)) {
        const std::uint64_t next = size_ + sizeof packet + packet[2];
        if (packet[2] > kSnapLength || next > whole) break;
        size_ = next;
    }
    if (size_ < whole && ::ftruncate(file_, static_cast<off_t>(size_)) != 0)
        return fail_errno("cut off an unfinished packet of", path_, errno);
    room_known_ = size_;
    // Each connection there has two packets at least, so that the ports of the next ones are others.
    begun_ = (size_ - sizeof kFileHeader) / (2 * (sizeof packet + kHeaders));
    return {};
}

Result<> PcapWriter::check_room() {
    if (!is_file_ || size_ - room_known_ < kLookForRoomEvery) return {};
    room_known_ = size_;
    struct statvfs disk{};
    if (::fstatvfs(file_, &disk) != 0 || disk.f_bavail * disk.f_frsize >= kRoomLeftToOthers) return {};
    return fail(ErrorCode::kExhausted,
                fmt::format("write to {}: less than {} MiB are left on its disk, which are for others", path_,
                            kRoomLeftToOthers >> 20));
}

Result<> PcapWriter::append(std::span<const std::byte> bytes) {
    if (auto room = check_room(); !room) return room;
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written == static_cast<ssize_t>(bytes.size())) {
        size_ += bytes.size();
        return {};
    }
    const int why = written < 0 ? errno : is_file_ ? ENOSPC : EAGAIN;
    if (written > 0 && is_file_) (void)!::ftruncate(file_, static_cast<off_t>(size_));
    if (!is_file_ && why == EAGAIN)
        return fail(ErrorCode::kExhausted, fmt::format("write to {}: its reader is too slow", path_));
    return fail_errno("write to", path_, why);
}

Result<> PcapWriter::add_segment(Connection& connection, Sender sender, unsigned flags,
                                 std::span<const std::byte> payload, Time time) {
    const bool from_manager = sender == Sender::kManager;
    std::uint32_t& sent = from_manager ? connection.sent_by_manager : connection.sent_by_switch;
    const auto since = time.time_since_epoch();
    const auto size = static_cast<std::uint32_t>(kHeaders + payload.size());
    const PacketHeader header{
        static_cast<std::uint32_t>(std::chrono::duration_cast<seconds>(since).count()),
        static_cast<std::uint32_t>(std::chrono::duration_cast<nanoseconds>(since % seconds(1)).count()), size,
        size};
    std::vector<std::byte> packet;
    packet.reserve(sizeof header + size);
    packet.resize(sizeof header);
    std::memcpy(packet.data(), header.data(), sizeof header);
    put_big(packet, 0x4500, 2);  // IPv4, no options
    put_big(packet, size, 2);
    put_big(packet, 0x00004000, 4);  // no fragments
    put_big(packet, 0x4006, 2);      // time to live, TCP
    put_big(packet, 0, 2);           // a checksum of 0: left to the network card, as captures often have it
    put_big(packet, from_manager ? kManagerAddress : connection.switch_address, 4);
    put_big(packet, from_manager ? connection.switch_address : kManagerAddress, 4);
    put_big(packet, from_manager ? connection.manager_port : kSwitchPort, 2);
    put_big(packet, from_manager ? kSwitchPort : connection.manager_port, 2);
    put_big(packet, sent, 4);
    const std::uint32_t got = from_manager ? connection.sent_by_switch : connection.sent_by_manager;
    put_big(packet, (flags & kAck) != 0 ? got : 0, 4);
    put_big(packet, kHeaderWords | flags, 2);
    put_big(packet, 0xffff0000, 4);  // window, checksum
    put_big(packet, 0, 2);
    packet.insert(packet.end(), payload.begin(), payload.end());
    sent += (flags & (kSyn | kFin)) != 0 ? 1 : static_cast<std::uint32_t>(payload.size());
    return append(packet);
}

Result<> PcapWriter::begin(std::uint64_t connection, std::uint32_t which_switch, Time time) {
    const Connection fresh{
        .switch_address = kFirstSwitchAddress + which_switch,
        .manager_port = static_cast<std::uint16_t>(kFirstManagerPort + begun_++ % kManagerPorts)};
    Connection& begun = connections_.insert_or_assign(connection, fresh).first->second;
    if (auto asked = add_segment(begun, Sender::kManager, kSyn, {}, time); !asked) return asked;
    return add_segment(begun, Sender::kSwitch, kSyn | kAck, {}, time);
}

Result<> PcapWriter::write(std::uint64_t connection, Sender sender, std::span<const std::byte> bytes,
                           Time time) {
    if (!connections_.contains(connection))
        if (auto begun = begin(connection, 0, time); !begun) return begun;
    Connection& sent = connections_.at(connection);
    while (!bytes.empty()) {
        const std::size_t size = std::min(bytes.size(), kSegment);
        if (auto added = add_segment(sent, sender, kPush | kAck, bytes.first(size), time); !added)
            return added;
        bytes = bytes.subspan(size);
    }
    return {};
}

Result<> PcapWriter::end(std::uint64_t connection, Time time) {
    const auto found = connections_.find(connection);
    if (found == connections_.end()) return {};
    Connection ended = found->second;
    connections_.erase(found);
    if (auto one = add_segment(ended, Sender::kManager, kFin | kAck, {}, time); !one) return one;
    return add_segment(ended, Sender::kSwitch, kFin | kAck, {}, time);
}

}  // namespace memtide::fmapi
