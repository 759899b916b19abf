#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>

#include "common/base/error.h"
#include "cxl-emul/qemu/command_line.h"
#include "cxl-emul/switch/hotplug.h"

namespace memtide::emul {

// How far a host is.
enum class HostState {
    kStopped,   // no QEMU process: not started, or it ended (HostStatus::detail says how)
    kBooting,   // QEMU runs, the guest has not reported
    kReady,     // the guest's init has run and its CXL bus is enumerated
    kPanicked,  // the guest's kernel has panicked; QEMU still runs
};
std::string_view to_string(HostState state);

// What software inside the guest can do for the machine around it; the rack implements it with its helper.
class GuestHelper {
  public:
    virtual ~GuestHelper() = default;
    // True while the helper answers.
    [[nodiscard]] virtual bool available() const = 0;
    // Asks the guest to let the device in a PCIe slot go and to power the slot off, as an operator at its
    // console would. kConflict when the guest uses the device's memory (with what holds it), others when it
    // failed.
    virtual boost::asio::awaitable<Result<>> release_slot(unsigned slot) = 0;
    // Fails with kConflict when the guest uses the memory of the device in a slot.
    virtual boost::asio::awaitable<Result<>> check_slot_unused(unsigned slot) = 0;
};

struct HotplugTiming {
    std::chrono::milliseconds detach_deadline{
        30'000};  // a guest that has not let go by then keeps its device
    std::chrono::milliseconds poll{100};
};

// One QEMU process: its start and end, QMP, serial console, and the devices in its slots. All on one
// single-threaded executor.
class QemuHost {
  public:
    struct Callbacks {
        std::function<void()> changed;                  // state or detail
        std::function<void(std::string_view)> console;  // bytes from the serial console
        std::function<void(bool open)> guest_port;  // the guest opened or closed its end of the helper port
        std::function<void()> reset;                // the guest rebooted
    };

    QemuHost(boost::asio::any_io_executor executor, HostPlan plan, std::string folder, Callbacks callbacks,
             HotplugTiming timing = {});
    ~QemuHost();  // kills QEMU
    QemuHost(const QemuHost&) = delete;
    QemuHost& operator=(const QemuHost&) = delete;

    // Starts QEMU, with its output in <folder>/qemu.log, and waits until it answers QMP. Not twice.
    boost::asio::awaitable<Result<>> start();
    // Ends QEMU: waits `grace` for the guest's own power-off when one is under way, then quits, then kills.
    boost::asio::awaitable<void> stop(std::chrono::milliseconds grace);

    // The reset button.
    boost::asio::awaitable<Result<>> reset();

    // The descriptor of the helper's port, for the rack's link; valid after start(), handed over once.
    [[nodiscard]] int take_guest_descriptor();
    void set_helper(std::shared_ptr<GuestHelper> helper);
    void mark_ready();
    void mark_booting();
    // Types into the serial console.
    void type(std::string bytes);

    // As HotplugBackend, for this host's slots. After an error of attach() the device is not in the host;
    // after an error of detach() it is. A host without QEMU has no devices, so detach() succeeds.
    boost::asio::awaitable<Result<>> attach(HotplugDevice device);
    boost::asio::awaitable<Result<>> detach(HotplugSlot slot, fmapi::UnbindOption option);

    // Runs a QMP command about the device in a slot, as Slots::command().
    boost::asio::awaitable<Result<>> device_command(HotplugSlot slot, std::string name,
                                                    boost::json::object arguments);

    // What the detach() of a slot that is under way waits for; empty when it does not.
    [[nodiscard]] std::string waits_for(const HotplugSlot& slot) const;

    [[nodiscard]] HostState state() const;
    [[nodiscard]] const std::string& detail() const;
    [[nodiscard]] const HostPlan& plan() const;
    [[nodiscard]] const std::string& folder() const;
    [[nodiscard]] std::optional<pid_t> pid() const;
    // From the start of QEMU to the guest's first report.
    [[nodiscard]] std::optional<std::chrono::milliseconds> boot_time() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace memtide::emul
