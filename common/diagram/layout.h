#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/diagram/fabric.h"

// Where everything of a picture goes. Pure.
namespace memtide::diagram {

struct Box {
    double x = 0;
    double y = 0;
    double width = 0;
    double height = 0;
    [[nodiscard]] double centre() const { return x + width / 2; }
    [[nodiscard]] double bottom() const { return y + height; }
    [[nodiscard]] double right() const { return x + width; }
};

// A vPPB, or what stands for those that there is no room for.
struct Slot {
    Box box;
    std::size_t vppb = 0;      // index in the VCS
    std::size_t left_out = 0;  // not 0: it stands for so many
};

struct VcsLane {
    Box box;
    std::vector<Slot> slots;
};

struct SwitchPlace {
    Box box;
    std::vector<Box> ports;      // as in the Switch
    std::vector<VcsLane> lanes;  // of the VCSs, as in the Switch
};

struct DevicePlace {
    Box box;
    std::vector<Box> heads;  // connectors, as in the Device
    std::vector<Box> lds;    // as in the Device
};

// Everything in the order of the Fabric.
struct Layout {
    double width = 0;
    double height = 0;
    std::vector<Box> hosts;
    std::vector<SwitchPlace> switches;
    std::vector<DevicePlace> devices;
};

// Hosts above the switches above the devices, ordered so that few lines cross; parts that nothing connects
// stand beside each other, in rows.
Layout lay_out(const Fabric& fabric);

// About how wide a text of this size is in the fonts that pictures use.
double text_width(std::string_view text, double font_size);

}  // namespace memtide::diagram
