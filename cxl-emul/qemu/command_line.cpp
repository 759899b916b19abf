#include "cxl-emul/qemu/command_line.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::emul {
namespace {

// First PCIe slot numbers; each port of the machine gets the next one.
constexpr unsigned kFirstSlot = 2;
// Bus numbers from here on belong to the CXL host bridge.
constexpr unsigned kHostBridgeBus = 12;
// A bus has 32 device numbers, and each downstream port takes one.
constexpr std::size_t kVppbsPerVcs = 32;

std::string port_id(std::size_t vcs_index, unsigned vppb) { return fmt::format("dsp{}-{}", vcs_index, vppb); }

// Commas separate options for QEMU; a comma in a value is doubled.
std::string with_doubled_commas(std::string_view value) {
    std::string out;
    for (const char c : value) {
        out += c;
        if (c == ',') out += ',';
    }
    return out;
}

// For the command of a guestfwd, which QEMU splits into words as a shell does.
std::string shell_words(const std::vector<std::string>& words) {
    std::string out;
    for (const auto& word : words) {
        if (!out.empty()) out += ' ';
        out += '\'';
        for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
        out += '\'';
    }
    return out;
}

// A virtio device whose buffers may lie in CXL memory. QEMU cannot hand emulated CXL memory to a device as it
// is and copies through bounce buffers, of 4 KiB in all by default: a longer buffer breaks the device ("bogus
// descriptor or out of resources"). Only a device that goes through its bus's address space can be given
// more.
std::string virtio(std::string_view device) {
    return fmt::format("{},disable-legacy=on,iommu_platform=on,x-max-bounce-buffer-size=67108864", device);
}

struct Builder {
    std::vector<std::string> argv;
    template <typename... Words>
    void add(Words... words) {
        (argv.emplace_back(std::move(words)), ...);
    }
    void device(std::string text) { add("-device", std::move(text)); }
};

// Latency and bandwidth of a node's memory as its processors in node 0 see it.
void add_hmat(Builder& line, std::size_t node, unsigned latency_ns, Bytes bandwidth) {
    line.add("-numa", fmt::format("hmat-lb,initiator=0,target={},hierarchy=memory,data-type=access-latency,"
                                  "latency={}",
                                  node, latency_ns));
    line.add("-numa", fmt::format("hmat-lb,initiator=0,target={},hierarchy=memory,data-type=access-bandwidth,"
                                  "bandwidth={}M",
                                  node, bandwidth.value >> 20));
}

// SLIT distances are latencies with the own node's as 10.
unsigned distance(unsigned latency_ns) {
    constexpr unsigned kLocal = 10;
    constexpr unsigned kFarthest = 254;  // 255: cannot be reached
    return std::clamp(latency_ns * kLocal / kOwnLatencyNs, kLocal + 1, kFarthest);
}

void add_memory(Builder& line, const HostPlan& plan) {
    Bytes all = plan.memory;
    for (const auto& node : plan.numa_nodes) all += node.size;
    line.add("-smp", std::to_string(plan.cpus), "-m", fmt::format("{}M", all.value >> 20));
    // The guest's own memory is node 0 by name: without an SRAT the kernel would put the CXL window there
    // too.
    line.add("-object", fmt::format("memory-backend-ram,id=dram,size={}M", plan.memory.value >> 20));
    if (plan.numa_nodes.empty()) {
        line.add("-numa", "node,nodeid=0,memdev=dram");
        return;
    }
    line.add("-numa", fmt::format("node,nodeid=0,memdev=dram,cpus=0-{},initiator=0", plan.cpus - 1));
    for (std::size_t i = 0; i < plan.numa_nodes.size(); ++i) {
        line.add("-object", fmt::format("memory-backend-ram,id=node{}-ram,size={}M", i + 1,
                                        plan.numa_nodes[i].size.value >> 20));
        line.add("-numa", fmt::format("node,nodeid={0},memdev=node{0}-ram,initiator=0", i + 1));
    }
    // QEMU wants the distance of each pair; between two such nodes the way leads through the processors.
    for (std::size_t to = 0; to < plan.numa_nodes.size(); ++to) {
        const unsigned latency = plan.numa_nodes[to].latency_ns;
        line.add("-numa", fmt::format("dist,src=0,dst={},val={}", to + 1, distance(latency)));
        for (std::size_t from = 0; from < to; ++from)
            line.add("-numa", fmt::format("dist,src={},dst={},val={}", from + 1, to + 1,
                                          distance(plan.numa_nodes[from].latency_ns + latency)));
    }
    add_hmat(line, 0, kOwnLatencyNs, kOwnBandwidth);
    for (std::size_t i = 0; i < plan.numa_nodes.size(); ++i)
        add_hmat(line, i + 1, plan.numa_nodes[i].latency_ns, plan.numa_nodes[i].bandwidth);
}

void add_machine(Builder& line, const HostPlan& plan) {
    const bool cxl = !plan.vcss.empty() || !plan.direct.empty();
    line.add("-name", plan.name, "-nodefaults", "-no-user-config", "-display", "none", "-vga", "none");
    std::string machine = "q35";
    if (cxl)
        machine +=
            fmt::format(",cxl=on,cxl-fmw.0.targets.0=cxl.0,cxl-fmw.0.size={}M", plan.window.value >> 20);
    if (!plan.numa_nodes.empty()) machine += ",hmat=on";
    line.add("-machine", std::move(machine));
    // Without the hypervisor bit: a guest that sees it refuses to commit CXL regions ("Failed to synchronize
    // CPU cache state"), since it does not trust a hypervisor's cache flush.
    if (plan.accelerator == Accelerator::kKvm) {
        line.add("-accel", "kvm", "-cpu", "host,hypervisor=off");
    } else {
        line.add("-accel", "tcg,thread=multi", "-cpu", "max,hypervisor=off");
    }
    add_memory(line, plan);
    // A panicked guest stays as it is, for a look at it and for its devices to be taken away by the switch.
    line.add("-device", "pvpanic-pci", "-action", "panic=pause");
}

void add_kernel(Builder& line, const HostPlan& plan) {
    // online_movable: memory that comes later can be taken away again. norandmaps: sanitized programs of this
    // kernel generation run in the guest.
    auto arguments =
        fmt::format("console=ttyS0 memhp_default_state=online_movable norandmaps memtide.host={}", plan.name);
    // What guest_scripts.cpp makes of it: interface, MAC, address, and the peer's name and address.
    for (const auto& network : plan.networks)
        arguments += fmt::format(" memtide.rdma={},{},{},{},{}", network.name, network.mac, network.address,
                                 network.peer, network.peer_address);
    if (!plan.kernel_arguments.empty()) arguments += " " + plan.kernel_arguments;
    line.add("-kernel", plan.kernel, "-initrd", plan.initramfs, "-append", std::move(arguments));
}

void add_channels(Builder& line, const HostPlan& plan, const HostDescriptors& descriptors) {
    line.add("-chardev", fmt::format("socket,id=qmp,fd={}", descriptors.qmp), "-mon",
             "chardev=qmp,mode=control");
    if (!plan.monitor_socket.empty()) {
        line.add("-chardev",
                 fmt::format("socket,id=people,path={},server=on,wait=off",
                             with_doubled_commas(plan.monitor_socket)),
                 "-mon", "chardev=people,mode=control");
    }
    line.add("-chardev", fmt::format("socket,id=console,fd={}", descriptors.console), "-serial",
             "chardev:console");
    line.add("-chardev", fmt::format("socket,id=guest,fd={}", descriptors.guest));
    line.device(virtio("virtio-serial-pci"));
    line.device(fmt::format("virtserialport,chardev=guest,name={},id={}", kGuestPortName, kGuestPortId));
    // The host's root file system, which the guest mounts read-only under an overlay of its own.
    line.add("-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap");
    line.device(virtio("virtio-9p-pci,fsdev=root,mount_tag=hostroot"));
    if (!plan.relay.empty()) {
        line.add("-netdev", fmt::format("user,id=net,restrict=on,guestfwd=tcp:10.0.2.101:8080-cmd:{}",
                                        with_doubled_commas(shell_words(plan.relay))));
        line.device(virtio("virtio-net-pci,netdev=net,romfile="));
    }
}

void add_networks(Builder& line, const HostPlan& plan) {
    for (std::size_t n = 0; n < plan.networks.size(); ++n) {
        const auto& network = plan.networks[n];
        line.add("-netdev", fmt::format("stream,id=rdma{},{},addr.type=unix,addr.path={}", n,
                                        network.listens ? "server=on" : "server=off,reconnect-ms=500",
                                        with_doubled_commas(network.socket)));
        line.device(virtio(fmt::format("virtio-net-pci,netdev=rdma{},mac={},romfile=", n, network.mac)));
    }
}

void add_cxl(Builder& line, const HostPlan& plan) {
    if (plan.vcss.empty() && plan.direct.empty()) return;
    // Without HDM decoders of its own, as is QEMU's default below one root port, the bridge passes everything
    // to one region and the guest cannot make a second.
    line.device(fmt::format("pxb-cxl,bus_nr={},bus=pcie.0,id=cxl.0,hdm_for_passthrough=on", kHostBridgeBus));
    unsigned slot = kFirstSlot;
    unsigned root_port = 0;
    for (std::size_t v = 0; v < plan.vcss.size(); ++v) {
        const auto& vcs = plan.vcss[v];
        line.device(
            fmt::format("cxl-rp,port={},bus=cxl.0,id=rp{},chassis=0,slot={}", root_port++, v, slot++));
        line.device(
            fmt::format("cxl-upstream,port={},bus=rp{},id=us{},addr=0.0,multifunction=on", vcs.vppbs, v, v));
        line.device(fmt::format("cxl-switch-mailbox-cci,bus=rp{},addr=0.1,target=us{}", v, v));
        for (unsigned p = 0; p < vcs.vppbs; ++p) {
            line.device(fmt::format("cxl-downstream,port={},bus=us{},id={},chassis=0,slot={}", p, v,
                                    port_id(v, p), slot++));
        }
    }
    for (std::size_t d = 0; d < plan.direct.size(); ++d) {
        const auto& device = plan.direct[d];
        line.device(
            fmt::format("cxl-rp,port={},bus=cxl.0,id=direct-rp{},chassis=0,slot={}", root_port++, d, slot++));
        line.add("-object",
                 fmt::format("memory-backend-file,id=direct-mem{},mem-path={},offset={},size={},share=on", d,
                             with_doubled_commas(device.media), device.offset.value, device.size.value));
        line.device(fmt::format("cxl-type3,bus=direct-rp{},volatile-memdev=direct-mem{},id=direct-{},sn={}",
                                d, d, device.name, format_serial(device.serial)));
    }
}

}  // namespace

