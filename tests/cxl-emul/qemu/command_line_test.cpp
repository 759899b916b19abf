#include "cxl-emul/qemu/command_line.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

using testing::HasSubstr;
using testing::Not;

HostPlan small_plan() {
    HostPlan plan;
    plan.name = "host0";
    plan.memory = gibibytes(1);
    plan.cpus = 1;
    plan.kernel = "/k/vmlinuz";
    plan.initramfs = "/r/initramfs";
    plan.window = gibibytes(4);
    plan.vcss = {{"switch0", 0, 2}};
    plan.monitor_socket = "/r/qmp.sock";
    return plan;
}

// One option a line with its value, so that a difference is easy to read.
std::string lines(const HostPlan& plan) {
    std::string out;
    for (const auto& word : qemu_command_line(plan, {10, 11, 12})) {
        if (!out.empty()) out += word.starts_with("-") ? "\n" : " ";
        out += word;
    }
    return out;
}

TEST(CommandLine, HostBehindOneSwitch) {
    constexpr auto kVirtio = ",disable-legacy=on,iommu_platform=on,x-max-bounce-buffer-size=67108864\n";
    EXPECT_EQ(
        lines(small_plan()),
        std::string("qemu-system-x86_64\n"
                    "-name host0\n"
                    "-nodefaults\n"
                    "-no-user-config\n"
                    "-display none\n"
                    "-vga none\n"
                    "-machine q35,cxl=on,cxl-fmw.0.targets.0=cxl.0,cxl-fmw.0.size=4096M\n"
                    "-accel tcg,thread=multi\n"
                    "-cpu max,hypervisor=off\n"
                    "-smp 1\n"
                    "-m 1024M\n"
                    "-object memory-backend-ram,id=dram,size=1024M\n"
                    "-numa node,nodeid=0,memdev=dram\n"
                    "-device pvpanic-pci\n"
                    "-action panic=pause\n"
                    "-kernel /k/vmlinuz\n"
                    "-initrd /r/initramfs\n"
                    "-append console=ttyS0 memhp_default_state=online_movable norandmaps memtide.host=host0\n"
                    "-chardev socket,id=qmp,fd=10\n"
                    "-mon chardev=qmp,mode=control\n"
                    "-chardev socket,id=people,path=/r/qmp.sock,server=on,wait=off\n"
                    "-mon chardev=people,mode=control\n"
                    "-chardev socket,id=console,fd=11\n"
                    "-serial chardev:console\n"
                    "-chardev socket,id=guest,fd=12\n"
                    "-device virtio-serial-pci") +
            kVirtio +
            "-device virtserialport,chardev=guest,name=memtide.guest,id=guestport\n"
            "-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap\n"
            "-device virtio-9p-pci,fsdev=root,mount_tag=hostroot" +
            kVirtio +
            "-device pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.0,hdm_for_passthrough=on\n"
            "-device cxl-rp,port=0,bus=cxl.0,id=rp0,chassis=0,slot=2\n"
            "-device cxl-upstream,port=2,bus=rp0,id=us0,addr=0.0,multifunction=on\n"
            "-device cxl-switch-mailbox-cci,bus=rp0,addr=0.1,target=us0\n"
            "-device cxl-downstream,port=0,bus=us0,id=dsp0-0,chassis=0,slot=3\n"
            "-device cxl-downstream,port=1,bus=us0,id=dsp0-1,chassis=0,slot=4");
}

TEST(CommandLine, WithoutManagerThereIsNoNetwork) {
    EXPECT_THAT(lines(small_plan()), Not(HasSubstr("-netdev")));
}

TEST(CommandLine, ManagerIsReachedThroughTheRelayAndNothingElse) {
    auto plan = small_plan();
    plan.relay = {"/opt/it's, here/memtide-cxl-emul", "relay", "127.0.0.1:8080"};
    const auto text = lines(plan);
    EXPECT_THAT(text, HasSubstr("-netdev user,id=net,restrict=on,guestfwd=tcp:10.0.2.101:8080-cmd:"
                                "'/opt/it'\\''s,, here/memtide-cxl-emul' 'relay' '127.0.0.1:8080'\n"));
    EXPECT_THAT(text, HasSubstr("-device virtio-net-pci,netdev=net,romfile=,disable-legacy=on"));
}

TEST(CommandLine, NetworkIsACardOnAUnixSocketThatOneEndListensAt) {
    auto plan = small_plan();
    plan.networks = {
        {"rdma0", "/r/hosts/a,b/rdma0.net", true, "52:54:4d:54:00:01", "10.77.0.1/24", "host1", "10.77.0.2"}};
    const auto one = lines(plan);
    EXPECT_THAT(
        one, HasSubstr("-netdev stream,id=rdma0,server=on,addr.type=unix,addr.path=/r/hosts/a,,b/rdma0.net\n"
                       "-device virtio-net-pci,netdev=rdma0,mac=52:54:4d:54:00:01,romfile=,"));
    EXPECT_THAT(one, HasSubstr(" memtide.rdma=rdma0,52:54:4d:54:00:01,10.77.0.1/24,host1,10.77.0.2\n"));
    plan.networks[0].listens = false;
    EXPECT_THAT(lines(plan),
                HasSubstr("-netdev stream,id=rdma0,server=off,reconnect-ms=500,addr.type=unix,"));
}

