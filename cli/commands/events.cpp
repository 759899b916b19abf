#include "cli/commands/events.h"

#include <chrono>
#include <thread>

#include "cli/render/fields.h"
#include "cli/render/inventory.h"
#include "common/daemon/exit_code.h"

namespace memtide::cli {

int show_events(const ManagerClient& manager, Output& output, std::optional<std::uint64_t> since,
                bool follow) {
    std::uint64_t last = since.value_or(0);
    const auto print = [&](const boost::json::value& event) {
        last = static_cast<std::uint64_t>(number_of(event, "id"));
        if (output.json())
            output.value(event);
        else
            output.text(render_event(event) + "\n");
        return output.is_open();
    };
    if (!follow) {
        const auto listed = manager.events(last, false, print);
        return listed ? daemon::kExitOk : output.failure(listed.error());
    }
    // Until a signal or the reader ends it. A manager that was there may come back; one that never was is a
    // mistake.
    for (bool connected = false;;) {
        const auto ended = manager.events(last, true, print);
        connected = connected || ended;
        if (!ended && (!connected || ended.error().kind != ErrorCode::kUnavailable))
            return output.failure(ended.error());
        if (!output.is_open()) return daemon::kExitOk;
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

}  // namespace memtide::cli
