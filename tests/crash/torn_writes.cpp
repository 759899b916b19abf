#include "tests/crash/torn_writes.h"

#include <fstream>

#include "fabric-manager/store/files.h"

namespace memtide::fm::crash {

namespace {

// Bytes from `durable` on are cut, garbled, or followed by garbage.
bool tear_file(const std::string& path, std::uint64_t durable, std::mt19937_64& random) {
    Result<std::string> bytes = read_file(path);
    if (!bytes || bytes->size() < durable) return false;
    const std::size_t unsure = bytes->size() - durable;
    const auto somewhere = [&] { return durable + (unsure == 0 ? 0 : random() % unsure); };
    switch (random() % 3) {
        case 0:
            bytes->resize(somewhere());
            break;
        case 1:
            for (std::size_t i = somewhere(); i < bytes->size(); ++i)
                if (random() % 4 == 0) (*bytes)[i] = static_cast<char>(random());
            break;
        default:
            for (std::size_t i = random() % 600; i > 0; --i) *bytes += static_cast<char>(random());
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << *bytes;
    return true;
}

}  // namespace

bool tear(const std::string& database, const Witness& witness, std::mt19937_64& random) {
    // Before the first group everything was synced as it was made.
    if (witness.wal_created == 0) return false;
    bool torn = tear_file(database + "-wal", witness.wal_created, random);
    const std::vector<std::string> logs = StatePaths(database).logs();
    if (!logs.empty() && witness.log_synced != 0)
        torn = tear_file(logs.back(), witness.log_synced, random) || torn;
    return torn;
}

}  // namespace memtide::fm::crash
