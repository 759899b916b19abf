#include "fabric-manager/store/entry_log.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

namespace memtide::fm {

namespace log_format {

namespace {
void put(std::string& out, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
}
}  // namespace

std::uint64_t number_at(std::string_view bytes, std::size_t offset, std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
        value |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
    return value;
}

std::string segment_header(std::uint64_t generation, std::uint64_t first) {
    std::string out(kSegmentMagic);
    put(out, generation, 8);
    put(out, first, 8);
    put(out, 0, 8);
    put(out, XXH64(out.data(), out.size(), 0), 8);
    return out;
}

std::uint64_t entry_sum(std::uint64_t generation, std::uint64_t number, std::string_view payload) {
    std::string head;
    put(head, payload.size(), 4);
    put(head, number, 8);
    return XXH64(payload.data(), payload.size(), XXH64(head.data(), head.size(), generation));
}

void add_entry(std::string& out, std::uint64_t generation, std::uint64_t number, std::string_view payload) {
    out += kEntryMagic;
    put(out, payload.size(), 4);
    put(out, number, 8);
    put(out, entry_sum(generation, number, payload), 8);
    out += payload;
}

}  // namespace log_format

Result<EntryLog> EntryLog::begin(StatePaths paths, LogPosition position, Fault fault) {
    EntryLog log(std::move(paths), position, std::move(fault));
    if (Result<> ok = log.begin_segment(); !ok) return std::unexpected(ok.error());
    return log;
}

Result<> EntryLog::begin_segment() {
    std::string path = fmt::format("{}{:016x}", paths_.log_prefix(), position_.last + 1);
    Result<File> file = open_file(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND);
    if (!file) return std::unexpected(file.error());
    const std::string header = log_format::segment_header(position_.generation, position_.last + 1);
    if (Result<> ok = write_all(*file, header, path); !ok) return ok;
    if (fsync(file->fd()) != 0) return std::unexpected(file_error("sync", path, errno));
    if (Result<> ok = sync_folder_of(path); !ok) return ok;
    path_ = std::move(path);
    file_ = *std::move(file);
    size_ = header.size();
    return {};
}

Result<> EntryLog::append(const std::vector<std::string>& payloads) {
    if (broken_)
        return fail(ErrorCode::kIo, fmt::format("log {} is not written to after a failed sync", path_));
    std::string bytes;
    std::size_t total = 0;
    for (const std::string& one : payloads) total += log_format::kEntryHeader + one.size();
    bytes.reserve(total);
    std::uint64_t number = position_.last;
    for (const std::string& one : payloads) log_format::add_entry(bytes, position_.generation, ++number, one);
    if (Result<> ok = write_bytes(bytes); !ok) {
        if (!cut(size_)) broken_ = true;
        return ok;
    }
    if (Result<> ok = sync_bytes(); !ok) {
        // The kernel may have dropped what it could not write, and forgotten that it did: a second sync would
        // succeed and mean nothing.
        broken_ = true;
        return ok;
    }
    size_ += bytes.size();
    position_.last = number;
    return {};
}

Result<> EntryLog::write_bytes(std::string_view bytes) const {
    if (Result<> ok = pass("write", "write"); !ok) return ok;
    if (Result<> ok = write_all(file_, bytes, path_); !ok) return ok;
    return pass("written", "write");
}

Result<> EntryLog::sync_bytes() const {
    if (Result<> ok = pass("sync", "sync"); !ok) return ok;
    if (fdatasync(file_.fd()) != 0) return std::unexpected(file_error("sync", path_, errno));
    return pass("synced", "sync");
}

Result<> EntryLog::pass(std::string_view point, std::string_view action) const {
    const int error_number = fault_ ? fault_(point) : 0;
    if (error_number == 0) return {};
    return std::unexpected(file_error(action, path_, error_number));
}

Result<> EntryLog::cut(std::uint64_t size) {
    if (Result<> ok = pass("cut", "cut"); !ok) return ok;
    if (ftruncate(file_.fd(), static_cast<off_t>(size)) != 0 || fdatasync(file_.fd()) != 0)
        return std::unexpected(file_error("cut", path_, errno));
    return {};
}

Result<> EntryLog::rotate() {
    if (size_ == log_format::kSegmentHeader) return {};  // nothing in it yet
    return begin_segment();
}

void EntryLog::remove_up_to(std::uint64_t entry) {
    const std::vector<std::string> segments = paths_.logs();
    for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
        const std::string& next = segments[i + 1];
        const std::uint64_t first_of_next = std::stoull(next.substr(paths_.log_prefix().size()), nullptr, 16);
        std::error_code absent;
        if (segments[i] != path_ && first_of_next <= entry + 1) std::filesystem::remove(segments[i], absent);
    }
}

}  // namespace memtide::fm
