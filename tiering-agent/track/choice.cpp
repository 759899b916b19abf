#include "tiering-agent/track/tracker.h"

namespace memtide::agent {

Result<std::unique_ptr<Tracker>> make_tracker(Files& files, TrackerChoice choice) {
    if (choice == TrackerChoice::kDamon) return make_damon_tracker(files);
    return make_soft_dirty_tracker(files);
}

}  // namespace memtide::agent
