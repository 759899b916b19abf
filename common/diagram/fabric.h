#pragma once

#include <string>
#include <vector>

#include "common/base/bytes.h"

// What a picture of a CXL fabric shows, as plain data: from a topology file, or from a manager's answer.
// Names refer to each other; what refers to nothing is drawn without a line. Texts may be anything.
namespace memtide::diagram {

enum class LdUse {
    kEmpty,  // no memory allocated
    kFree,
    kReserved,  // on its way to a host or back
    kBound,
    kQuarantined,
    kForeign,  // another manager's
};

struct Ld {
    std::string name;  // in its device; empty for a device that is one
    Bytes size;
    LdUse use = LdUse::kFree;
    unsigned head = 0;  // by which it is reached
    std::string host;   // whom it is bound to
    std::string note;   // shown when a pointer rests on it
};

struct Device {
    std::string name;
    std::string kind;  // "mld"
    Bytes size;
    std::vector<unsigned> heads{0};  // their numbers
    std::vector<Ld> lds;
    bool is_ill = false;
};

struct Vppb {
    unsigned id = 0;
    std::string device;  // what is bound here; empty: nothing
    std::string ld;
};

struct Vcs {
    unsigned id = 0;
    unsigned upstream_port = 0;
    std::vector<Vppb> vppbs;
};

struct Port {
    unsigned id = 0;
    std::string host;         // an upstream port,
    std::string device;       // a downstream port,
    unsigned head = 0;        // with this head of the device,
    std::string below = {};   // or with a cable to another switch,
    unsigned below_port = 0;  // at this upstream port of it; or, with none of them, an empty slot
    bool link_up = true;
};

struct Switch {
    std::string name;
    std::string detail;  // a line below the name
    bool is_up = true;
    std::vector<Port> ports;
    std::vector<Vcs> vcss;
};

// A device, or a head of one, on a root port of the host.
struct DirectDevice {
    std::string device;
    unsigned head = 0;
};

struct Host {
    std::string name;
    std::string detail;
    enum class Standing { kUnknown, kConnected, kAway } standing = Standing::kUnknown;
    std::vector<DirectDevice> direct;
};

// A cable between hosts.
struct Network {
    std::string name;
    std::vector<std::string> hosts;
};

struct Fabric {
    std::string title;
    std::vector<Host> hosts;
    std::vector<Switch> switches;
    std::vector<Device> devices;
    std::vector<Network> networks;
};

}  // namespace memtide::diagram
