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

// Version 1 had one serial number before the addresses, of regions of one memdev; version 2 had no read-back.
constexpr std::string_view kMagic = "memtide-regions ";
constexpr char kOldest = '1';
constexpr char kNewest = '3';
constexpr std::string_view kAutoprobe = "autoprobe held";
constexpr std::string_view kUsed = "used ";
constexpr std::uint64_t kUnreadable = std::uint64_t{1} << 32;  // in the number that has the dirty memdevs

std::optional<std::uint64_t> parse_hexadecimal(std::string_view text) {
    if (!text.starts_with("0x")) return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<std::vector<std::uint64_t>> parse_numbers(std::istringstream& words) {
    std::vector<std::uint64_t> numbers;
    for (std::string word; words >> word;) {
        const auto number = parse_hexadecimal(word);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

std::optional<RegionId> parse_used(const std::string& text) {
    std::istringstream words(text);
    const auto numbers = parse_numbers(words);
    if (!numbers || numbers->size() < 2 || numbers->front() > 0xffffffff) return std::nullopt;
    RegionId id{CompositionId{std::string()}, static_cast<std::uint32_t>(numbers->front())};
    for (std::size_t i = 1; i < numbers->size(); ++i) {
        if ((*numbers)[i] > 0xff) return std::nullopt;
        id.composition.value += static_cast<char>((*numbers)[i]);
    }
    return id;
}

std::optional<RegionRecord> parse_record(const std::string& line, char version) {
    std::istringstream words(line);
    RegionRecord record;
    words >> record.region;
    if (!record.region.starts_with("region") || record.region.find('/') != std::string::npos)
        return std::nullopt;
    auto read = parse_numbers(words);
    if (!read) return std::nullopt;
    std::vector<std::uint64_t>& numbers = *read;
    const std::size_t before_serials = version == kNewest ? 5 : 2;
    if (numbers.size() <= before_serials || (version == kOldest && numbers.size() > 3)) return std::nullopt;
    if (version == kOldest) std::ranges::rotate(numbers, numbers.begin() + 1);
    record.range = {numbers[0], numbers[1]};
    if (version == kNewest && (numbers[2] > 0xffffffff || numbers[3] > (kUnreadable | 0xffffffff)))
        return std::nullopt;
    if (version == kNewest)
        record.read_back = {.pages = static_cast<std::uint32_t>(numbers[2]),
                            .dirty = static_cast<std::uint32_t>(numbers[3]),
                            .offset = numbers[4],
                            .unreadable = (numbers[3] & kUnreadable) != 0};
    for (std::size_t i = before_serials; i < numbers.size(); ++i) record.serials.push_back({numbers[i]});
    return record;
}

bool share_a_memdev(const RegionRecord& a, const RegionRecord& b) {
    return std::ranges::find_first_of(a.serials, b.serials) != a.serials.end();
}

}  // namespace

std::string format_records(const RecordFile& file, const std::string& boot_id) {
    std::string text = fmt::format("{}{} {}\n", kMagic, kNewest, boot_id);
    if (file.holds_autoprobe) text += fmt::format("{}\n", kAutoprobe);
    for (const RegionId& id : file.used) {
        text += fmt::format("{}{:#x}", kUsed, id.number);
        // The name is the manager's: it may hold spaces and line ends.
        for (const char c : id.composition.value)
            text += fmt::format(" {:#x}", static_cast<unsigned char>(c));
        text += '\n';
    }
    for (const RegionRecord& record : file.records) {
        const ReadBack& found = record.read_back;
        text += fmt::format("{} {:#x} {:#x} {:#x} {:#x} {:#x}", record.region, record.range.start,
                            record.range.size, found.pages,
                            found.dirty | (found.unreadable ? kUnreadable : 0), found.offset);
        for (const SerialNumber serial : record.serials) text += fmt::format(" {:#x}", serial.value);
        text += '\n';
    }
    return text;
}

Result<RecordFile> parse_records(const std::string& text, const std::string& boot_id) {
    std::istringstream lines(text);
    std::string line;
    RecordFile file;
    std::getline(lines, line);
    const char version = line.size() > kMagic.size() ? line[kMagic.size()] : '\0';
    if (!line.starts_with(kMagic) || version < kOldest || version > kNewest)
        return fail(ErrorCode::kProtocol, "it is not a file of region records");
    if (line.substr(kMagic.size() + 1) != " " + boot_id) return file;  // region names of another boot
    while (std::getline(lines, line)) {
        if (version == kNewest && line == kAutoprobe) {
            file.holds_autoprobe = true;
            continue;
        }
        if (version == kNewest && line.starts_with(kUsed)) {
            std::optional<RegionId> id = parse_used(line.substr(kUsed.size()));
            if (!id) return fail(ErrorCode::kProtocol, fmt::format("the line \"{}\" makes no sense", line));
            file.used.push_back(*std::move(id));
            continue;
        }
        std::optional<RegionRecord> record = parse_record(line, version);
        if (!record) return fail(ErrorCode::kProtocol, fmt::format("the line \"{}\" makes no sense", line));
        file.records.push_back(*std::move(record));
    }
    return file;
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
      used_(std::move(other.used_)),
      holds_autoprobe_(other.holds_autoprobe_),
      lock_(std::exchange(other.lock_, -1)) {}
RegionRecords& RegionRecords::operator=(RegionRecords&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(boot_id_, other.boot_id_);
    std::swap(records_, other.records_);
    std::swap(used_, other.used_);
    std::swap(holds_autoprobe_, other.holds_autoprobe_);
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
        records_ = std::move(parsed->records);
        used_ = std::move(parsed->used);
        holds_autoprobe_ = parsed->holds_autoprobe;
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
    if (auto saved = save(changed, used_, holds_autoprobe_); !saved) return saved;
    records_ = std::move(changed);
    return {};
}

Result<> RegionRecords::forget(const std::string& region) {
    auto changed = records_;
    if (std::erase_if(changed, [&](const RegionRecord& r) { return r.region == region; }) == 0) return {};
    if (auto saved = save(changed, used_, holds_autoprobe_); !saved) return saved;
    records_ = std::move(changed);
    return {};
}

Result<> RegionRecords::note_autoprobe(bool held) {
    if (auto saved = save(records_, used_, held); !saved) return saved;
    holds_autoprobe_ = held;
    return {};
}

Result<> RegionRecords::note_used(const RegionId& id) {
    if (std::ranges::find(used_, id) != used_.end()) return {};
    auto changed = used_;
    changed.push_back(id);
    if (auto saved = save(records_, changed, holds_autoprobe_); !saved) return saved;
    used_ = std::move(changed);
    return {};
}

Result<> RegionRecords::forget_used(const RegionId& id) {
    auto changed = used_;
    if (std::erase(changed, id) == 0) return {};
    if (auto saved = save(records_, changed, holds_autoprobe_); !saved) return saved;
    used_ = std::move(changed);
    return {};
}

Result<> RegionRecords::save(const std::vector<RegionRecord>& records, const std::vector<RegionId>& used,
                             bool holds_autoprobe) const {
    const std::string text = format_records({records, used, holds_autoprobe}, boot_id_);
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
