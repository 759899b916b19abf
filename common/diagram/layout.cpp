#include "common/diagram/layout.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/diagram/graph.h"
#include "common/diagram/measures.h"

namespace memtide::diagram {
namespace {

constexpr double kPartGap = 56;
constexpr double kBoxGap = 28;
constexpr double kNetworkRise = 22;  // each network has a line of its own above the hosts
constexpr double kCableGap = 64;
constexpr double kShape = 2.2;  // width to height, of many parts

std::size_t rows_of(std::size_t count, std::size_t columns) { return (count + columns - 1) / columns; }

// --- How large things are ---

Box host_size(const Host& host) {
    const double text = std::max(text_width(host.name, kNameSize) + 20, text_width(host.detail, kDetailSize));
    return {0, 0, std::max(104.0, text + 28), kHostHeight};
}

// What of a VCS's vPPBs is drawn: all, or those that something is bound to, some free ones, and how many
// more.
std::vector<Slot> slots_of(const Vcs& vcs) {
    std::vector<Slot> slots;
    const std::size_t all = vcs.vppbs.size();
    if (all <= kMostSlots) {
        for (std::size_t i = 0; i < all; ++i) slots.push_back({{}, i, 0});
        return slots;
    }
    const auto is_bound = [&](std::size_t i) { return !vcs.vppbs[i].device.empty(); };
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < all; ++i)
        if (is_bound(i)) shown.push_back(i);
    for (std::size_t i = 0; i < all && shown.size() < kMostSlots - 1; ++i)
        if (!is_bound(i)) shown.push_back(i);
    shown.resize(std::min(shown.size(), kMostSlots - 1));
    std::ranges::sort(shown);
    for (const std::size_t i : shown) slots.push_back({{}, i, 0});
    slots.push_back({{}, 0, all - shown.size()});
    return slots;
}

Box lane_size(std::size_t slots) {
    const std::size_t columns = std::clamp<std::size_t>(slots, 1, kSlotColumns);
    return {0, 0, static_cast<double>(columns) * kSlotPitch + 2 * kLanePadding,
            kLaneTitle + static_cast<double>(rows_of(slots, columns)) * kSlotPitch + kLanePadding};
}

// LDs of a head, side by side in a grid.
struct Group {
    std::vector<std::size_t> lds;
    std::size_t columns = 1;
    [[nodiscard]] double width() const { return static_cast<double>(columns) * kCellWidth; }
    [[nodiscard]] double height() const {
        return static_cast<double>(rows_of(lds.size(), columns)) * kCellHeight;
    }
};

std::vector<Group> groups_of(const Device& device) {
    std::vector<Group> groups(std::max<std::size_t>(device.heads.size(), 1));
    for (std::size_t ld = 0; ld < device.lds.size(); ++ld) {
        const auto head = std::ranges::find(device.heads, device.lds[ld].head) - device.heads.begin();
        groups[static_cast<std::size_t>(head) < groups.size() ? static_cast<std::size_t>(head) : 0]
            .lds.push_back(ld);
    }
    const std::size_t most = groups.size() > 1 ? 2 : 4;
    for (Group& group : groups) group.columns = std::clamp<std::size_t>(group.lds.size(), 1, most);
    return groups;
}

Box device_size(const Device& device) {
    double width = 2 * kDevicePadding - kGroupGap;
    double height = 0;
    for (const Group& group : groups_of(device)) {
        width += group.width() + kGroupGap;
        height = std::max(height, group.height());
    }
    const double title = text_width(device.name, kNameSize) + 2 * kDevicePadding;
    return {0, 0, std::max({width, title, 96.0}), kDeviceTitle + height + kDevicePadding};
}

// --- Where they go ---

class Planner {
  public:
    explicit Planner(const Fabric& fabric) : fabric_(fabric), names_(fabric), levels_(levels_of(fabric)) {
        for (const Host& host : fabric.hosts) layout_.hosts.push_back(host_size(host));
        for (const Switch& one : fabric.switches) layout_.switches.push_back(sized(one));
        for (const Device& device : fabric.devices)
            layout_.devices.push_back({device_size(device), std::vector<Box>(device.heads.size()),
                                       std::vector<Box>(device.lds.size())});
    }

