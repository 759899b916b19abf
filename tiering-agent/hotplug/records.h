#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "tiering-agent/hotplug/state.h"

namespace memtide::agent {

// The regions this agent made, in a small file that survives the agent but not the host's restart (it belongs
// on a tmpfs, and is ignored when it is of another boot). Replaced as a whole, atomically. Not thread safe.
class RegionRecords {
  public:
    // No records and no file: for looking without changing anything.
    RegionRecords() = default;
    // `folder` is made when it is missing, and locked: kAlreadyExists when another agent runs with it. A file
    // that cannot be understood is put aside and counts as empty: without it, only regions that have no
    // memdev are not recognised any more.
    static Result<RegionRecords> open(const std::string& folder, const std::string& boot_id);
    ~RegionRecords();
    RegionRecords(RegionRecords&&) noexcept;
    RegionRecords& operator=(RegionRecords&&) noexcept;

    [[nodiscard]] const std::vector<RegionRecord>& all() const { return records_; }
    // Adds it, or replaces those of the same memdevs. On the disk when it returns.
    Result<> put(RegionRecord record);
    Result<> forget(const std::string& region);

    // Regions of compositions whose memory became system RAM: what it holds may be this host's own from then
    // on, also when the region is made anew.
    [[nodiscard]] const std::vector<RegionId>& used() const { return used_; }
    Result<> note_used(const RegionId& id);
    Result<> forget_used(const RegionId& id);

    // Whether this agent has switched off that new dax devices get a driver by themselves, and not on again.
    [[nodiscard]] bool holds_autoprobe() const { return holds_autoprobe_; }
    Result<> note_autoprobe(bool held);

  private:
    void load();
    Result<> save(const std::vector<RegionRecord>& records, const std::vector<RegionId>& used,
                  bool holds_autoprobe) const;

    std::string path_;
    std::string boot_id_;
    std::vector<RegionRecord> records_;
    std::vector<RegionId> used_;
    bool holds_autoprobe_ = false;
    int lock_ = -1;
};

// The text of the file; parse answers nothing for a text that is not of this boot or cannot be understood.
struct RecordFile {
    std::vector<RegionRecord> records;
    std::vector<RegionId> used;
    bool holds_autoprobe = false;

    friend bool operator==(const RecordFile&, const RecordFile&) = default;
};
std::string format_records(const RecordFile& file, const std::string& boot_id);
Result<RecordFile> parse_records(const std::string& text, const std::string& boot_id);

}  // namespace memtide::agent
