#include "cli/commands/events.h"

#include <chrono>
#include <thread>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "cli/commands/waiting.h"
#include "cli/render/events.h"
#include "cli/render/fields.h"
#include "common/daemon/exit_code.h"
#include "common/http/client.h"

namespace memtide::cli {

namespace json = boost::json;

int show_events(const ManagerClient& manager, Output& output, const EventsOptions& options) {
    std::uint64_t last = options.since.value_or(0);
    const auto print = [&](const json::value& event) {
        if (output.json())
            output.value(event);
        else
            output.text(render_event(event) + "\n");
        return output.is_open();
    };
    if (!options.follow) {
        const auto listed = manager.events(last, false, options.filter, print);
        return listed ? daemon::kExitOk : output.failure(listed.error());
    }
    // Until a signal or the reader ends it. A manager that was there may come back; one that never was is a
    // mistake.
    for (bool connected = false;;) {
        const auto ended = manager.events(last, true, options.filter, print);
        connected = connected || ended;
        if (!ended && (!connected || ended.error().kind != ErrorCode::kUnavailable))
            return output.failure(ended.error());
        if (!output.is_open()) return daemon::kExitOk;
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
}

int show_history(const ManagerClient& manager, Output& output, const std::string& id) {
    const std::string target = composition_target(id) + "/history?limit=1000";
    auto history = manager.get(target, is_history);
    if (!history) return output.failure(history.error());
    json::object& whole = history->as_object();
    for (std::string next = text_of(*history, "next"); next != "-";) {
        auto page = manager.get(target + "&page=" + http::percent_encode(next), is_history);
        if (!page) return output.failure(page.error());
        for (json::value& item : page->at("items").as_array())
            whole["items"].as_array().push_back(std::move(item));
        const std::string after = text_of(*page, "next");
        if (after == next) break;  // a page that leads to itself would have no end
        next = after;
    }
    whole.erase("next");
    if (output.json())
        output.value(*history);
    else
        output.text(render_history(*history));
    return daemon::kExitOk;
}

}  // namespace memtide::cli
