#include "cxl-emul/rack/status_text.h"

#include <boost/json/array.hpp>
#include <fmt/format.h>

#include "common/base/bytes.h"
#include "common/base/table.h"
#include "cxl-emul/rack/messages.h"

namespace memtide::emul {
namespace json = boost::json;

namespace {

std::vector<json::object> objects(const json::object& in, std::string_view key) {
    std::vector<json::object> out;
    const auto* list = in.if_contains(key);
    if (!list || !list->is_array()) return out;
    for (const auto& entry : list->get_array()) {
        if (entry.is_object()) out.push_back(entry.get_object());
    }
    return out;
}

std::string number_text(const json::object& in, std::string_view key) {
    const auto* value = in.if_contains(key);
    if (!value || !value->is_number()) return "-";
    if (value->is_double()) return fmt::format("{:.1f}", value->get_double());
    return std::to_string(number_of(in, key));
}

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }

std::string device_text(const json::object& vppb) {
    auto name = text_of(vppb, "device");
    if (vppb.contains("ld")) name += ":" + number_text(vppb, "ld");
    return name;
}

}  // namespace

std::string accelerator_text(const json::object& status) {
    return text_of(status, "accelerator") == "kvm" ? "with KVM" : "without KVM (slower)";
}

std::string status_text(const json::object& status, bool verbose) {
    std::string out =
        fmt::format("rack {} (pid {}), {}; {}\n", text_of(status, "name"), number_text(status, "pid"),
                    text_of(status, "run_folder"), accelerator_text(status));
    if (verbose) {
        out += fmt::format("topology: {}\n{}: {}\n", text_of(status, "topology"), accelerator_text(status),
                           text_of(status, "accelerator_reason"));
        if (const auto manager = text_of(status, "manager"); !manager.empty())
            out += "manager: " + manager + "\n";
    }
    if (const auto why = text_of(status, "failure"); !why.empty()) out += "failure: " + why + "\n";

    Table hosts({"HOST", "STATE", "PID", "BOOT", "KERNEL", "AGENT", "DETAIL"});
    for (const auto& host : objects(status, "hosts")) {
        auto boot = number_text(host, "boot_seconds");
        if (boot != "-") boot += "s";
        hosts.add({text_of(host, "name"), text_of(host, "state"), number_text(host, "pid"), boot,
                   or_dash(text_of(host, "kernel")), or_dash(text_of(host, "agent")),
                   text_of(host, "detail")});
    }
    out += "\n" + hosts.text();

    Table switches({"SWITCH", "LISTENS ON"});
    Table bindings({"HOST", "SWITCH", "VCS", "VPPB", "STATE", "DEVICE", "SERIAL", "SIZE"});
    for (const auto& sw : objects(status, "switches")) {
        switches.add({text_of(sw, "name"), fmt::format("{}", fmt::join(texts_of(sw, "listen"), " "))});
        for (const auto& vppb : objects(sw, "vppbs")) {
            if (text_of(vppb, "state") == "unbound") continue;
            bindings.add({text_of(vppb, "host"), text_of(sw, "name"), number_text(vppb, "vcs"),
                          number_text(vppb, "vppb"), text_of(vppb, "state"), device_text(vppb),
                          text_of(vppb, "serial"), format_bytes(Bytes{number_of(vppb, "size")})});
        }
    }
    if (!switches.empty()) {
        out += "\n" + switches.text();
        out += !bindings.empty() ? "\n" + bindings.text() : "\nnothing is bound\n";
    }
    Table networks({"NETWORK", "BETWEEN"});
    for (const auto& network : objects(status, "networks"))
        networks.add(
            {text_of(network, "name"), fmt::format("{}", fmt::join(texts_of(network, "hosts"), " "))});
    if (!networks.empty()) out += "\n" + networks.text();
    return out;
}

std::string list_text(const json::array& racks) {
    Table table({"RACK", "PID", "HOSTS", "TOPOLOGY", "RUN FOLDER"});
    for (const auto& rack : racks) {
        if (!rack.is_object()) continue;
        const auto& status = rack.get_object();
        std::vector<std::string> hosts;
        for (const auto& host : objects(status, "hosts"))
            hosts.push_back(fmt::format("{} {}", text_of(host, "name"), text_of(host, "state")));
        table.add({text_of(status, "name"), number_text(status, "pid"),
                   or_dash(fmt::format("{}", fmt::join(hosts, ", "))), text_of(status, "topology"),
                   text_of(status, "run_folder")});
    }
    return table.text();
}

std::string boot_progress_text(const json::object& status) {
    std::vector<std::string> parts;
    for (const auto& host : objects(status, "hosts")) {
        auto state = text_of(host, "state");
        if (text_of(host, "detail") == "not started") state = "waiting";
        parts.push_back(state == "ready" ? fmt::format("{} ready in {} s", text_of(host, "name"),
                                                       number_text(host, "boot_seconds"))
                                         : fmt::format("{} {}", text_of(host, "name"), state));
    }
    if (parts.empty()) return "preparing the guests";
    return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace memtide::emul
