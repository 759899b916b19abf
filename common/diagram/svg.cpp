#include "common/diagram/svg.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/diagram/graph.h"
#include "common/diagram/layout.h"
#include "common/diagram/measures.h"
#include "common/diagram/palette.h"
#include "common/diagram/svg_writer.h"

namespace memtide::diagram {
namespace {

constexpr double kLeastWidth = 300;
constexpr double kBetweenBindings = 3.5;  // of those that share a link

Point top_of(const Box& box) { return {box.centre(), box.y}; }
Point bottom_of(const Box& box) { return {box.centre(), box.bottom()}; }

Paint ld_paint(LdUse use, const std::string& colour) {
    switch (use) {
        case LdUse::kEmpty:
            return {.fill = kPaper, .stroke = "#cbd5e1", .dashed = true};
        case LdUse::kReserved:
            return {.fill = "#fef3c7", .stroke = "#d97706"};
        case LdUse::kBound:
            return {.fill = colour, .stroke = colour};
        case LdUse::kQuarantined:
            return {.fill = "url(#quarantined)", .stroke = kBad};
        case LdUse::kForeign:
            return {.fill = "url(#foreign)", .stroke = kFaint};
        case LdUse::kFree:
            break;
    }
    return {.fill = kPaper, .stroke = kLine};
}

std::string_view words_of(LdUse use) {
    switch (use) {
        case LdUse::kEmpty:
            return "no memory allocated";
        case LdUse::kFree:
            return "free";
        case LdUse::kReserved:
            return "being bound or taken back";
        case LdUse::kBound:
            return "bound, in the colour of its host";
        case LdUse::kQuarantined:
            return "quarantined";
        case LdUse::kForeign:
            return "another manager's";
    }
    return "";
}

class Painter {
  public:
    explicit Painter(const Fabric& fabric) : fabric_(fabric), layout_(lay_out(fabric)), names_(fabric) {}

    std::string paint() {
        svg_.text({kMargin, kMargin + 12}, fabric_.title,
                  {.size = kTitleSize, .fill = kInk, .bold = true, .anchor = TextStyle::Anchor::kStart});
        for (std::size_t s = 0; s < fabric_.switches.size(); ++s) links_of_switch(s);
        for (std::size_t h = 0; h < fabric_.hosts.size(); ++h) links_of_host(h);
        networks();
        for (std::size_t h = 0; h < fabric_.hosts.size(); ++h) host(h);
        for (std::size_t s = 0; s < fabric_.switches.size(); ++s) switch_body(s);
        for (std::size_t d = 0; d < fabric_.devices.size(); ++d) device_body(d);
        for (std::size_t s = 0; s < fabric_.switches.size(); ++s) bindings(s);
        for (std::size_t s = 0; s < fabric_.switches.size(); ++s) switch_details(s);
        for (std::size_t d = 0; d < fabric_.devices.size(); ++d) device_details(d);
        const double width =
            std::max({layout_.width, text_width(fabric_.title, kTitleSize) + 2 * kMargin, kLeastWidth});
        const double height = legend(width);
        return svg_.document(width, height, fabric_.title);
    }

  private:
    [[nodiscard]] std::string colour_of(const std::string& name) const {
        const std::size_t host = names_.host(name);
        return host == Names::npos ? kFaint : host_colour(host);
    }

    // Where a link to a device ends: at one of its heads. Nothing when there is no such device.
    [[nodiscard]] const Box* head_of(const std::string& name, unsigned number) const {
        const std::size_t device = names_.device(name);
        if (device == Names::npos) return nullptr;
        const auto& heads = fabric_.devices[device].heads;
        const auto head = std::ranges::find(heads, number);
        if (layout_.devices[device].heads.empty()) return nullptr;
        return &layout_.devices[device]
                    .heads[head == heads.end() ? 0 : static_cast<std::size_t>(head - heads.begin())];
    }

    void links_of_switch(std::size_t s) {
        const Switch& one = fabric_.switches[s];
        for (std::size_t p = 0; p < one.ports.size(); ++p) {
            const Port& port = one.ports[p];
            const Box& chip = layout_.switches[s].ports[p];
            const std::string down = one.is_up && port.link_up ? "" : kBad;
            if (const Box* end = end_of_cable(port); end != nullptr)
                svg_.curve(bottom_of(chip), top_of(*end),
                           {.stroke = down.empty() ? "#64748b" : down, .width = 5, .dashed = !down.empty()});
            // A host reaches what is below a cable over that.
            const std::size_t host = is_cabled(one, port) ? Names::npos : names_.host(port.host);
            if (host != Names::npos)
                svg_.curve(
                    bottom_of(layout_.hosts[host]), top_of(chip),
                    {.stroke = down.empty() ? host_colour(host) : down, .width = 2, .dashed = !down.empty()});
            if (const Box* head = head_of(port.device, port.head); head != nullptr)
                svg_.curve(bottom_of(chip), top_of(*head),
                           {.stroke = down.empty() ? "#cbd5e1" : down, .width = 4, .dashed = !down.empty()});
        }
    }

