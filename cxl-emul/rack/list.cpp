#include "cxl-emul/rack/list.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "cxl-emul/rack/control_client.h"
#include "cxl-emul/rack/report.h"
#include "cxl-emul/rack/run_folder.h"
#include "cxl-emul/rack/status_text.h"

namespace memtide::emul {
namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

std::vector<std::string> running_below(const std::string& parent) {
    std::vector<std::string> folders;
    std::error_code error;
    for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
        if (RunFolder::running(it->path())) folders.push_back(it->path());
    }
    std::ranges::sort(folders);
    return folders;
}

}  // namespace

int run_list(bool as_json) {
    const auto parent = RunFolder::default_parent();
    json::array racks;
    for (const auto& folder : running_below(parent)) {
        auto client = ControlClient::connect(folder);
        auto status = client ? client->ask({{"op", "status"}}) : std::unexpected(client.error());
        if (status)
            racks.push_back(std::move(*status));
        else
            report(std::move(status.error()).with_context(folder));
    }
    if (as_json) {
        std::cout << json::serialize(racks) << '\n';
    } else if (racks.empty()) {
        std::cout << fmt::format("no rack runs in {}\n", parent);
    } else {
        std::cout << list_text(racks);
    }
    return daemon::kExitOk;
}

}  // namespace memtide::emul