std::string_view to_string(Accelerator accelerator) {
    return accelerator == Accelerator::kKvm ? "kvm" : "tcg";
}

std::vector<std::string> qemu_command_line(const HostPlan& plan, const HostDescriptors& descriptors) {
    Builder line;
    line.add("qemu-system-x86_64");
    add_machine(line, plan);
    add_kernel(line, plan);
    add_channels(line, plan, descriptors);
    add_networks(line, plan);
    add_cxl(line, plan);
    return std::move(line.argv);
}

Result<PortPlace> port_place(const HostPlan& plan, const std::string& switch_name, std::uint8_t vcs,
                             std::uint8_t vppb) {
    unsigned slot = kFirstSlot;
    for (std::size_t v = 0; v < plan.vcss.size(); ++v) {
        const auto& candidate = plan.vcss[v];
        if (candidate.switch_name == switch_name && candidate.vcs == vcs && vppb < candidate.vppbs)
            return PortPlace{port_id(v, vppb), slot + 1 + vppb};
        slot += 1U + candidate.vppbs;
    }
    return fail(ErrorCode::kNotFound,
                fmt::format("host {} has no vPPB {} of VCS {} of {}", plan.name, vppb, vcs, switch_name));
}

Result<> check_plan(const HostPlan& plan) {
    std::size_t buses = kHostBridgeBus + 1 + plan.direct.size() * 2;
    for (const auto& vcs : plan.vcss) {
        if (vcs.vppbs > kVppbsPerVcs) {
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("host {}: VCS {} of {} has {} vPPBs; a QEMU host takes at most {}",
                                    plan.name, vcs.vcs, vcs.switch_name, vcs.vppbs, kVppbsPerVcs));
        }
        buses += 2U + vcs.vppbs;
    }
    if (buses > 255) {
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("host {} needs {} PCI buses for its CXL ports; there are 255", plan.name, buses));
    }
    if (plan.vcss.size() + plan.direct.size() > 32)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("host {} has more than 32 CXL root ports", plan.name));
    return {};
}

}  // namespace memtide::emul
