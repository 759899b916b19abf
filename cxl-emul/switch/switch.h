#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/fmapi/capture/session_capture.h"
#include "common/fmapi/commands/events.h"
#include "common/fmapi/message.h"
#include "cxl-emul/switch/connection.h"
#include "cxl-emul/switch/disturbance.h"
#include "cxl-emul/switch/hotplug.h"
#include "cxl-emul/switch/media.h"
#include "cxl-emul/switch/model.h"
#include "cxl-emul/switch/reconfigure.h"
#include "cxl-emul/switch/topology.h"

namespace memtide::emul {

// What --pcap is for, in the help of the programs that run switches.
inline constexpr const char* kPcapHelp =
    "Write what switches and managers say to each other behind what is in this file, for Wireshark and "
    "`memtide fmapi decode`";

// What a vPPB is doing, for status displays.
struct VppbStatus {
    std::uint8_t vcs = 0;
    std::uint8_t vppb = 0;
    HostId host;
    enum class State { kUnbound, kBinding, kBound, kUnbinding } state = State::kUnbound;
    // Valid unless unbound.
    DeviceId device;
    LdId ld;  // kWholeDevice for an SLD
    std::uint8_t port = 0;
    SerialNumber serial;
    Bytes offset;
    Bytes size;
};

// What quality of service makes of a device's bandwidth at the moment, by LD; bytes a second.
struct LdBandwidth {
    LdQos qos;
    bool has_host = false;
    std::uint64_t granted = 0;
    DeviceLoad load = DeviceLoad::kLight;
};
struct DeviceBandwidth {
    Bytes whole;
    std::uint8_t backpressure_percent = 0;
    std::vector<LdBandwidth> lds;
};

// A device that several switches have heads of, and its memory.
struct SharedDevice {
    std::shared_ptr<Device> device;
    std::shared_ptr<Media> media;
};
using SharedDeviceMap = std::map<DeviceId, SharedDevice>;
// Opens the media of the multi-headed devices that these switches have heads of; errors as Switch::open().
Result<SharedDeviceMap> open_shared_devices(const Topology& topology,
                                            const std::vector<SwitchConfig>& switches);

// An emulated CXL switch with its devices: answers the FM API to as many managers at once as the limits
// allow; one more takes the place of the one that has been idle longest.
//
//   auto sw = Switch::open(executor, topology, topology.switches[0], no_hotplug());
//   if (!sw) ...;
//   (*sw)->start();            // then run the executor
//   print((*sw)->addresses());
//   ...
//   (*sw)->stop();             // connections end; the executor runs out of work
//
// All work happens on a strand of the executor, except that media is erased on a thread of the switch's own:
// overwriting a gigabyte blocks. Member functions may be called from any thread unless they say otherwise.
class Switch {
  public:
    // Opens the media files (sparse, created when missing, content kept) and binds the listeners, so that a
    // port in use shows here: kAlreadyExists when an endpoint or a media file is in use by a living process,
    // kExhausted on a full disk, kPermission, kIo. Nothing is served before start().
    // Switches that share devices have one executor, which one thread runs; a multi-headed device that is not
    // in `shared` is this switch's alone.
    static Result<std::unique_ptr<Switch>> open(boost::asio::any_io_executor executor,
                                                const Topology& topology, const SwitchConfig& config,
                                                std::shared_ptr<HotplugBackend> hotplug,
                                                ConnectionLimits limits = {},
                                                const SharedDeviceMap& shared = {});
    // As open(), on media that somebody else keeps: one for each of config.devices, in their order.
    static Result<std::unique_ptr<Switch>> open_on(boost::asio::any_io_executor executor,
                                                   const SwitchConfig& config,
                                                   std::vector<std::shared_ptr<Media>> media,
                                                   std::shared_ptr<HotplugBackend> hotplug,
                                                   ConnectionLimits limits = {},
                                                   const SharedDeviceMap& shared = {});
    ~Switch();  // as stop(); returns without waiting for an operation of the backend
    Switch(const Switch&) = delete;
    Switch& operator=(const Switch&) = delete;

    void start();
    // Closes listeners and connections and aborts what can be aborted. Idempotent.
    void stop();

    [[nodiscard]] const SwitchId& name() const;
    // Where it listens, in the order of the config, with the real port where that was 0.
    [[nodiscard]] const std::vector<std::string>& addresses() const;

    // What goes over the connections that are opened from now on is told to `capture`, on the switch's
    // strand: switches that have one capture have one thread.
    void capture(fmapi::SwitchCapture capture);

    // One FM API command as if it had come over a connection; the answer is the response.
    boost::asio::awaitable<fmapi::Message> execute(fmapi::Message request);

    // The same of a host, to the LD that one of its vPPBs holds or is about to: as through the mailbox of the
    // LD. Answers at once, and so must be called on the executor's thread, which must be the only one.
    // kNotFound when there is no such vPPB (ids as in VppbStatus) or when it is unbound.
    Result<fmapi::Message> execute_of_host(std::uint8_t vcs, std::uint8_t vppb,
                                           const fmapi::Message& request);

    // Every vPPB, by VCS and vPPB. A bound vPPB is one whose host can reach the device.
    boost::asio::awaitable<std::vector<VppbStatus>> vppbs();

    // Changes a virtual switch from now until the power goes; errors as memtide::emul::reconfigure().
    boost::asio::awaitable<Result<>> change_vcs(VcsChange change);

    // What the host that has the LD takes of its device from now on, bytes a second. kNotFound when there is
    // no such device or LD here.
    boost::asio::awaitable<Result<>> set_ld_demand(DeviceId device, std::size_t ld, std::uint64_t demand);
    boost::asio::awaitable<Result<DeviceBandwidth>> bandwidth(DeviceId device);

    // Shows the link of a host's upstream port as up or down in Get Physical Port State; up at first.
    void set_host_link(const HostId& host, bool up);

    // With its link down a device's port shows nothing behind it and no command reaches it; what is bound
    // stays bound. Up at first.
    void set_device_link(const DeviceId& device, bool up);

    // What the device and its LDs say of their health from now on; at first that they are well.
    void set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health);

    // Takes a device off its port, whoever has it, or puts it back: like its link, and its port's slot shows
    // it gone. Plugged in at first.
    void set_device_plugged(const DeviceId& device, bool plugged);

    // The device sends an error message for one of its LDs to the switch.
    void report_ld_error(const DeviceId& device, fmapi::MldPortEvent event);

    // As set_host_link() or set_device_link(), and set_device_plugged(), of whatever is at one port.
    void set_port_link(std::uint8_t port, bool up);
    void set_port_plugged(std::uint8_t port, bool plugged);

    // Everything is to be asked about from now on; null: nothing goes wrong on purpose.
    void disturb(std::shared_ptr<Disturbance> disturbance);
    // What a Disturbance holds may go on now.
    void look_again();

    // Connections end, new ones are closed at once, and background operations are interrupted. With
    // `keeps_state` it has its bindings and events afterwards; otherwise nothing is bound, hosts lose by
    // surprise what they had, and there are no events. Devices have power of their own.
    void power_off(bool keeps_state);
    // It serves again, as soon as power_off() has come to its end.
    void power_on();
    // A device forgets what it was told: nothing of it is bound behind this switch, and its LDs have the
    // sizes that the topology gives them. Background operations of its LDs are interrupted. What is in its
    // memory stays, which is the worst that can be.
    void lose_device_state(const DeviceId& device);

  private:
    class Impl;
    explicit Switch(std::shared_ptr<Impl> impl);
    std::shared_ptr<Impl> impl_;
};

}  // namespace memtide::emul
