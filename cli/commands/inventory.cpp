#include "cli/commands/inventory.h"

#include <boost/json/object.hpp>
#include <fmt/format.h>

#include "cli/render/inventory.h"
#include "common/daemon/exit_code.h"
#include "common/http/client.h"

namespace memtide::cli {
namespace {

using Render = std::string (*)(const boost::json::array&);
using RenderWhole = std::string (*)(const boost::json::value&);

int show_list(const ManagerClient& manager, Output& output, const char* target, Render render) {
    auto items = manager.list(target, is_named);
    if (!items) return output.failure(items.error());
    if (output.json())
        output.value(boost::json::object{{"items", *std::move(items)}});
    else
        output.text(render(*items));
    return daemon::kExitOk;
}

int show_whole(const ManagerClient& manager, Output& output, const char* target, IsResource is_resource,
               RenderWhole render) {
    const auto answer = manager.get(target, is_resource);
    if (!answer) return output.failure(answer.error());
    if (output.json())
        output.value(*answer);
    else
        output.text(render(*answer));
    return daemon::kExitOk;
}

}  // namespace

int show_pool(const ManagerClient& manager, Output& output) {
    return show_whole(manager, output, "/v1/pool", is_pool, render_pool);
}
int show_hosts(const ManagerClient& manager, Output& output) {
    return show_list(manager, output, "/v1/hosts", render_hosts);
}
int show_switches(const ManagerClient& manager, Output& output) {
    return show_list(manager, output, "/v1/switches", render_switches);
}
int show_devices(const ManagerClient& manager, Output& output) {
    return show_list(manager, output, "/v1/devices", render_devices);
}
int show_tenants(const ManagerClient& manager, Output& output) {
    return show_list(manager, output, "/v1/tenants", render_tenants);
}
int show_topology(const ManagerClient& manager, Output& output) {
    return show_whole(manager, output, "/v1/topology", is_topology, render_topology);
}

int lift_quarantine(const ManagerClient& manager, Output& output, const std::string& serial) {
    const auto answer = manager.remove("/v1/quarantine/" + http::percent_encode(serial), is_serial);
    if (!answer) return output.failure(answer.error());
    if (output.json())
        output.value(*answer);
    else
        output.text(
            fmt::format("LD {} is out of quarantine: it is erased, and read back, before it is used\n",
                        answer->at("serial").as_string().c_str()));
    return daemon::kExitOk;
}

}  // namespace memtide::cli
