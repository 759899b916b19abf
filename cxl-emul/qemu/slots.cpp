#include "cxl-emul/qemu/slots.h"

#include <chrono>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

#include "common/log/log.h"
#include "cxl-emul/qemu/slot_power.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::steady_clock;

namespace {
// After an attention button press Linux blinks for 5 s, in which a second press takes the first back
// (pciehp_ctrl.c); it ignores a press while it still powers the slot on. QEMU refuses a second press for 5 s.
constexpr auto kButtonPatience = std::chrono::milliseconds(5100);
}  // namespace

Slots::Slots(asio::any_io_executor executor, QmpClient& qmp, HotplugTiming timing)
    : executor_(std::move(executor)), qmp_(qmp), timing_(timing) {}

void Slots::forget_all() { plugged_.clear(); }

std::string Slots::waits_for(const PortPlace& place) const {
    const auto found = waiting_.find(place.id);
    return found == waiting_.end() ? std::string() : found->second;
}

asio::awaitable<void> Slots::pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(executor_, time);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

asio::awaitable<Result<>> Slots::attach(PortPlace place, HotplugDevice device) {
    if (plugged_.contains(place.id))
        co_return fail(ErrorCode::kConflict, "the slot of port " + place.id + " is occupied");
    if (device.size == Bytes())
        co_return fail(ErrorCode::kInvalidArgument,
                       "a device without memory of its own, of a DCD: hosts of a rack cannot use it");
    // Ids are never used twice: QEMU 10.0 keeps a type-3 device's memory backend "in use" after the device
    // left.
    const auto number = next_++;
    const Plugged plugged{fmt::format("ld{}", number), fmt::format("ld{}-memory", number)};
    json::object backend;
    backend["qom-type"] = "memory-backend-file";
    backend["id"] = plugged.backend;
    backend["mem-path"] = device.media_file;
    backend["offset"] = device.offset.value;
    backend["size"] = device.size.value;
    backend["share"] = true;
    auto added = co_await qmp_.execute("object-add", std::move(backend));
    if (!added) co_return std::unexpected(added.error());

    json::object type3;
    type3["driver"] = "cxl-type3";
    type3["bus"] = place.id;
    type3["volatile-memdev"] = plugged.backend;
    type3["id"] = plugged.device;
    type3["sn"] = device.serial.value;
    auto plugging = co_await qmp_.execute("device_add", std::move(type3));
    if (!plugging) {
        json::object gone;
        gone["id"] = plugged.backend;
        co_await qmp_.execute("object-del", std::move(gone));
        co_return std::unexpected(plugging.error());
    }
    plugged_[place.id] = plugged;
    co_return Result<>{};
}

asio::awaitable<Result<>> Slots::command(PortPlace place, std::string name, json::object arguments) {
    const auto found = plugged_.find(place.id);
    if (found == plugged_.end())
        co_return fail(ErrorCode::kNotFound, "nothing is in the slot of port " + place.id);
    arguments["path"] = "/machine/peripheral/" + found->second.device;
    const auto done = co_await qmp_.execute(std::move(name), std::move(arguments));
    if (!done) co_return std::unexpected(done.error());
    co_return Result<>{};
}

asio::awaitable<Result<>> Slots::detach(PortPlace place, fmapi::UnbindOption option,
                                        std::shared_ptr<GuestHelper> helper) {
    const auto found = plugged_.find(place.id);
    if (found == plugged_.end()) co_return Result<>{};
    const auto plugged = found->second;
    if (option != fmapi::UnbindOption::kSurpriseHotRemove) {
        auto released = co_await wait_for_guest(place, plugged, option, std::move(helper));
        waiting_.erase(place.id);
        if (!released) co_return released;
    }
    co_return co_await take_out(place);
}

