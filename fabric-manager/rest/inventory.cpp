// What the fabric is made of, as last seen.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {
namespace {

// One page of items in the order of their names; the token is the name of the last one before the page.
template <typename Item, typename Write>
http::Response page_of(const http::Request& request, std::vector<Item> items, Write write) {
    const auto page = paging(request);
    if (!page) return answer(page.error());
    std::ranges::sort(items, {}, [](const Item& item) -> const std::string& { return item.id.value; });
    boost::json::array result;
    std::optional<std::string> next;
    std::string last;
    for (const Item& item : items) {
        if (!page->page.empty() && item.id.value <= page->page) continue;
        if (result.size() == page->limit) {
            next = last;
            break;
        }
        result.push_back(write(item));
        last = item.id.value;
    }
    return answer(200, list_of(std::move(result), next));
}

template <typename Item, typename Write>
http::Response one_of(const http::Request& request, std::string_view kind, const std::vector<Item>& items,
                      Write write) {
    const std::string& name = request.path_parameters.at(std::string(kind));
    for (const Item& item : items)
        if (item.id.value == name) return answer(200, write(item));
    return answer(
        Problem{std::string(problem::kNotFound), fmt::format("there is no {} named {}", kind, name)});
}

auto host_writer(const Context& context) {
    return [&context](const Host& host) { return to_json(host, context.contacts.connected(host.id)); };
}
constexpr auto write_switch = [](const Switch& item) { return to_json(item); };
constexpr auto write_device = [](const Device& device) { return to_json(device); };

}  // namespace

Answer get_pool(Context& context, http::Request) { co_return answer(200, to_json(context.manager.pool())); }

Answer list_hosts(Context& context, http::Request request) {
    co_return page_of(request, context.manager.hosts(), host_writer(context));
}
Answer get_host(Context& context, http::Request request) {
    co_return one_of(request, "host", context.manager.hosts(), host_writer(context));
}

Answer list_switches(Context& context, http::Request request) {
    co_return page_of(request, context.manager.switches(), write_switch);
}
Answer get_switch(Context& context, http::Request request) {
    co_return one_of(request, "switch", context.manager.switches(), write_switch);
}

Answer list_devices(Context& context, http::Request request) {
    co_return page_of(request, context.manager.devices(), write_device);
}
Answer get_device(Context& context, http::Request request) {
    co_return one_of(request, "device", context.manager.devices(), write_device);
}

Answer get_topology(Context& context, http::Request) {
    const Topology topology = context.manager.topology();
    boost::json::array hosts;
    for (const Host& host : topology.hosts) hosts.push_back(host_writer(context)(host));
    boost::json::array switches;
    for (const Switch& item : topology.switches) switches.push_back(to_json(item));
    boost::json::array devices;
    for (const Device& device : topology.devices) devices.push_back(to_json(device));
    boost::json::object body;
    body["hosts"] = std::move(hosts);
    body["switches"] = std::move(switches);
    body["devices"] = std::move(devices);
    co_return answer(200, body);
}

}  // namespace memtide::fm
