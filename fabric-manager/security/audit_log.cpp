#include "fabric-manager/security/audit_log.h"

#include <array>
#include <ctime>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "common/log/log.h"

namespace memtide::fm {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostCounted = 20'000;  // more than a rack has hosts
constexpr std::size_t kLongestText = 512;     // of what a client chose

std::string time_text(Time time) {
    const auto since = std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch();
    const std::time_t whole = std::chrono::floor<std::chrono::seconds>(since).count();
    // Most lines are of the second of the line before.
    thread_local std::time_t last = -1;
    thread_local std::string text;
    if (whole != last) {
        std::tm utc{};
        gmtime_r(&whole, &utc);
        std::array<char, 32> date{};
        text.assign(date.data(), std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc));
        last = whole;
    }
    return fmt::format("{}.{:03}Z", text, since.count() % 1000);
}

// What clients chose need not be UTF-8, nor short.
std::string shown(std::string_view text) {
    std::string result(text.substr(0, kLongestText));
    for (char& c : result)
        if (c < ' ' || c > '~') c = '?';
    if (text.size() > kLongestText) result += "...";
    return result;
}

void add(json::object& line, std::string_view key, std::string_view text) {
    if (!text.empty()) line[key] = shown(text);
}

json::object line_of(const AuditRecord& record, Time now, std::string_view event) {
    json::object line{{"time", time_text(now)}, {"event", event}, {"request", record.request}};
    add(line, "who", record.who);
    add(line, "role", record.role);
    add(line, "tenant", record.tenant);
    add(line, "peer", record.peer);
    add(line, "method", record.method);
    add(line, "operation", record.operation);
    add(line, "path", record.path);
    add(line, "query", record.query);
    line["decision"] = record.allowed ? "allowed" : "refused";
    add(line, "reason", record.reason);
    return line;
}

void add_result(json::object& line, const AuditResult& result) {
    if (result.status != 0) line["status"] = result.status;
    add(line, "code", result.code);
    add(line, "object", result.object);
}

}  // namespace

Result<> AuditLog::append(const std::string& line) {
    if (!file_) return {};
    auto written = file_->append(line);
    if (written && std::exchange(failing_, false)) log::info("the audit log works again", {{"lost", lost_}});
    if (!written) {
        ++lost_;
        if (!std::exchange(failing_, true))
            log::error("the audit log cannot be written: changes are refused until it can",
                       {{"error", written.error()}});
    }
    return written;
}

Result<> AuditLog::begin(const AuditRecord& record, Time now) {
    return append(json::serialize(line_of(record, now, "begin")));
}

void AuditLog::end(const AuditRecord& record, const AuditResult& result, Time now) {
    json::object line = line_of(record, now, "end");
    add_result(line, result);
    (void)append(json::serialize(line));
}

void AuditLog::write(const AuditRecord& record, const AuditResult& result, Time now) {
    json::object line = line_of(record, now, "request");
    add_result(line, result);
    (void)append(json::serialize(line));
}

void AuditLog::count(const AuditRecord& record, const AuditResult& result, Time now) {
    // Without the port: every connection has another one.
    const std::string address = record.peer.substr(0, record.peer.rfind(':'));
    if (counted_.size() >= kMostCounted) flush();
    Counted& counted =
        counted_[Key(record.who, record.operation + " " + record.reason, address, result.status)];
    if (counted.count++ == 0) {
        counted.first = record;
        counted.result = result;
        counted.began = now;
        write(record, result, now);  // the first one is told at once
    }
    counted.last = now;
}

void AuditLog::write_counted(const Counted& counted) {
    if (counted.count < 2) return;
    json::object line = line_of(counted.first, counted.last, "repeated");
    line.erase("request");
    add_result(line, counted.result);
    line["count"] = counted.count - 1;  // without the first one
    line["since"] = time_text(counted.began);
    (void)append(json::serialize(line));
}

void AuditLog::tick(Time now) {
    std::erase_if(counted_, [&](const auto& one) {
        // A clock that was put back must not keep it forever.
        if (now - one.second.began < kPeriod && now >= one.second.began) return false;
        write_counted(one.second);
        return true;
    });
    if (!file_) return;
    if (const auto synced = file_->sync(); !synced && !std::exchange(failing_, true))
        log::error("the audit log cannot be synced", {{"error", synced.error()}});
}

void AuditLog::flush() {
    for (const auto& [key, counted] : counted_) write_counted(counted);
    counted_.clear();
    if (file_) (void)file_->sync();
}

Result<> AuditLog::reopen() { return file_ ? file_->reopen() : Result<>{}; }

}  // namespace memtide::fm