    Layout plan() {
        const std::vector<Part> parts = parts_of(fabric_);
        std::vector<Box> sizes;
        for (const Part& part : parts) sizes.push_back(arrange(part));
        pack(parts, sizes);
        return std::move(layout_);
    }

  private:
    // Port chips on the upper edge stand above the VCS that they lead to; the rest of a switch follows from
    // its width, which this settles.
    SwitchPlace sized(const Switch& one) {
        SwitchPlace place;
        place.ports.resize(one.ports.size());
        double above = 0;
        double below = 0;
        double lanes = 0;
        for (const Vcs& vcs : one.vcss) {
            VcsLane& lane = place.lanes.emplace_back();
            lane.slots = slots_of(vcs);
            lane.box = lane_size(lane.slots.size());
            above += lane.box.width + kLaneGap;
            lanes = std::max(lanes, lane.box.height);
        }
        for (const Port& port : one.ports) {
            if (port.host.empty())
                below += kChipPitch;
            else if (lane_of(one, port) == Names::npos)
                above += kChipPitch;
        }
        const double title = text_width(one.name, kNameSize) + text_width(one.detail, kDetailSize) + 44;
        place.box.width = std::max({above, below, title, 150.0}) + 2 * kSwitchPadding;
        place.box.height = kLanesTop + lanes + kSwitchTitle;
        return place;
    }

    static std::size_t lane_of(const Switch& one, const Port& port) {
        if (port.host.empty()) return Names::npos;
        const auto found = std::ranges::find(one.vcss, port.id, &Vcs::upstream_port);
        return found == one.vcss.end() ? Names::npos : static_cast<std::size_t>(found - one.vcss.begin());
    }

    // One part by itself, its upper left corner at 0, 0; gives its size.
    Box arrange(const Part& part) {
        const auto row_width = [](const std::vector<std::size_t>& items, auto box_of) {
            double width = 0;
            for (const std::size_t item : items) width += box_of(item).width + kBoxGap;
            return width;
        };
        const auto host = [&](std::size_t i) -> Box& { return layout_.hosts[i]; };
        const auto one_switch = [&](std::size_t i) -> Box& { return layout_.switches[i].box; };
        const auto device = [&](std::size_t i) -> Box& { return layout_.devices[i].box; };
        const std::vector<std::vector<std::size_t>> rows = rows_of_switches(part);
        double width = std::max(row_width(part.hosts, host), row_width(part.devices, device));
        for (const std::vector<std::size_t>& row : rows) width = std::max(width, row_width(row, one_switch));
        double y = kNetworkRise * static_cast<double>(networks_in(part));
        const auto put = [&](const std::vector<std::size_t>& items, auto box_of, double gap_below) {
            if (items.empty()) return;
            const double slack = (width - row_width(items, box_of)) / static_cast<double>(items.size());
            double x = slack / 2 + kBoxGap / 2;
            double height = 0;
            for (const std::size_t item : items) {
                box_of(item).x = x;
                box_of(item).y = y;
                x += box_of(item).width + kBoxGap + slack;
                height = std::max(height, box_of(item).height);
            }
            y += height + gap_below;
        };
        put(part.hosts, host, part.switches.empty() && part.devices.empty() ? 0 : gap_below_hosts(part));
        for (const std::vector<std::size_t>& row : rows) {
            const bool last = &row == &rows.back();
            put(row, one_switch,
                last && part.devices.empty() ? 0
                : last                       ? gap_below_switches(part)
                                             : kCableGap);
        }
        put(part.devices, device, 0);
        return {0, 0, width, y};
    }

    // Switches at the ends of cables stand below those where these begin.
    [[nodiscard]] std::vector<std::vector<std::size_t>> rows_of_switches(const Part& part) const {
        std::vector<std::vector<std::size_t>> rows;
        for (const std::size_t s : part.switches) {
            if (rows.size() <= levels_[s]) rows.resize(levels_[s] + 1);
            rows[levels_[s]].push_back(s);
        }
        return rows;
    }

