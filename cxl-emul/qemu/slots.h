#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "cxl-emul/qemu/command_line.h"
#include "cxl-emul/qemu/qemu_host.h"
#include "cxl-emul/qemu/qmp_client.h"
#include "cxl-emul/switch/hotplug.h"

namespace memtide::emul {

// The hot-plug slots of one running QEMU and what is in them. Single-threaded.
class Slots {
  public:
    Slots(boost::asio::any_io_executor executor, QmpClient& qmp, HotplugTiming timing);

    // Plugs a type-3 device in, backed by its piece of the media file. After an error it is not there, except
    // after kTimeout: QEMU did not answer.
    boost::asio::awaitable<Result<>> attach(PortPlace place, HotplugDevice device);
    // Takes the slot's device out; an empty slot is fine. `helper` may be null.
    boost::asio::awaitable<Result<>> detach(PortPlace place, fmapi::UnbindOption option,
                                            std::shared_ptr<GuestHelper> helper);
    // Runs a QMP command about the slot's device (cxl-inject-...), whose "path" is filled in. kNotFound when
    // the slot is empty.
    boost::asio::awaitable<Result<>> command(PortPlace place, std::string name,
                                             boost::json::object arguments);
    // What the detach() of a slot that is under way waits for, in words; empty when it does not.
    [[nodiscard]] std::string waits_for(const PortPlace& place) const;
    // QEMU has ended, and every device with it.
    void forget_all();

  private:
    struct Plugged {
        std::string device;   // QEMU id
        std::string backend;  // QEMU id of its memory
    };
    boost::asio::awaitable<Result<>> wait_for_guest(const PortPlace& place, const Plugged& plugged,
                                                    fmapi::UnbindOption option,
                                                    std::shared_ptr<GuestHelper> helper);
    boost::asio::awaitable<Result<>> ask_helper(const PortPlace& place, std::shared_ptr<GuestHelper> helper);
    boost::asio::awaitable<Result<>> press_button(const PortPlace& place, const Plugged& plugged);
    boost::asio::awaitable<Result<>> take_out(const PortPlace& place);
    boost::asio::awaitable<void> pause(std::chrono::milliseconds time);

    boost::asio::any_io_executor executor_;
    QmpClient& qmp_;
    HotplugTiming timing_;
    std::map<std::string, Plugged> plugged_;      // by port id
    std::map<std::string, std::string> waiting_;  // by port id: for what
    std::uint64_t next_ = 0;
};

}  // namespace memtide::emul
