// What the fabric is made of, as last seen. Lists are read where they are: only the items of the page are
// written, whatever else there is.
#include "fabric-manager/model/inventory.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {
namespace {

// One page of items in the order of their names; the token is the name of the last one of the page before, so
// that what comes and goes meanwhile neither repeats nor hides another item.
template <typename Key, typename Item, typename Fits, typename Write>
http::Response page_of(const http::Request& request, const std::map<Key, Item>& items, Fits fits,
                       Write write) {
    const auto page = paging(request);
    if (!page) return answer(page.error());
    ListAnswer list;
    std::optional<std::string> next;
    const std::string* last = nullptr;
    for (auto it = items.upper_bound(Key(page->page)); it != items.end(); ++it) {
        if (!fits(it->second)) continue;
        if (list.size() == page->limit) {
            next = *last;
            break;
        }
        if constexpr (std::is_same_v<Item, Device>)
            append_json(list.next_item(), it->second);
        else
            list.add(write(it->second));
        last = &it->first.value;
    }
    return list.finish(next);
}

template <typename Key, typename Item, typename Write>
http::Response one_of(const http::Request& request, std::string_view kind, const std::map<Key, Item>& items,
                      Write write) {
    const std::string& name = request.path_parameters.at(std::string(kind));
    const auto found = items.find(Key(name));
    if (found != items.end()) return answer(200, write(found->second));
    return answer(
        Problem{std::string(problem::kNotFound), fmt::format("there is no {} named {}", kind, name)});
}

auto host_writer(const Context& context) {
    return [&context](const Host& host) {
        return to_json(host, context.manager.composed(host.id), context.contacts.connected(host.id),
                       context.contacts.away_since(host.id));
    };
}
constexpr auto write_switch = [](const Switch& item) { return to_json(item); };
constexpr auto write_device = [](const Device& device) { return to_json(device); };

bool is_attached(const Host& host, std::string_view switch_name) {
    return std::ranges::any_of(host.attach,
                               [&](const HostAttachment& at) { return at.switch_id.value == switch_name; });
}

bool is_behind(const Device& device, std::string_view switch_name) {
    return device.switch_id.value == switch_name || std::ranges::any_of(device.heads, [&](const Head& head) {
               return head.switch_id.value == switch_name;
           });
}

bool is_at_host(const Inventory& inventory, const Device& device, std::string_view host) {
    return std::ranges::any_of(device.lds, [&](const LogicalDevice& ld) {
        if (!ld.bound_at) return false;
        const Host* const at = inventory.host_at(ld.bound_at->switch_id, ld.bound_at->vcs);
        return at != nullptr && at->id.value == host;
    });
}

// A filter that is not given fits everything.
template <typename T, typename Fits>
bool passes(const std::optional<T>& wanted, Fits fits) {
    return !wanted || fits(*wanted);
}

}  // namespace

Answer get_pool(Context& context, http::Request) {
    const Fragmentation scattered = fragmentation(context.manager.inventory());
    co_return answer(200, to_json(context.manager.pool(), scattered, context.manager.inventory().devices()));
}

Answer list_hosts(Context& context, http::Request request) {
    const auto connected = choice(request, "connected");
    if (!connected) co_return answer(connected.error());
    const auto at = request.query_value("switch");
    const auto fits = [&](const Host& host) {
        return passes(at, [&](std::string_view name) { return is_attached(host, name); }) &&
               passes(*connected, [&](bool yes) { return context.contacts.connected(host.id) == yes; });
    };
    co_return page_of(request, context.manager.inventory().hosts(), fits, host_writer(context));
}
Answer get_host(Context& context, http::Request request) {
    co_return one_of(request, "host", context.manager.inventory().hosts(), host_writer(context));
}

Answer list_switches(Context& context, http::Request request) {
    const auto up = choice(request, "up");
    if (!up) co_return answer(up.error());
    const auto fits = [&](const Switch& item) {
        return passes(*up, [&](bool yes) { return item.up == yes; });
    };
    co_return page_of(request, context.manager.inventory().switches(), fits, write_switch);
}
Answer get_switch(Context& context, http::Request request) {
    co_return one_of(request, "switch", context.manager.inventory().switches(), write_switch);
}

Answer list_devices(Context& context, http::Request request) {
    const auto present = choice(request, "present");
    if (!present) co_return answer(present.error());
    const auto at = request.query_value("switch");
    const auto kind = request.query_value("kind");
    if (kind && *kind != "sld" && *kind != "mld" && *kind != "dcd")
        co_return answer(
            Problem{std::string(problem::kInvalidRequest),
                    fmt::format("the query parameter kind is \"{}\"; it must be sld, mld or dcd", *kind)});
    const auto host = request.query_value("host");
    const Inventory& inventory = context.manager.inventory();
    const auto fits = [&](const Device& device) {
        return passes(at, [&](std::string_view name) { return is_behind(device, name); }) &&
               passes(kind, [&](std::string_view name) { return name == to_string(device.kind); }) &&
               passes(*present, [&](bool yes) { return device.present == yes; }) &&
               passes(host, [&](std::string_view name) { return is_at_host(inventory, device, name); });
    };
    co_return page_of(request, inventory.devices(), fits, write_device);
}
Answer get_device(Context& context, http::Request request) {
    co_return one_of(request, "device", context.manager.inventory().devices(), write_device);
}

Answer lift_quarantine(Context& context, http::Request request) {
    const std::string& text = request.path_parameters.at("serial");
    const Result<SerialNumber> serial = parse_serial(text);
    if (!serial)
        co_return answer(Problem{std::string(problem::kNotQuarantined),
                                 fmt::format("\"{}\" is not the serial number of an LD: write it as GET "
                                             "/v1/devices has it, 0x and hexadecimal digits",
                                             text),
                                 ErrorCode::kNotFound});
    Outcome<> lifted = co_await context.manager.lift_quarantine(*serial);
    const bool decimal = !text.starts_with("0x") && !text.starts_with("0X");
    if (!lifted && lifted.error().code == problem::kNotQuarantined && decimal)
        lifted.error().detail += "; digits without 0x before them are decimal";
    if (!lifted) co_return answer(lifted.error());
    boost::json::object body;
    body["serial"] = format_serial(*serial);
    co_return answer(200, body);
}

Answer get_topology(Context& context, http::Request) {
    const Inventory& inventory = context.manager.inventory();
    boost::json::array hosts;
    for (const auto& [id, host] : inventory.hosts()) hosts.push_back(host_writer(context)(host));
    boost::json::array switches;
    for (const auto& [id, item] : inventory.switches()) switches.push_back(to_json(item));
    boost::json::array devices;
    for (const auto& [id, device] : inventory.devices()) devices.push_back(to_json(device));
    boost::json::object body;
    body["hosts"] = std::move(hosts);
    body["switches"] = std::move(switches);
    body["devices"] = std::move(devices);
    co_return answer(200, body);
}

}  // namespace memtide::fm
