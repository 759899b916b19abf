#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include "cxl-emul/switch/disturbance.h"
#include "cxl-emul/switch/hotplug.h"
#include "cxl-emul/switch/media.h"
#include "cxl-emul/switch/model.h"

namespace memtide::emul {

// Carries out the background operations of one switch and its devices: at the hosts through the hot-plug
// backend, at the media on a thread of its own. Everything else runs on `strand`, where all calls must come
// from.
class Operations {
  public:
    // `media` is in the order of config.devices.
    Operations(boost::asio::any_io_executor strand, const SwitchConfig& config, SwitchModel& model,
               std::vector<std::shared_ptr<Media>> media, std::shared_ptr<HotplugBackend> hotplug);

    // Runs an operation to its end. `owner` keeps what this refers to alive until then.
    void launch(const Operation& operation, std::shared_ptr<void> owner);

    // Starts to erase what dynamic capacity devices have waiting for it. `owner` as in launch().
    void erase_released(const std::shared_ptr<void>& owner);

    // Brings Background::percent up to date.
    void refresh_progress();
    // Interrupts operations whose component was asked to abort.
    void obey_aborts();
    // Interrupts whatever can be interrupted.
    void stop();
    // The same of those that these are, and others may begin afterwards.
    using Which = std::function<bool(const Operation&)>;
    void interrupt(const Which& which);
    [[nodiscard]] bool any(const Which& which) const;

    // Asked about each operation that begins from now on; null: none is disturbed.
    void disturb(std::shared_ptr<Disturbance> disturbance) { disturbance_ = std::move(disturbance); }
    // Operations that stood still look whether they still have to.
    void look_again();

    // What a bind of this vPPB gives its host. The vPPB must not be unbound.
    [[nodiscard]] HotplugDevice device_at(VppbId id) const;

  private:
    struct Running;

    [[nodiscard]] std::chrono::milliseconds time_of(const Operation& operation) const;
    boost::asio::awaitable<void> run(std::shared_ptr<Running> running, std::shared_ptr<void> owner);
    void log_end(const Running& running, fmapi::ReturnCode code) const;
    boost::asio::awaitable<fmapi::ReturnCode> carry_out(Running& running);
    boost::asio::awaitable<fmapi::ReturnCode> bind(Running& running, VppbId id);
    boost::asio::awaitable<fmapi::ReturnCode> unbind(Running& running, const UnbindOperation& operation);
    boost::asio::awaitable<fmapi::ReturnCode> sanitize(Running& running, const SanitizeOperation& operation);
    // Makes the bytes of a device zero, or does what its topology says instead.
    boost::asio::awaitable<fmapi::ReturnCode> erase(Running& running, std::size_t device, Bytes offset,
                                                    Bytes size);
    boost::asio::awaitable<void> erase_range(std::shared_ptr<Running> running, std::size_t device,
                                             ByteRange range, std::shared_ptr<void> owner);
    // Spends the emulated time, and as long as it is held; false when it was interrupted.
    boost::asio::awaitable<bool> spend_time(Running& running);
    [[nodiscard]] HotplugSlot slot_of(VppbId id) const;

    boost::asio::any_io_executor strand_;
    const SwitchConfig& config_;
    SwitchModel& model_;
    std::vector<std::shared_ptr<Media>> media_;
    std::shared_ptr<HotplugBackend> hotplug_;
    std::shared_ptr<Disturbance> disturbance_;
    std::list<std::shared_ptr<Running>> running_;
    std::list<std::shared_ptr<Running>> erasing_;  // of dynamic capacity: nobody's background operation
    bool stopped_ = false;
    std::optional<boost::asio::thread_pool> eraser_;  // started when first needed
};

}  // namespace memtide::emul