    [[nodiscard]] const Box* end_of_cable(const Port& port) const {
        const std::size_t below = names_.one_switch(port.below);
        if (below == Names::npos) return nullptr;
        const std::vector<Port>& ports = fabric_.switches[below].ports;
        const auto end = std::ranges::find(ports, port.below_port, &Port::id);
        return end == ports.end()
                   ? nullptr
                   : &layout_.switches[below].ports[static_cast<std::size_t>(end - ports.begin())];
    }
    [[nodiscard]] bool is_cabled(const Switch& below, const Port& port) const {
        return std::ranges::any_of(fabric_.switches, [&](const Switch& above) {
            return std::ranges::any_of(above.ports, [&](const Port& one) {
                return one.below == below.name && one.below_port == port.id;
            });
        });
    }

    void links_of_host(std::size_t h) {
        for (const DirectDevice& direct : fabric_.hosts[h].direct)
            if (const Box* head = head_of(direct.device, direct.head); head != nullptr)
                svg_.curve(bottom_of(layout_.hosts[h]), top_of(*head),
                           {.stroke = host_colour(h), .width = 2.5});
    }

    void networks() {
        std::map<std::size_t, unsigned> ends;  // host -> cables that are drawn at it
        for (std::size_t n = 0; n < fabric_.networks.size(); ++n) {
            const Network& network = fabric_.networks[n];
            if (network.hosts.size() < 2) continue;
            const std::size_t one = names_.host(network.hosts[0]);
            const std::size_t other = names_.host(network.hosts[1]);
            if (one == Names::npos || other == Names::npos) continue;
            const auto end = [&](std::size_t host) {
                const Box& box = layout_.hosts[host];
                const double shift = 12 * static_cast<double>(ends[host]++);
                return Point{box.centre() + shift, box.y};
            };
            const Point from = end(one);
            const Point to = end(other);
            const double top = std::min(from.y, to.y) - 20 - 22 * static_cast<double>(ends[one] - 1);
            svg_.bridge(from, to, top, {.stroke = "#0891b2", .width = 2, .dashed = true});
            svg_.text({(from.x + to.x) / 2, top + 4}, network.name + " (RDMA)",
                      {.size = kDetailSize, .fill = "#0e7490", .bold = true, .halo = kPaper});
        }
    }

    void host(std::size_t h) {
        const Host& one = fabric_.hosts[h];
        const Box& box = layout_.hosts[h];
        svg_.begin_group(one.name);
        svg_.box(box, 10, {.fill = host_colour(h)});
        const double line = one.detail.empty() ? 31 : 23;
        svg_.text({box.centre(), box.y + line}, one.name, {.size = kNameSize, .fill = kPaper, .bold = true});
        svg_.text({box.centre(), box.y + 40}, one.detail, {.size = kDetailSize, .fill = "#f1f5f9"});
        if (one.standing != Host::Standing::kUnknown)
            svg_.circle({box.right() - 12, box.y + 12}, 4.5,
                        {.fill = one.standing == Host::Standing::kConnected ? "#4ade80" : "#f87171",
                         .stroke = kPaper,
                         .width = 1.5});
        svg_.end_group();
    }

    void switch_body(std::size_t s) {
        const Switch& one = fabric_.switches[s];
        svg_.box(
            layout_.switches[s].box, 10,
            {.fill = kSwitchFill, .stroke = one.is_up ? kLine : kBad, .width = 1.5, .dashed = !one.is_up});
    }

    void device_body(std::size_t d) {
        const Device& device = fabric_.devices[d];
        const DevicePlace& place = layout_.devices[d];
        svg_.box(place.box, 10, {.fill = kDeviceFill, .stroke = device.is_ill ? kBad : kLine, .width = 1.5});
    }

