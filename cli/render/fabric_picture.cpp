#include "cli/render/fabric_picture.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "cli/render/fields.h"

namespace memtide::cli {
namespace json = boost::json;

namespace {

unsigned unsigned_of(const json::value& object, std::string_view key) {
    return static_cast<unsigned>(std::clamp<std::int64_t>(number_of(object, key), 0, 0xffff));
}

// Text, or nothing where a table has "-".
std::string text_or_empty(const json::value& object, std::string_view key) {
    const json::value& member = member_of(object, key);
    return member.is_string() ? text_of(object, key) : "";
}

// An LD's name in its device: its number; empty for the whole of an SLD.
std::string ld_name(const json::value& ld, std::string_view key) {
    const json::value& member = member_of(ld, key);
    return member.is_number() ? std::to_string(number_of(ld, key)) : "";
}

diagram::LdUse use_of(const json::value& ld) {
    static const std::map<std::string, diagram::LdUse, std::less<>> kUses{
        {"unallocated", diagram::LdUse::kEmpty},       {"free", diagram::LdUse::kFree},
        {"reserved", diagram::LdUse::kReserved},       {"bound", diagram::LdUse::kBound},
        {"quarantined", diagram::LdUse::kQuarantined}, {"foreign", diagram::LdUse::kForeign}};
    const auto known = kUses.find(text_of(ld, "use"));
    return known == kUses.end() ? diagram::LdUse::kFree : known->second;
}

// Where the virtual switches of a fabric are, as the manager names them in bindings.
class Places {
  public:
    explicit Places(const json::value& topology) {
        for (const json::value& one : items_of(topology, "switches"))
            for (const json::value& vcs : items_of(one, "vcss"))
                hosts_[key(text_of(one, "name"), number_of(vcs, "id"))] = text_or_empty(vcs, "host");
        for (const json::value& device : items_of(topology, "devices"))
            for (const json::value& head : items_of(device, "heads"))
                heads_[key(text_of(head, "switch"), number_of(head, "port"))] = unsigned_of(head, "number");
    }
    [[nodiscard]] std::string host_at(const json::value& bound_at) const {
        if (!bound_at.is_object()) return {};
        const auto found = hosts_.find(key(text_of(bound_at, "switch"), number_of(bound_at, "vcs")));
        return found == hosts_.end() ? "" : found->second;
    }
    [[nodiscard]] unsigned head_at(const std::string& switch_name, std::int64_t port) const {
        const auto found = heads_.find(key(switch_name, port));
        return found == heads_.end() ? 0 : found->second;
    }

  private:
    static std::string key(const std::string& name, std::int64_t number) {
        return fmt::format("{} {}", name, number);
    }
    std::map<std::string, std::string> hosts_;
    std::map<std::string, unsigned> heads_;
};

diagram::Host drawn_host(const json::value& host) {
    diagram::Host drawn;
    drawn.name = text_of(host, "name");
    drawn.detail =
        number_of(host, "composed") > 0 ? size_of(host, "composed") + " composed" : "nothing composed";
    drawn.standing = flag_of(member_of(host, "agent"), "connected") ? diagram::Host::Standing::kConnected
                                                                    : diagram::Host::Standing::kAway;
    return drawn;
}

diagram::Vcs drawn_vcs(const json::value& vcs, const std::map<std::int64_t, std::string>& device_at) {
    diagram::Vcs drawn;
    drawn.id = unsigned_of(vcs, "id");
    drawn.upstream_port = unsigned_of(vcs, "upstream_port");
    for (const json::value& vppb : items_of(vcs, "vppbs")) {
        diagram::Vppb& added = drawn.vppbs.emplace_back();
        added.id = unsigned_of(vppb, "id");
        if (!text_of(vppb, "status").starts_with("bound")) continue;
        if (const auto device = device_at.find(number_of(vppb, "port")); device != device_at.end())
            added.device = device->second;
        added.ld = ld_name(vppb, "ld");
    }
    return drawn;
}

diagram::Switch drawn_switch(const json::value& one, const Places& places) {
    diagram::Switch drawn;
    drawn.name = text_of(one, "name");
    drawn.detail = text_or_empty(one, "address");
    drawn.is_up = flag_of(one, "up");
    std::map<std::int64_t, std::string> host_at;
    std::map<std::int64_t, std::string> device_at;
    for (const json::value& vcs : items_of(one, "vcss"))
        host_at[number_of(vcs, "upstream_port")] = text_or_empty(vcs, "host");
    for (const json::value& port : items_of(one, "ports")) {
        const std::int64_t id = number_of(port, "id");
        diagram::Port& added = drawn.ports.emplace_back();
        added.id = unsigned_of(port, "id");
        added.link_up = flag_of(port, "link_up") || text_of(port, "role") == "unused";
        if (const auto host = host_at.find(id); host != host_at.end()) added.host = host->second;
        added.device = text_or_empty(port, "device");
        added.head = places.head_at(drawn.name, id);
        if (!added.device.empty()) device_at[id] = added.device;
    }
    for (const json::value& vcs : items_of(one, "vcss")) drawn.vcss.push_back(drawn_vcs(vcs, device_at));
    return drawn;
}

diagram::Device drawn_device(const json::value& device, const Places& places) {
    diagram::Device drawn;
    drawn.name = text_of(device, "name");
    drawn.kind = text_of(device, "kind");
    std::ranges::transform(drawn.kind, drawn.kind.begin(), [](char c) {
        return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    });
    drawn.size = Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(number_of(device, "size"), 0))};
    drawn.is_ill =
        !items_of(member_of(device, "health"), "findings").empty() || member_of(device, "held").is_string();
    if (number_of(device, "head_count") > 1) {
        drawn.heads.clear();
        for (std::int64_t head = 0; head < std::min<std::int64_t>(number_of(device, "head_count"), 16);
             ++head)
            drawn.heads.push_back(static_cast<unsigned>(head));
    }
    for (const json::value& ld : items_of(device, "lds")) {
        diagram::Ld& added = drawn.lds.emplace_back();
        added.name = ld_name(ld, "id");
        added.size = Bytes{static_cast<std::uint64_t>(std::max<std::int64_t>(number_of(ld, "size"), 0))};
        added.use = use_of(ld);
        added.head = unsigned_of(ld, "head");
        added.host = places.host_at(member_of(ld, "bound_at"));
        added.note = text_or_empty(ld, "composition");
    }
    return drawn;
}

}  // namespace

diagram::Fabric picture_of_topology(const json::value& topology) {
    const Places places(topology);
    diagram::Fabric fabric;
    fabric.title = "CXL fabric";
    for (const json::value& host : items_of(topology, "hosts")) fabric.hosts.push_back(drawn_host(host));
    for (const json::value& one : items_of(topology, "switches"))
        fabric.switches.push_back(drawn_switch(one, places));
    for (const json::value& device : items_of(topology, "devices"))
        fabric.devices.push_back(drawn_device(device, places));
    return fabric;
}

}  // namespace memtide::cli
