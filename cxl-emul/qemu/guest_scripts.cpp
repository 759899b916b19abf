// The two scripts that bring a guest from its initramfs to the helper of the rack.
#include <fmt/format.h>

#include "cxl-emul/qemu/command_line.h"
#include "cxl-emul/qemu/guest_image.h"

namespace memtide::emul {
namespace {

std::string shell_word(std::string_view text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

}  // namespace

std::string init_script() {
    return R"sh(#!/bin/busybox sh
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
case " $($b cat /proc/cmdline) " in
    *" memtide.probe "*)
        # Only asked whether this kernel runs at all: the answer is on the console.
        echo MEMTIDE-PROBE-OK >/dev/console
        $b poweroff -f
        ;;
esac
while read -r module; do
    $b insmod "/modules/$module" || echo "memtide: cannot load $module"
done </modules/order
# Read-only for good measure: the export itself refuses writes.
$b mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=mmap hostroot /lower || exec $b sh
$b mount -t tmpfs tmpfs /overlay
$b mkdir /overlay/upper /overlay/work
$b mount -t overlay -o lowerdir=/lower,upperdir=/overlay/upper,workdir=/overlay/work root /root || exec $b sh
for folder in dev proc sys run; do $b mkdir -p /root/$folder; done
$b mount -t tmpfs -o mode=755 tmpfs /root/run
$b mkdir -p /root/run/memtide
$b cp /bin/busybox /memtide/second-stage /root/run/memtide/
for folder in dev proc sys; do $b mount --move /$folder /root/$folder; done
exec $b switch_root /root /run/memtide/busybox sh /run/memtide/second-stage
)sh";
}

std::string second_stage_script(const GuestMaterial& material, const GuestImageOptions& options) {
    std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    if (!options.program_path.empty()) path = options.program_path + ":" + path;
    return fmt::format(
        R"sh(# Runs as process 1 of the guest, on the host's root file system under an overlay.
b=/run/memtide/busybox
export PATH={path} HOME=/root TERM=linux LANG=C.UTF-8{manager}
cd /
for word in $($b cat /proc/cmdline); do
    case $word in memtide.host=*) $b hostname "${{word#memtide.host=}}" ;; esac
done
$b hostname >/etc/hostname
$b mkdir -p /dev/pts /dev/shm /run/lock
$b mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
$b mount -t tmpfs -o mode=1777 tmpfs /dev/shm
$b ln -sfn /proc/self/fd /dev/fd
$b ln -sfn fd/0 /dev/stdin
$b ln -sfn fd/1 /dev/stdout
$b ln -sfn fd/2 /dev/stderr
$b mount -t debugfs debugfs /sys/kernel/debug
$b mount -t tracefs tracefs /sys/kernel/tracing
$b mount -t cgroup2 cgroup2 /sys/fs/cgroup
# The host's modprobe finds the modules of the guest's kernel.
$b mkdir -p /lib/modules
$b ln -sfn {modules} /lib/modules/{version}
$b ip link set lo up
# Networks between hosts; what is then left as eth0 is the way to the manager.
rxe=0
for word in $($b cat /proc/cmdline); do
    case $word in memtide.rdma=*) ;; *) continue ;; esac
    IFS=,
    set -- ${{word#memtide.rdma=}} # interface, MAC, address, and whom it leads to: name, address
    unset IFS
    for card in /sys/class/net/*; do
        [ "$($b cat "$card/address")" != "$2" ] || $b ip link set "${{card##*/}}" name "$1"
    done
    $b ip link set "$1" mtu {mtu} up
    $b ip address add "$3" dev "$1"
    echo "$5 $4" >>/etc/hosts
    # rxe says no more than "failed to add" without crc32_generic.
    [ "$rxe" != 0 ] || modprobe -a crc32_generic ib_uverbs rdma_ucm rdma_rxe
    rdma link add "rxe$rxe" type rxe netdev "$1" || echo "memtide: no RDMA device on $1" >/dev/console
    rxe=$((rxe + 1))
done
if [ -e /sys/class/net/eth0 ]; then
    $b ip link set eth0 up
    $b ip address add 10.0.2.15/24 dev eth0
fi
# A shell on the serial console, for `rack console`.
(
    while :; do
        $b setsid $b cttyhack /bin/bash -l </dev/ttyS0 >/dev/ttyS0 2>&1
        $b sleep 1
    done
) &
while :; do
    {helper} guest >/dev/console 2>&1
    echo "memtide: the guest helper ended with code $?, starting it again" >/dev/console
    $b sleep 1
done
)sh",
        fmt::arg("path", shell_word(path)),
        fmt::arg("manager", options.manager_url.empty() ? std::string()
                                                        : " MEMTIDE_URL=" + shell_word(options.manager_url)),
        fmt::arg("modules", shell_word(material.modules())), fmt::arg("version", material.version),
        fmt::arg("helper", shell_word(options.helper)), fmt::arg("mtu", kNetworkMtu));
}

}  // namespace memtide::emul