    // From the vPPB through the port and the head to the LD; those that share a link run side by side.
    void bindings(std::size_t s) {
        const Switch& one = fabric_.switches[s];
        std::map<std::size_t, unsigned> drawn;  // port -> bindings through it
        for (std::size_t v = 0; v < one.vcss.size(); ++v)
            for (const Slot& slot : layout_.switches[s].lanes[v].slots) {
                const Vppb* vppb = slot.left_out != 0 ? nullptr : &one.vcss[v].vppbs[slot.vppb];
                if (vppb == nullptr || vppb->device.empty()) continue;
                const auto port = std::ranges::find(one.ports, vppb->device, &Port::device);
                const Box* const ld = ld_box(*vppb);
                if (port == one.ports.end() || ld == nullptr) continue;
                const auto p = static_cast<std::size_t>(port - one.ports.begin());
                const unsigned number = drawn[p]++;
                const double side = (number % 2 == 0 ? 1 : -1) * kBetweenBindings * ((number + 1) / 2);
                const double shift = std::clamp(side, -kChipWidth / 2, kChipWidth / 2);
                const Box& chip = layout_.switches[s].ports[p];
                const Box* const head = head_of(port->device, port->head);
                const Paint paint{.stroke = colour_of(host_of(one, one.vcss[v])), .width = 2};
                svg_.curve(bottom_of(slot.box), {chip.centre() + shift, chip.bottom()}, paint);
                svg_.curve({chip.centre() + shift, chip.bottom()}, {head->centre() + shift, head->y}, paint);
                to_ld({head->centre() + shift, head->y}, *ld, first_row_of(vppb->device), paint);
            }
    }

    // LDs below the first row are reached through the gap beside them: a line over another LD would seem to
    // be that one's.
    void to_ld(Point from, const Box& ld, double first_row, const Paint& paint) {
        if (ld.y < first_row + ld.height) return svg_.curve(from, top_of(ld), paint);
        const Point gap{ld.x - 1, first_row};
        svg_.curve(from, gap, paint);
        svg_.curve(gap, {gap.x, ld.y + ld.height / 2}, paint);
    }
    [[nodiscard]] double first_row_of(const std::string& device) const {
        return layout_.devices[names_.device(device)].box.y + kDeviceTitle;
    }

    [[nodiscard]] const Box* ld_box(const Vppb& vppb) const {
        const std::size_t device = names_.device(vppb.device);
        if (device == Names::npos) return nullptr;
        const auto& lds = fabric_.devices[device].lds;
        const auto ld = std::ranges::find(lds, vppb.ld, &Ld::name);
        return ld == lds.end() ? nullptr
                               : &layout_.devices[device].lds[static_cast<std::size_t>(ld - lds.begin())];
    }

    static std::string host_of(const Switch& one, const Vcs& vcs) {
        const auto port = std::ranges::find(one.ports, vcs.upstream_port, &Port::id);
        return port == one.ports.end() ? "" : port->host;
    }

    void switch_details(std::size_t s) {
        const Switch& one = fabric_.switches[s];
        const SwitchPlace& place = layout_.switches[s];
        for (std::size_t v = 0; v < one.vcss.size(); ++v) lane(one, one.vcss[v], place.lanes[v]);
        svg_.text({place.box.centre(), place.box.bottom() - 30}, one.name,
                  {.size = kNameSize, .fill = kInk, .bold = true, .halo = kSwitchFill});
        svg_.text({place.box.centre(), place.box.bottom() - 16},
                  one.is_up ? one.detail : one.detail + " (down)",
                  {.size = kDetailSize, .fill = one.is_up ? kFaint : kBad, .halo = kSwitchFill});
        for (std::size_t p = 0; p < one.ports.size(); ++p) chip(one.ports[p], place.ports[p]);
    }

    void lane(const Switch& one, const Vcs& vcs, const VcsLane& place) {
        const std::string host = host_of(one, vcs);
        const std::string colour = colour_of(host);
        svg_.begin_group(
            fmt::format("VCS {} of {}{}{}", vcs.id, one.name, host.empty() ? "" : ", seen by ", host));
        svg_.box(place.box, 6, {.fill = kPaper, .stroke = colour, .opacity = 0.95});
        svg_.text({place.box.centre(), place.box.y + 12}, fmt::format("VCS {}", vcs.id),
                  {.size = kSmallSize, .fill = colour, .bold = true});
        for (const Slot& slot : place.slots) {
            if (slot.left_out != 0) {
                svg_.text({slot.box.centre(), slot.box.y + 13}, fmt::format("+{}", slot.left_out),
                          {.size = kSmallSize, .fill = kFaint});
                continue;
            }
            const Vppb& vppb = vcs.vppbs[slot.vppb];
            const bool bound = !vppb.device.empty();
            svg_.box(slot.box, 4,
                     bound ? Paint{.fill = colour} : Paint{.fill = kSwitchFill, .stroke = "#cbd5e1"});
            svg_.text({slot.box.centre(), slot.box.y + 13.5}, std::to_string(vppb.id),
                      {.size = kSmallSize, .fill = bound ? kPaper : kFaint, .bold = bound});
        }
        svg_.end_group();
    }