asio::awaitable<Result<>> Slots::wait_for_guest(const PortPlace& place, const Plugged& plugged,
                                                fmapi::UnbindOption option,
                                                std::shared_ptr<GuestHelper> helper) {
    // Off already when the guest never powered the slot on, or let go after an earlier attempt had given up.
    auto indicator = co_await power_indicator(qmp_, place.id);
    if (!indicator) co_return std::unexpected(indicator.error());
    if (*indicator == PowerIndicator::kOff) co_return Result<>{};
    if (helper && helper->available()) {
        if (option == fmapi::UnbindOption::kWaitForLinkDown) {
            auto asked = co_await ask_helper(place, helper);
            if (asked || asked.error().code == ErrorCode::kConflict) co_return asked;
            log::warning("the guest's helper could not release the slot, pressing its button",
                         {{"slot", place.slot}, {"error", asked.error()}});
        } else {
            // Linux powers a slot off even when its memory is online, and loses what is in there.
            auto unused = co_await helper->check_slot_unused(place.slot);
            if (!unused && unused.error().code == ErrorCode::kConflict) co_return unused;
        }
    }
    co_return co_await press_button(place, plugged);
}

asio::awaitable<Result<>> Slots::ask_helper(const PortPlace& place, std::shared_ptr<GuestHelper> helper) {
    const auto deadline = steady_clock::now() + timing_.detach_deadline;
    for (;;) {
        auto released = co_await helper->release_slot(place.slot);
        if (released) break;
        // In use: it is the host's choice when to let go, for as long as the deadline gives it.
        if (released.error().code != ErrorCode::kConflict || steady_clock::now() >= deadline)
            co_return released;
        waiting_[place.id] = released.error().message;
        co_await pause(5 * timing_.poll);
    }
    waiting_[place.id] = fmt::format("the power of slot {} to go off", place.slot);
    for (;;) {
        auto indicator = co_await power_indicator(qmp_, place.id);
        if (!indicator) co_return std::unexpected(indicator.error());
        if (*indicator == PowerIndicator::kOff) co_return Result<>{};
        if (steady_clock::now() >= deadline) break;
        co_await pause(timing_.poll);
    }
    co_return fail(
        ErrorCode::kTimeout,
        fmt::format("the guest says that it let slot {} go, but its power is still on", place.slot));
}

asio::awaitable<Result<>> Slots::press_button(const PortPlace& place, const Plugged& plugged) {
    const auto deadline = steady_clock::now() + timing_.detach_deadline;
    auto next_press = steady_clock::now();
    waiting_[place.id] = fmt::format("the guest to power slot {} off, whose button was pressed", place.slot);
    while (steady_clock::now() < deadline) {
        auto indicator = co_await power_indicator(qmp_, place.id);
        if (!indicator) co_return std::unexpected(indicator.error());
        if (*indicator == PowerIndicator::kOff) co_return Result<>{};
        if (*indicator == PowerIndicator::kOn && steady_clock::now() >= next_press) {
            json::object which;
            which["id"] = plugged.device;
            auto pressed = co_await qmp_.execute("device_del", std::move(which));
            if (!pressed && pressed.error().code != ErrorCode::kConflict)
                co_return std::unexpected(pressed.error());
            next_press = steady_clock::now() + kButtonPatience;
        }
        auto there = co_await device_exists(qmp_, plugged.device);
        if (!there) co_return std::unexpected(there.error());
        if (!*there) co_return Result<>{};
        co_await pause(timing_.poll);
    }
    co_return fail(
        ErrorCode::kTimeout,
        fmt::format("the guest did not let the device in slot {} go within {} s", place.slot,
                    std::chrono::duration_cast<std::chrono::seconds>(timing_.detach_deadline).count()));
}

asio::awaitable<Result<>> Slots::take_out(const PortPlace& place) {
    const auto found = plugged_.find(place.id);
    if (found == plugged_.end()) co_return Result<>{};  // QEMU ended meanwhile
    const auto plugged = found->second;
    auto there = co_await device_exists(qmp_, plugged.device);
    if (!there) co_return std::unexpected(there.error());
    if (*there) {
        auto pulled = co_await pull_card(qmp_, place.id);
        if (!pulled) co_return pulled;
        there = co_await device_exists(qmp_, plugged.device);
        if (!there) co_return std::unexpected(there.error());
        if (*there)
            co_return fail(ErrorCode::kInternal, "QEMU did not detach the device of port " + place.id);
    }
    plugged_.erase(place.id);
    json::object backend;
    backend["id"] = plugged.backend;
    // QEMU 10.0 refuses ("in use"); what stays is a mapping that no guest can reach.
    co_await qmp_.execute("object-del", std::move(backend));
    co_return Result<>{};
}

}  // namespace memtide::emul