    // Lines that cross need height to be told apart: those beyond one for each of what they lead to.
    static double gap(std::size_t lines, std::size_t ends) {
        const std::size_t crossing = lines > ends ? lines - ends : 0;
        return std::min(60 + 8 * static_cast<double>(crossing), 170.0);
    }
    [[nodiscard]] double gap_below_hosts(const Part& part) const {
        std::size_t lines = 0;
        for (const std::size_t s : part.switches)
            for (const Port& port : fabric_.switches[s].ports) lines += port.host.empty() ? 0 : 1;
        for (const std::size_t h : part.hosts) lines += fabric_.hosts[h].direct.size();
        return gap(lines, part.switches.empty() ? part.devices.size() : part.hosts.size());
    }
    [[nodiscard]] double gap_below_switches(const Part& part) const {
        std::size_t lines = 0;
        for (const std::size_t s : part.switches)
            for (const Port& port : fabric_.switches[s].ports) lines += port.device.empty() ? 0 : 1;
        return gap(lines, part.devices.size());
    }

    [[nodiscard]] std::size_t networks_in(const Part& part) const {
        return static_cast<std::size_t>(std::ranges::count_if(fabric_.networks, [&](const Network& network) {
            return !network.hosts.empty() &&
                   std::ranges::find(part.hosts, names_.host(network.hosts[0])) != part.hosts.end();
        }));
    }

    // Parts beside each other in rows, so that the whole is a little wider than high.
    void pack(const std::vector<Part>& parts, const std::vector<Box>& sizes) {
        double area = 0;
        double widest = 0;
        for (const Box& size : sizes) {
            area += (size.width + kPartGap) * (size.height + kPartGap);
            widest = std::max(widest, size.width);
        }
        const double line = std::max(widest, std::sqrt(area * kShape));
        double x = 0;
        double y = 0;
        double row = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (x > 0 && x + sizes[i].width > line) {
                x = 0;
                y += row + kPartGap;
                row = 0;
            }
            move(parts[i], kMargin + x, kMargin + kTitleHeight + y);
            x += sizes[i].width + kPartGap;
            row = std::max(row, sizes[i].height);
            layout_.width = std::max(layout_.width, x - kPartGap + 2 * kMargin);
        }
        layout_.height = y + row + 2 * kMargin + kTitleHeight + kLegendHeight;
    }

    void move(const Part& part, double x, double y) {
        const auto shift = [&](Box& box) {
            box.x += x;
            box.y += y;
        };
        for (const std::size_t i : part.hosts) shift(layout_.hosts[i]);
        for (const std::size_t i : part.switches) shift(layout_.switches[i].box);
        for (const std::size_t i : part.devices) shift(layout_.devices[i].box);
        for (const std::size_t i : part.devices) fill_device(fabric_.devices[i], layout_.devices[i]);
        for (const std::size_t i : part.switches) fill_switch(fabric_.switches[i], layout_.switches[i]);
    }

    static void fill_device(const Device& device, DevicePlace& place) {
        const std::vector<Group> groups = groups_of(device);
        double total = -kGroupGap;
        for (const Group& group : groups) total += group.width() + kGroupGap;
        double x = place.box.centre() - total / 2;
        for (std::size_t g = 0; g < groups.size(); ++g) {
            const double middle = x + groups[g].width() / 2;
            // One head needs no name: a dot stands for it.
            if (device.heads.size() == 1)
                place.heads[g] = {middle - kDot / 2, place.box.y - kDot / 2, kDot, kDot};
            else if (g < place.heads.size())
                place.heads[g] = {middle - kChipWidth / 2, place.box.y - kChipHeight / 2, kChipWidth,
                                  kChipHeight};
            for (std::size_t i = 0; i < groups[g].lds.size(); ++i)
                place.lds[groups[g].lds[i]] = {
                    x + static_cast<double>(i % groups[g].columns) * kCellWidth + 1,
                    place.box.y + kDeviceTitle + static_cast<double>(i / groups[g].columns) * kCellHeight + 1,
                    kCellWidth - 2, kCellHeight - 2};
            x += groups[g].width() + kGroupGap;
        }
    }