    void chip(const Port& port, const Box& box) {
        const bool is_empty = port.host.empty() && port.device.empty() && port.below.empty();
        std::string title = fmt::format("port {}: ", port.id);
        title += is_empty ? "empty" : port.host + port.device + port.below;
        svg_.begin_group(port.link_up ? title : title + ", link down");
        svg_.box(box, 5,
                 {.fill = is_empty ? kPaper : "#334155",
                  .stroke = port.link_up ? "#334155" : kBad,
                  .dashed = is_empty});
        svg_.text({box.centre(), box.y + 13}, std::to_string(port.id),
                  {.size = kSmallSize + 0.5, .fill = is_empty ? kFaint : kPaper, .bold = true});
        svg_.end_group();
    }

    void device_details(std::size_t d) {
        const Device& device = fabric_.devices[d];
        const DevicePlace& place = layout_.devices[d];
        svg_.text(
            {place.box.centre(), place.box.y + 27}, device.name,
            {.size = kNameSize, .fill = device.is_ill ? kBad : kInk, .bold = true, .halo = kDeviceFill});
        svg_.text({place.box.centre(), place.box.y + 41},
                  fmt::format("{}, {}", device.kind, format_bytes(device.size)),
                  {.size = kDetailSize, .fill = kFaint, .halo = kDeviceFill});
        for (std::size_t i = 0; i < place.heads.size(); ++i) {
            if (device.heads.size() < 2) {
                svg_.circle({place.heads[i].centre(), place.box.y}, kDot / 2, {.fill = "#334155"});
                continue;
            }
            svg_.box(place.heads[i], 5, {.fill = "#334155"});
            svg_.text({place.heads[i].centre(), place.heads[i].y + 13}, fmt::format("h{}", device.heads[i]),
                      {.size = kSmallSize + 0.5, .fill = kPaper, .bold = true});
        }
        for (std::size_t i = 0; i < device.lds.size(); ++i) ld(device, device.lds[i], place.lds[i]);
    }

    void ld(const Device& device, const Ld& one, const Box& box) {
        uses_.insert(one.use);
        std::string title = fmt::format("{}{}{}: {}", device.name, one.name.empty() ? "" : " LD ", one.name,
                                        format_bytes(one.size));
        if (!one.host.empty()) title += ", bound to " + one.host;
        if (!one.note.empty()) title += ", " + one.note;
        svg_.begin_group(title);
        svg_.box(box, 4, ld_paint(one.use, colour_of(one.host)));
        const bool dark = one.use == LdUse::kBound;
        const std::string ink = dark ? kPaper : one.use == LdUse::kEmpty ? kLine : kInk;
        const bool is_hatched = one.use == LdUse::kQuarantined || one.use == LdUse::kForeign;
        const std::string halo = is_hatched ? kPaper : "";
        const double line = one.name.empty() ? 20 : 25;
        svg_.text({box.centre(), box.y + 12}, one.name.empty() ? "" : "LD " + one.name,
                  {.size = kSmallSize - 0.5, .fill = dark ? kPaper : kFaint, .halo = halo});
        svg_.text({box.centre(), box.y + line}, one.size == Bytes{} ? "none" : format_bytes(one.size),
                  {.size = kSmallSize + 0.5, .fill = ink, .bold = one.use != LdUse::kEmpty, .halo = halo});
        svg_.end_group();
    }

    // What the LDs of this picture mean, in as many rows as its width asks for; gives how low it reaches.
    double legend(double width) {
        double x = kMargin;
        double y = layout_.height - kMargin;
        for (const LdUse use : uses_) {
            const std::string words(words_of(use));
            const double item = 22 + text_width(words, kDetailSize) + 24;
            if (x > kMargin && x + item > width) {
                x = kMargin;
                y += kLegendRow;
            }
            svg_.box({x, y - 10, 16, 12}, 3, ld_paint(use, host_colour(0)));
            svg_.text({x + 22, y}, words,
                      {.size = kDetailSize, .fill = kFaint, .anchor = TextStyle::Anchor::kStart});
            x += item;
        }
        return y + kMargin;
    }

    const Fabric& fabric_;
    Layout layout_;
    Names names_;
    SvgWriter svg_;
    std::set<LdUse> uses_;
};

}  // namespace

std::string to_svg(const Fabric& fabric) { return Painter(fabric).paint(); }

}  // namespace memtide::diagram
