#include "tiering-agent/hotplug/records.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/log/log.h"

namespace memtide::agent {
namespace {

// Version 1 had one serial number before the addresses, of regions of one memdev.
constexpr std::string_view kMagic = "memtide-regions 2";
constexpr std::string_view kFirstMagic = "memtide-regions 1";

std::optional<std::uint64_t> parse_hexadecimal(std::string_view text) {
    if (!text.starts_with("0x")) return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<RegionRecord> parse_record(const std::string& line, bool first_version) {
    std::istringstream words(line);
    RegionRecord record;
    words >> record.region;
    if (!record.region.starts_with("region") || record.region.find('/') != std::string::npos)
        return std::nullopt;
    std::vector<std::uint64_t> numbers;
    for (std::string word; words >> word;) {
        const auto number = parse_hexadecimal(word);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    if (numbers.size() < 3 || (first_version && numbers.size() > 3)) return std::nullopt;
    if (first_version) std::ranges::rotate(numbers, numbers.begin() + 1);
    record.range = {numbers[0], numbers[1]};
    for (std::size_t i = 2; i < numbers.size(); ++i) record.serials.push_back({numbers[i]});
    return record;
}

bool share_a_memdev(const RegionRecord& a, const RegionRecord& b) {
    return std::ranges::find_first_of(a.serials, b.serials) != a.serials.end();
}

}  // namespace

std::string format_records(const std::vector<RegionRecord>& records, const std::string& boot_id) {
    std::string text = fmt::format("{} {}\n", kMagic, boot_id);
    for (const RegionRecord& record : records) {
        text += fmt::format("{} {:#x} {:#x}", record.region, record.range.start, record.range.size);
        for (const SerialNumber serial : record.serials) text += fmt::format(" {:#x}", serial.value);
        text += '\n';
    }
    return text;
}

Result<std::vector<RegionRecord>> parse_records(const std::string& text, const std::string& boot_id) {
    std::istringstream lines(text);
    std::string line;
    std::vector<RegionRecord> records;
    std::getline(lines, line);
    const bool first_version = line.starts_with(kFirstMagic);
    if (!first_version && !line.starts_with(kMagic))
        return fail(ErrorCode::kProtocol, "it is not a file of region records");
    if (line.substr(kMagic.size()) != " " + boot_id) return records;  // region names of another boot
    while (std::getline(lines, line)) {
        std::optional<RegionRecord> record = parse_record(line, first_version);
        if (!record) return fail(ErrorCode::kProtocol, fmt::format("the line \"{}\" makes no sense", line));
        records.push_back(*std::move(record));
    }
    return records;
}

Result<RegionRecords> RegionRecords::open(const std::string& folder, const std::string& boot_id) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return fail_errno("make the folder", folder, error.value());
    RegionRecords records;
    records.path_ = folder + "/regions";
    records.boot_id_ = boot_id;
    const std::string lock = folder + "/lock";
    records.lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (records.lock_ < 0) return fail_errno("open", lock, errno);
    if (flock(records.lock_, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK)
            return fail(ErrorCode::kAlreadyExists,
                        "another tiering agent runs with the state folder " + folder);
        return fail_errno("lock", lock, errno);
    }
    records.load();
    return records;
}

RegionRecords::~RegionRecords() {
    if (lock_ >= 0) close(lock_);
}
RegionRecords::RegionRecords(RegionRecords&& other) noexcept
    : path_(std::move(other.path_)),
      boot_id_(std::move(other.boot_id_)),
      records_(std::move(other.records_)),
      lock_(std::exchange(other.lock_, -1)) {}
RegionRecords& RegionRecords::operator=(RegionRecords&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(boot_id_, other.boot_id_);
    std::swap(records_, other.records_);
    std::swap(lock_, other.lock_);
    return *this;
}

void RegionRecords::load() {
    std::ifstream file(path_);
    if (!file) return;
    std::ostringstream text;
    text << file.rdbuf();
    auto parsed = parse_records(text.str(), boot_id_);
    if (parsed) {
        records_ = std::move(*parsed);
        return;
    }
    std::error_code ignored;
    std::filesystem::rename(path_, path_ + ".bad", ignored);
    log::warning("region records cannot be read; put aside",
                 {{"file", path_}, {"reason", parsed.error().message}});
}

Result<> RegionRecords::put(RegionRecord record) {
    record.blocks.clear();
    auto changed = records_;
    std::erase_if(changed, [&](const RegionRecord& r) {
        return share_a_memdev(r, record) || r.region == record.region;
    });
    changed.push_back(std::move(record));
    if (auto saved = save(changed); !saved) return saved;
    records_ = std::move(changed);
    return {};
}

Result<> RegionRecords::forget(const std::string& region) {
    auto changed = records_;
    if (std::erase_if(changed, [&](const RegionRecord& r) { return r.region == region; }) == 0) return {};
    if (auto saved = save(changed); !saved) return saved;
    records_ = std::move(changed);
    return {};
}

Result<> RegionRecords::save(const std::vector<RegionRecord>& records) const {
    const std::string text = format_records(records, boot_id_);
    const std::string scratch = path_ + ".new";
    const int file = ::open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return fail_errno("open", scratch, errno);
    const ssize_t written = ::write(file, text.data(), text.size());
    const int error = written < 0 ? errno : (static_cast<std::size_t>(written) < text.size() ? ENOSPC : 0);
    if (close(file) != 0 || error != 0) return fail_errno("write", scratch, error == 0 ? errno : error);
    if (std::rename(scratch.c_str(), path_.c_str()) != 0) return fail_errno("rename to", path_, errno);
    return {};
}

}  // namespace memtide::agent