TEST(CommandLine, KvmUsesTheHostsProcessor) {
    auto plan = small_plan();
    plan.accelerator = Accelerator::kKvm;
    EXPECT_THAT(lines(plan), HasSubstr("-accel kvm\n-cpu host,hypervisor=off\n"));
}

TEST(CommandLine, DirectDeviceIsOnARootPortOfItsOwn) {
    auto plan = small_plan();
    plan.vcss.clear();
    plan.direct = {{"memory0", "/m/a,b", {}, mebibytes(256), SerialNumber{0x4d54000200000000}}};
    const auto text = lines(plan);
    EXPECT_THAT(
        text,
        HasSubstr("-device cxl-rp,port=0,bus=cxl.0,id=direct-rp0,chassis=0,slot=2\n"
                  "-object "
                  "memory-backend-file,id=direct-mem0,mem-path=/m/a,,b,offset=0,size=268435456,share=on\n"
                  "-device cxl-type3,bus=direct-rp0,volatile-memdev=direct-mem0,id=direct-memory0,sn="
                  "0x4d54000200000000"));
    EXPECT_THAT(text, Not(HasSubstr("cxl-upstream")));
}

TEST(CommandLine, HostWithoutCxlHasNoHostBridge) {
    auto plan = small_plan();
    plan.vcss.clear();
    EXPECT_THAT(lines(plan), HasSubstr("-machine q35\n"));
    EXPECT_THAT(lines(plan), Not(HasSubstr("cxl")));
}

TEST(CommandLine, NumaNodeIsSlowerRamByTheFirmwareTables) {
    auto plan = small_plan();
    plan.vcss.clear();
    plan.cpus = 2;
    plan.numa_nodes = {{mebibytes(768), 250, gibibytes(16)}, {mebibytes(256), 4000, gibibytes(2)}};
    EXPECT_THAT(lines(plan), HasSubstr("-machine q35,hmat=on\n"
                                       "-accel tcg,thread=multi\n"
                                       "-cpu max,hypervisor=off\n"
                                       "-smp 2\n"
                                       "-m 2048M\n"
                                       "-object memory-backend-ram,id=dram,size=1024M\n"
                                       "-numa node,nodeid=0,memdev=dram,cpus=0-1,initiator=0\n"
                                       "-object memory-backend-ram,id=node1-ram,size=768M\n"
                                       "-numa node,nodeid=1,memdev=node1-ram,initiator=0\n"
                                       "-object memory-backend-ram,id=node2-ram,size=256M\n"
                                       "-numa node,nodeid=2,memdev=node2-ram,initiator=0\n"
                                       "-numa dist,src=0,dst=1,val=25\n"
                                       "-numa dist,src=0,dst=2,val=254\n"
                                       "-numa dist,src=1,dst=2,val=254\n"));
    EXPECT_THAT(lines(plan), HasSubstr("target=1,hierarchy=memory,data-type=access-latency,latency=250\n"));
    EXPECT_THAT(lines(plan),
                HasSubstr("target=2,hierarchy=memory,data-type=access-bandwidth,bandwidth=2048M\n"));
}

TEST(CommandLine, PlaceOfAVppbNamesThePortAndTheSlotOfTheCommandLine) {
    auto plan = small_plan();
    plan.vcss = {{"switch0", 0, 2}, {"switch1", 7, 3}};
    const auto text = lines(plan);
    for (const auto& [name, vcs, vppb] :
         {std::tuple{"switch0", 0, 0}, {"switch0", 0, 1}, {"switch1", 7, 2}}) {
        const auto place =
            port_place(plan, name, static_cast<std::uint8_t>(vcs), static_cast<std::uint8_t>(vppb));
        ASSERT_TRUE(place) << name << vppb;
        EXPECT_THAT(text, HasSubstr(fmt::format("id={},chassis=0,slot={}", place->id, place->slot)));
    }
}

TEST(CommandLine, VppbThatTheHostDoesNotHaveIsNotFound) {
    const auto plan = small_plan();
    EXPECT_EQ(port_place(plan, "switch0", 0, 2).error().message,
              "host host0 has no vPPB 2 of VCS 0 of switch0");
    EXPECT_EQ(port_place(plan, "switch0", 1, 0).error().code, ErrorCode::kNotFound);
    EXPECT_EQ(port_place(plan, "switch9", 0, 0).error().code, ErrorCode::kNotFound);
}

TEST(CommandLine, MachineLimitsAreRefusedWithTheNumbers) {
    auto plan = small_plan();
    EXPECT_TRUE(check_plan(plan));
    plan.vcss = {{"switch0", 0, 33}};
    EXPECT_THAT(check_plan(plan).error().message, HasSubstr("33 vPPBs; a QEMU host takes at most 32"));
    plan.vcss.assign(8, {"switch0", 0, 32});
    EXPECT_THAT(check_plan(plan).error().message, HasSubstr("PCI buses"));
}

}  // namespace
}  // namespace memtide::emul