    void fill_switch(const Switch& one, SwitchPlace& place) {
        std::vector<std::size_t> up;
        std::vector<std::size_t> down;
        for (std::size_t i = 0; i < one.ports.size(); ++i)
            (one.ports[i].host.empty() ? down : up).push_back(i);
        const auto by_target = [&](std::size_t port) { return target(one.ports[port]); };
        std::ranges::stable_sort(up, {}, by_target);
        std::ranges::stable_sort(down, {}, by_target);
        const auto width_of = [&](std::size_t port) {
            const std::size_t lane = lane_of(one, one.ports[port]);
            return lane == Names::npos ? kChipPitch : place.lanes[lane].box.width + kLaneGap;
        };
        spread(up, place, place.box.y - kChipHeight / 2, width_of);
        spread(down, place, place.box.bottom() - kChipHeight / 2, [](std::size_t) { return kChipPitch; });
        double without_port = place.box.x + kSwitchPadding;
        for (std::size_t v = 0; v < one.vcss.size(); ++v) {
            VcsLane& lane = place.lanes[v];
            const auto port = std::ranges::find(one.ports, one.vcss[v].upstream_port, &Port::id);
            lane.box.y = place.box.y + kLanesTop;
            if (port == one.ports.end() || port->host.empty()) {
                lane.box.x = without_port;
                without_port += lane.box.width + kLaneGap;
            } else {
                lane.box.x = place.ports[static_cast<std::size_t>(port - one.ports.begin())].centre() -
                             lane.box.width / 2;
            }
            fill_lane(lane);
        }
    }

    // Evenly over the width of the switch.
    static void spread(const std::vector<std::size_t>& ports, SwitchPlace& place, double y,
                       const std::function<double(std::size_t)>& width_of) {
        double sum = 0;
        for (const std::size_t port : ports) sum += width_of(port);
        const double slack = (place.box.width - 2 * kSwitchPadding - sum) /
                             static_cast<double>(std::max<std::size_t>(ports.size(), 1));
        double x = place.box.x + kSwitchPadding;
        for (const std::size_t port : ports) {
            const double width = width_of(port) + slack;
            place.ports[port] = {x + width / 2 - kChipWidth / 2, y, kChipWidth, kChipHeight};
            x += width;
        }
    }

    static void fill_lane(VcsLane& lane) {
        for (std::size_t i = 0; i < lane.slots.size(); ++i)
            lane.slots[i].box = {
                lane.box.x + kLanePadding + static_cast<double>(i % kSlotColumns) * kSlotPitch + 1,
                lane.box.y + kLaneTitle + static_cast<double>(i / kSlotColumns) * kSlotPitch + 1,
                kSlotPitch - 2, kSlotPitch - 2};
    }

    // Where a port's line goes; without one to the right of all.
    [[nodiscard]] double target(const Port& port) const {
        if (const std::size_t host = names_.host(port.host); host != Names::npos)
            return layout_.hosts[host].centre();
        if (const std::size_t below = names_.one_switch(port.below); below != Names::npos)
            return layout_.switches[below].box.centre();
        const std::size_t device = names_.device(port.device);
        if (device == Names::npos) return 1e9;
        const DevicePlace& place = layout_.devices[device];
        const auto& heads = fabric_.devices[device].heads;
        const auto head = static_cast<std::size_t>(std::ranges::find(heads, port.head) - heads.begin());
        return head < place.heads.size() ? place.heads[head].centre() : place.box.centre();
    }

    const Fabric& fabric_;
    Names names_;
    std::vector<std::size_t> levels_;  // of the switches
    Layout layout_;
};

}  // namespace

double text_width(std::string_view text, double font_size) {
    // A character of UTF-8 begins with every byte but 10xxxxxx.
    const auto characters = std::ranges::count_if(
        text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; });
    return static_cast<double>(characters) * font_size * 0.58;
}

Layout lay_out(const Fabric& fabric) { return Planner(fabric).plan(); }

}  // namespace memtide::diagram
