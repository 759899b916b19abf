#include "cxl-emul/switch/switch.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <list>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include "common/fmapi/mctp.h"
#include "common/log/log.h"
#include "cxl-emul/switch/commands.h"
#include "cxl-emul/switch/connection.h"
#include "cxl-emul/switch/dialect_speaker.h"
#include "cxl-emul/switch/dialer.h"
#include "cxl-emul/switch/events.h"
#include "cxl-emul/switch/listener.h"
#include "cxl-emul/switch/media.h"
#include "cxl-emul/switch/model.h"
#include "cxl-emul/switch/operations.h"

namespace memtide::emul {
namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::size_t kReadSize = 4096;
constexpr std::chrono::milliseconds kAcceptBackoff{100};
constexpr std::chrono::milliseconds kDialAgain{200};
constexpr std::chrono::milliseconds kOneClientPause{5};
// Answers are sent together up to this size, so that a peer that asks much at once takes little memory.
constexpr std::size_t kSendAt = 64 * 1024;
constexpr std::chrono::milliseconds kMoment{5};

class NoHotplug final : public HotplugBackend {
  public:
    asio::awaitable<Result<>> attach(HotplugDevice) override { co_return Result<>(); }
    asio::awaitable<Result<>> detach(HotplugSlot, fmapi::UnbindOption) override { co_return Result<>(); }
};

}  // namespace

Result<SharedDeviceMap> open_shared_devices(const Topology& topology,
                                            const std::vector<SwitchConfig>& switches) {
    SharedDeviceMap shared;
    for (const DeviceConfig& device : topology.multi_headed) {
        const auto has_head = [&](const SwitchConfig& one) { return one.device(device.name) != nullptr; };
        if (std::ranges::none_of(switches, has_head)) continue;
        auto file = MediaFile::open(topology.media_file(SwitchConfig(), device), device.size);
        if (!file)
            return std::unexpected(std::move(file.error()).with_context("device " + device.name.value));
        shared[device.name] = {make_device(device), *std::move(file)};
    }
    return shared;
}

std::shared_ptr<HotplugBackend> no_hotplug() { return std::make_shared<NoHotplug>(); }

// Lives as long as a coroutine of it does. Everything but the constructor runs on the strand.
class Switch::Impl : public std::enable_shared_from_this<Impl> {
  public:
    Impl(const asio::any_io_executor& executor, SwitchConfig config, std::vector<Listener> listeners,
         std::vector<std::shared_ptr<Media>> media, std::shared_ptr<HotplugBackend> hotplug,
         ConnectionLimits limits, const SharedDeviceMap& shared)
        : strand_(asio::make_strand(executor)),
          config_(std::move(config)),
          limits_(limits),
          hotplug_(std::move(hotplug)),
          model_(config_, devices_of(shared)),
          operations_(strand_, config_, model_, std::move(media), hotplug_),
          listeners_(std::move(listeners)),
          dial_pause_(strand_) {
        for (const Listener& listener : listeners_) addresses_.push_back(listener.address());
    }

    const asio::any_io_executor& strand() const { return strand_; }
    const SwitchConfig& config() const { return config_; }
    const std::vector<std::string>& addresses() const { return addresses_; }

    void start() {
        operations_.erase_released(shared_from_this());
        for (Listener& listener : listeners_)
            asio::co_spawn(strand_, accept_connections(listener, shared_from_this()), asio::detached);
        for (const Endpoint& endpoint : config_.connect)
            asio::co_spawn(strand_, keep_connected(endpoint, shared_from_this()), asio::detached);
    }

    void stop() {
        stopped_ = true;
        for (Listener& listener : listeners_) listener.close();
        dial_pause_.cancel();
        for (const auto& connection : connections_) connection->close("");
        operations_.stop();
    }

    // `from` is the connection that asks, null when it is this process.
    fmapi::Message answer(fmapi::MctpType type, const fmapi::Message& request, Connection* from) {
        operations_.refresh_progress();
        Answer answer = handle(model_, type, request);
        if (from != nullptr && request.opcode == fmapi::Opcode::kSetMctpEventInterruptPolicy &&
            answer.response.return_code == fmapi::ReturnCode::kSuccess)
            from->want_notifications(model_.events.notified() != 0);
        notify_managers();
        interrupt_hosts();
        return carry_out(request, std::move(answer), from);
    }

    Result<fmapi::Message> execute_of_host(std::uint8_t vcs, std::uint8_t vppb,
                                           const fmapi::Message& request) {
        const auto index = model_.find_vcs(vcs);
        if (!index || vppb >= model_.vcss[*index].vppbs.size() ||
            model_.bridge({*index, vppb}).state == VirtualBridge::State::kUnbound)
            return fail(ErrorCode::kNotFound,
                        fmt::format("nothing is bound to vPPB {} of VCS {} of switch {}", vppb, vcs,
                                    config_.name.value));
        operations_.refresh_progress();
        return carry_out(request, handle_of_host(model_, {*index, vppb}, request), nullptr);
    }

    std::vector<VppbStatus> vppbs() const {
        std::vector<VppbStatus> all;
        for (std::size_t vcs = 0; vcs < model_.vcss.size(); ++vcs)
            for (std::size_t vppb = 0; vppb < model_.vcss[vcs].vppbs.size(); ++vppb)
                all.push_back(status_of({vcs, static_cast<std::uint8_t>(vppb)}));
        return all;
    }

    Result<> change_vcs(const VcsChange& change) { return reconfigure(model_, change); }

    Result<> set_ld_demand(const DeviceId& name, std::size_t ld, std::uint64_t demand) {
        Device* const device = find_device(name);
        if (device == nullptr || ld >= device->lds.size())
            return fail(ErrorCode::kNotFound,
                        "there is no such device or LD at switch " + config_.name.value);
        device->lds[ld].qos.demand = demand;
        return {};
    }

    Result<DeviceBandwidth> bandwidth(const DeviceId& name) {
        const Device* const device = find_device(name);
        if (device == nullptr)
            return fail(ErrorCode::kNotFound, "there is no such device at switch " + config_.name.value);
        const BandwidthShares shares = bandwidth_of(*device);
        DeviceBandwidth result{device->config.bandwidth, shares.backpressure_percent, {}};
        for (std::size_t ld = 0; ld < device->lds.size(); ++ld)
            result.lds.push_back({device->lds[ld].qos, device->lds[ld].taken_by.has_value(),
                                  shares.granted[ld], shares.loads[ld]});
        return result;
    }

    void set_host_link(const HostId& host, bool up) {
        for (std::size_t i = 0; i < model_.ports.size(); ++i)
            if (model_.ports[i].config.host == host) set_link(i, up);
    }

    void set_device_link(const DeviceId& device, bool up) {
        for (std::size_t i = 0; i < model_.ports.size(); ++i)
            if (model_.ports[i].config.device == device) set_link(i, up);
    }

    void set_port_link(std::uint8_t port, bool up) {
        if (const auto index = model_.find_port(port)) set_link(*index, up);
    }

    void set_port_plugged(std::uint8_t port, bool plugged) {
        if (const auto index = model_.find_port(port)) set_plugged(*index, plugged);
    }

    void set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) {
        if (Device* const there = find_device(device)) there->health = health;
    }

    void set_device_plugged(const DeviceId& device, bool plugged) {
        for (std::size_t i = 0; i < model_.ports.size(); ++i)
            if (model_.ports[i].config.device == device) set_plugged(i, plugged);
    }

    void report_ld_error(const DeviceId& device, fmapi::MldPortEvent event) {
        for (std::size_t i = 0; i < model_.ports.size(); ++i)
            if (model_.ports[i].config.device == device && reachable_device(model_.ports[i]))
                record_ld_error(model_, i, event);
        notify_managers();
    }

    void disturb(std::shared_ptr<Disturbance> disturbance) {
        operations_.disturb(disturbance);
        disturbance_ = std::move(disturbance);
    }
    void look_again() { operations_.look_again(); }
    void capture(fmapi::SwitchCapture capture) { capture_ = std::move(capture); }

    asio::awaitable<void> power_off(bool keeps_state, std::shared_ptr<Impl>) {
        if (std::exchange(off_, true)) co_return;
        losing_power_ = true;
        for (const auto& connection : connections_) connection->close("the switch has no power");
        const Operations::Which all = [](const Operation&) { return true; };
        co_await interrupt_operations(all);
        if (!keeps_state) {
            for (const VppbId id : bound_vppbs()) co_await take_from_host(id);
            reset(model_);
        }
        losing_power_ = false;
    }

    asio::awaitable<void> power_on(std::shared_ptr<Impl>) {
        asio::steady_timer moment(strand_);
        while (losing_power_ && !stopped_) {
            moment.expires_after(kMoment);
            co_await moment.async_wait(asio::use_awaitable);
        }
        off_ = false;
    }

    asio::awaitable<void> lose_device_state(DeviceId device, std::shared_ptr<Impl>) {
        const Operations::Which of_device = [this, &device](const Operation& operation) {
            const auto index = device_index_of(model_, operation);
            return index && model_.devices[*index].config.name == device;
        };
        co_await interrupt_operations(of_device);
        for (const VppbId id : bound_vppbs())
            if (model_.device_of(model_.bridge(id)).config.name == device) co_await take_from_host(id);
        if (Device* const there = find_device(device)) reset(*there);
        operations_.erase_released(shared_from_this());
    }

  private:
    // What begins with the answer to a request.
    fmapi::Message carry_out(const fmapi::Message& request, Answer answer, Connection* from) {
        operations_.erase_released(shared_from_this());
        if (log::is_enabled(log::Level::kDebug))
            log::debug("command", {{"switch", config_.name},
                                   {"request", fmapi::to_string(request)},
                                   {"code", fmapi::to_string(answer.response.return_code)}});
        if (answer.started) {
            // The operation owns this until its end, and so tells the connection when that is.
            auto command = std::make_shared<std::shared_ptr<Impl>>(shared_from_this());
            if (from != nullptr) from->works_on(command);
            operations_.launch(*answer.started, std::move(command));
        }
        operations_.obey_aborts();
        return std::move(answer.response);
    }

    void set_link(std::size_t port, bool up) {
        Port& changed = model_.ports[port];
        bool& link = changed.config.host ? changed.host_link_up : changed.device_link_up;
        if (std::exchange(link, up) == up) return;
        record_change(port, fmapi::PhysicalSwitchEvent::kLinkStateChange, up);
        tell_hosts(port);
    }

    void set_plugged(std::size_t port, bool plugged) {
        if (std::exchange(model_.ports[port].device_plugged, plugged) == plugged) return;
        record_change(port, fmapi::PhysicalSwitchEvent::kSlotStatusUpdated, plugged);
        tell_hosts(port);
    }

    std::vector<VppbId> bound_vppbs() const {
        std::vector<VppbId> bound;
        for (std::size_t vcs = 0; vcs < model_.vcss.size(); ++vcs)
            for (std::size_t vppb = 0; vppb < model_.vcss[vcs].vppbs.size(); ++vppb)
                if (model_.vcss[vcs].vppbs[vppb].state == VirtualBridge::State::kBound)
                    bound.push_back({vcs, static_cast<std::uint8_t>(vppb)});
        return bound;
    }

    // Whose links have changed with that of this port: each loses or gets back what it reaches through it.
    void tell_hosts(std::size_t port) {
        for (const VppbId id : bound_vppbs()) {
            const Vcs& vcs = model_.vcss[id.vcs];
            const auto upstream = model_.find_port(vcs.config.upstream_port);
            const Port& below = model_.ports[vcs.vppbs[id.vppb].port];
            if (upstream != port && &below != &model_.ports[port]) continue;
            const bool up = reachable_device(below) && (!upstream || model_.ports[*upstream].host_link_up);
            asio::co_spawn(strand_, hotplug_->set_reachable(operations_.device_at(id), up), asio::detached);
        }
    }

    // Those whose LDs have new records for them.
    void interrupt_hosts() {
        for (std::size_t i = 0; i < model_.devices.size(); ++i) {
            Device& device = model_.devices[i];
            if (!device.dynamic) continue;
            for (std::size_t ld = 0; ld < device.lds.size(); ++ld) {
                const auto vppb = device.lds[ld].taken_by;
                if (!vppb || model_.bridge(*vppb).state != VirtualBridge::State::kBound ||
                    !device.dynamic->interrupts[ld])
                    continue;
                device.dynamic->interrupts[ld] = false;
                asio::co_spawn(strand_, hotplug_->interrupt(operations_.device_at(*vppb).slot),
                               asio::detached);
            }
        }
    }

    // Ends when they have ended.
    asio::awaitable<void> interrupt_operations(const Operations::Which& which) {
        operations_.interrupt(which);
        asio::steady_timer moment(strand_);
        while (operations_.any(which) && !stopped_) {
            moment.expires_after(kMoment);
            co_await moment.async_wait(asio::use_awaitable);
        }
    }

    // By surprise.
    asio::awaitable<void> take_from_host(VppbId id) {
        const HotplugSlot slot = operations_.device_at(id).slot;
        const auto taken = co_await hotplug_->detach(slot, fmapi::UnbindOption::kSurpriseHotRemove);
        if (!taken)
            log::error("surprise removal failed", {{"switch", config_.name}, {"error", taken.error()}});
        unbind_at_once(model_, id);
    }

    static SharedDevices devices_of(const SharedDeviceMap& shared) {
        SharedDevices devices;
        for (const auto& [name, one] : shared) devices[name] = one.device;
        return devices;
    }

    Device* find_device(const DeviceId& name) {
        for (std::size_t i = 0; i < model_.devices.size(); ++i)
            if (model_.devices[i].config.name == name) return &model_.devices[i];
        return nullptr;
    }

    // A loss is worse news when a host has something of the device.
    void record_change(std::size_t port, fmapi::PhysicalSwitchEvent event, bool came) {
        const auto device = model_.ports[port].device;
        const bool surprise =
            !came && device && model_.devices[*device].is_taken(model_.ports[port].config.head);
        const auto log = came       ? fmapi::EventLog::kInformational
                         : surprise ? fmapi::EventLog::kFailure
                                    : fmapi::EventLog::kWarning;
        record_port(model_, port, event, log);
        notify_managers();
    }

    // Tells those who asked for it that there are event records.
    void notify_managers() {
        const std::uint16_t fresh = model_.events.take_fresh();
        if (fresh == 0 || (disturbance_ && disturbance_->swallows_notification())) return;
        const std::vector<std::byte> packets = fmapi::to_packets(
            {.route = {},
             .type = fmapi::MctpType::kFmApi,
             .message = fmapi::make_request(fmapi::Opcode::kEventNotification, 0,
                                            fmapi::encode(fmapi::EventNotificationRequest{fresh}))},
            config_.dialect->wire);
        for (const auto& connection : connections_) connection->notify(packets);
    }

    VppbStatus status_of(VppbId id) const {
        const VirtualBridge& bridge = model_.bridge(id);
        const Vcs& vcs = model_.vcss[id.vcs];
        VppbStatus status;
        status.vcs = vcs.config.id;
        status.vppb = id.vppb;
        status.host = config_.port(vcs.config.upstream_port)->host.value_or(HostId());
        status.state = static_cast<VppbStatus::State>(bridge.state);
        if (bridge.state == VirtualBridge::State::kUnbound) return status;
        const Device& device = model_.device_of(bridge);
        const HotplugDevice bound = operations_.device_at(id);
        status.device = device.config.name;
        status.ld = device.is_mld() ? LdId{static_cast<std::uint16_t>(bridge.ld)} : kWholeDevice;
        status.port = model_.ports[bridge.port].config.id;
        status.serial = bound.serial;
        status.offset = bound.offset;
        status.size = bound.size;
        return status;
    }

    asio::awaitable<void> accept_connections(Listener& listener, std::shared_ptr<Impl> self) {
        while (!stopped_) {
            auto socket = co_await listener.accept();
            if (stopped_) break;
            if (!socket) {
                log::error("accept failed", {{"switch", config_.name}, {"error", socket.error()}});
                asio::steady_timer pause(strand_, kAcceptBackoff);
                co_await pause.async_wait(asio::use_awaitable);
                continue;
            }
            // A switch that talks to one at a time: the next one is accepted, and waits.
            while (config_.dialect->one_client && !connections_.empty() && !stopped_) {
                asio::steady_timer pause(strand_, kOneClientPause);
                co_await pause.async_wait(asio::use_awaitable);
            }
            if (off_) continue;
            if (!make_room()) {
                log::warning("connection refused: too many, and none is idle",
                             {{"switch", config_.name}, {"listener", listener.address()}});
                continue;
            }
            auto connection = std::make_shared<Connection>(*std::move(socket), capture_.connection());
            connections_.push_back(connection);
            asio::co_spawn(strand_, serve(std::move(connection), listener.address(), self), asio::detached);
        }
    }

    // To a manager that listens, again whenever the connection is gone.
    asio::awaitable<void> keep_connected(Endpoint endpoint, std::shared_ptr<Impl> self) {
        while (!stopped_) {
            auto socket = co_await dial(strand_, endpoint);
            if (stopped_) break;
            if (socket && !off_ && make_room()) {
                auto connection = std::make_shared<Connection>(*std::move(socket), capture_.connection());
                connections_.push_back(connection);
                co_await serve(std::move(connection), format_endpoint(endpoint), self);
            }
            if (stopped_) break;
            dial_pause_.expires_after(kDialAgain);
            error_code ignored;
            co_await dial_pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
    }

    // Silent peers must not lock a manager out: the one that has been idle longest goes.
    bool make_room() {
        if (connections_.size() < limits_.connections) return true;
        const auto longest = longest_idle(connections_);
        if (!longest) return false;
        longest->close("idle longest of too many");
        connections_.remove(longest);
        return true;
    }

    // One connection: requests are answered in order, each before more is read, so that buffers stay small
    // whatever the peer does.
    asio::awaitable<void> serve(std::shared_ptr<Connection> connection, std::string listener,
                                std::shared_ptr<Impl>) {
        log::debug("connection opened", {{"switch", config_.name}, {"listener", listener}});
        std::string end;
        try {
            end = co_await converse(*connection);
        } catch (const std::exception& e) {
            end = e.what();
        }
        if (!connection->why_closed().empty()) end = connection->why_closed();
        if (end.empty() || stopped_)
            log::debug("connection closed", {{"switch", config_.name}, {"listener", listener}});
        else
            log::warning("connection dropped",
                         {{"switch", config_.name}, {"listener", listener}, {"reason", end}});
        connections_.remove(connection);
    }

    // Why it ended; empty when the peer closed between messages, or the switch stops.
    asio::awaitable<std::string> converse(Connection& connection) {
        DialectSpeaker speaker(*config_.dialect);
        fmapi::PacketAssembler assembler(speaker.wire());
        std::array<std::byte, kReadSize> buffer;
        std::vector<std::byte> answers;
        while (!stopped_) {
            error_code error;
            const std::size_t got = co_await connection.socket().async_read_some(
                asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
            if (stopped_) break;
            if (error == asio::error::eof && assembler.pending() == 0) break;
            if (error == asio::error::eof) co_return "the peer closed in the middle of a message";
            if (error) co_return error.message();
            connection.tap().write(fmapi::Sender::kManager, std::span(buffer).first(got));
            assembler.feed(std::span(buffer).first(got));
            for (auto next = assembler.next(); !next || *next; next = assembler.next()) {
                if (!next) {
                    co_await send(connection, answers, error);
                    co_return next.error().message;
                }
                connection.done();
                auto answered = answer_to(connection, speaker, **next);
                if (!answered) continue;
                if (disturbance_) {
                    co_await send(connection, answers, error);
                    auto delivery = disturbance_->deliver(**next, *std::move(answered), speaker.wire());
                    co_await send_disturbed(connection, std::move(delivery), error);
                } else {
                    fmapi::append_packets(answers, *answered, speaker.wire());
                    if (answers.size() >= kSendAt) co_await send(connection, answers, error);
                }
                if (error) co_return error.message();
            }
            co_await send(connection, answers, error);
            if (error) co_return error.message();
            if (assembler.pending() > 0) connection.expect_rest(limits_.patience);
        }
        co_return "";
    }

    // What the request gets for an answer; nothing when it gets none.
    std::optional<fmapi::MctpMessage> answer_to(Connection& connection, DialectSpeaker& speaker,
                                                const fmapi::MctpMessage& request) {
        if (!speaker.hears(request)) return std::nullopt;
        if (request.type == fmapi::MctpType::kControl) return speaker.answer_control(request);
        if (request.message.is_response) return std::nullopt;  // to nothing that was asked
        auto refusal = disturbance_ ? disturbance_->refuse(request) : std::nullopt;
        auto answered =
            speaker.shape(request.message,
                          refusal ? *std::move(refusal) : answer(request.type, request.message, &connection));
        if (!answered) return std::nullopt;
        return fmapi::MctpMessage{fmapi::reply_route(request.route), request.type, *std::move(answered)};
    }

    // Sends `answers` and empties it. Most go into the socket's buffer at once, without a deadline.
    asio::awaitable<void> send(Connection& connection, std::vector<std::byte>& answers, error_code& error) {
        if (answers.empty() || !connection.socket().is_open()) co_return;
        const ssize_t sent = ::send(connection.socket().native_handle(), answers.data(), answers.size(),
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
        const auto done = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
        connection.tap().write(fmapi::Sender::kSwitch, std::span(answers).first(done));
        if (done < answers.size()) {
            connection.expect_read(limits_.patience);
            const std::size_t rest =
                co_await asio::async_write(connection.socket(), asio::buffer(answers) + done,
                                           asio::redirect_error(asio::use_awaitable, error));
            connection.tap().write(fmapi::Sender::kSwitch, std::span(answers).subspan(done, rest));
        }
        answers.clear();
        connection.done();
    }

    asio::awaitable<void> send_disturbed(Connection& connection, Disturbance::Delivery delivery,
                                         error_code& error) {
        for (Disturbance::Piece& piece : delivery.pieces) {
            if (!co_await connection.pause(piece.after)) co_return;
            co_await send(connection, piece.bytes, error);
            if (error) co_return;
        }
        if (delivery.hang_up) connection.close("a fault wants it closed");
    }

    asio::any_io_executor strand_;
    SwitchConfig config_;
    ConnectionLimits limits_;
    std::shared_ptr<HotplugBackend> hotplug_;
    SwitchModel model_;
    Operations operations_;
    std::shared_ptr<Disturbance> disturbance_;
    fmapi::SwitchCapture capture_;
    bool off_ = false;           // without power
    bool losing_power_ = false;  // power_off() has not come to its end
    std::vector<Listener> listeners_;
    asio::steady_timer dial_pause_;
    std::vector<std::string> addresses_;
    std::list<std::shared_ptr<Connection>> connections_;
    bool stopped_ = false;
};

Switch::Switch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Switch::~Switch() { stop(); }

Result<std::unique_ptr<Switch>> Switch::open(asio::any_io_executor executor, const Topology& topology,
                                             const SwitchConfig& config,
                                             std::shared_ptr<HotplugBackend> hotplug, ConnectionLimits limits,
                                             const SharedDeviceMap& shared) {
    std::vector<std::shared_ptr<Media>> media;
    for (const DeviceConfig& device : config.devices) {
        if (const auto known = shared.find(device.name); known != shared.end()) {
            media.push_back(known->second.media);
            continue;
        }
        auto file = MediaFile::open(topology.media_file(config, device), device.size);
        if (!file)
            return std::unexpected(std::move(file.error()).with_context("switch " + config.name.value));
        media.push_back(*std::move(file));
    }
    return open_on(std::move(executor), config, std::move(media), std::move(hotplug), limits, shared);
}

Result<std::unique_ptr<Switch>> Switch::open_on(asio::any_io_executor executor, const SwitchConfig& config,
                                                std::vector<std::shared_ptr<Media>> media,
                                                std::shared_ptr<HotplugBackend> hotplug,
                                                ConnectionLimits limits, const SharedDeviceMap& shared) {
    std::vector<Listener> listeners;
    for (const Endpoint& endpoint : config.listen) {
        auto listener = Listener::open(executor, endpoint);
        if (!listener)
            return std::unexpected(std::move(listener.error()).with_context("switch " + config.name.value));
        listeners.push_back(*std::move(listener));
    }
    return std::unique_ptr<Switch>(new Switch(std::make_shared<Impl>(
        executor, config, std::move(listeners), std::move(media), std::move(hotplug), limits, shared)));
}

void Switch::start() {
    asio::post(impl_->strand(), [impl = impl_] { impl->start(); });
}

void Switch::stop() {
    asio::post(impl_->strand(), [impl = impl_] { impl->stop(); });
}

const SwitchId& Switch::name() const { return impl_->config().name; }

const std::vector<std::string>& Switch::addresses() const { return impl_->addresses(); }

asio::awaitable<fmapi::Message> Switch::execute(fmapi::Message request) {
    auto run = [](std::shared_ptr<Impl> impl, fmapi::Message message) -> asio::awaitable<fmapi::Message> {
        co_return impl->answer(fmapi::MctpType::kFmApi, message, nullptr);
    };
    co_return co_await asio::co_spawn(impl_->strand(), run(impl_, std::move(request)), asio::use_awaitable);
}

Result<fmapi::Message> Switch::execute_of_host(std::uint8_t vcs, std::uint8_t vppb,
                                               const fmapi::Message& request) {
    return impl_->execute_of_host(vcs, vppb, request);
}

asio::awaitable<std::vector<VppbStatus>> Switch::vppbs() {
    auto run = [](std::shared_ptr<Impl> impl) -> asio::awaitable<std::vector<VppbStatus>> {
        co_return impl->vppbs();
    };
    co_return co_await asio::co_spawn(impl_->strand(), run(impl_), asio::use_awaitable);
}

asio::awaitable<Result<>> Switch::change_vcs(VcsChange change) {
    auto run = [](std::shared_ptr<Impl> impl, VcsChange wanted) -> asio::awaitable<Result<>> {
        co_return impl->change_vcs(wanted);
    };
    co_return co_await asio::co_spawn(impl_->strand(), run(impl_, change), asio::use_awaitable);
}

asio::awaitable<Result<>> Switch::set_ld_demand(DeviceId device, std::size_t ld, std::uint64_t demand) {
    auto run = [](std::shared_ptr<Impl> impl, DeviceId name, std::size_t at,
                  std::uint64_t wanted) -> asio::awaitable<Result<>> {
        co_return impl->set_ld_demand(name, at, wanted);
    };
    co_return co_await asio::co_spawn(impl_->strand(), run(impl_, std::move(device), ld, demand),
                                      asio::use_awaitable);
}

asio::awaitable<Result<DeviceBandwidth>> Switch::bandwidth(DeviceId device) {
    auto run = [](std::shared_ptr<Impl> impl, DeviceId name) -> asio::awaitable<Result<DeviceBandwidth>> {
        co_return impl->bandwidth(name);
    };
    co_return co_await asio::co_spawn(impl_->strand(), run(impl_, std::move(device)), asio::use_awaitable);
}

void Switch::set_host_link(const HostId& host, bool up) {
    asio::post(impl_->strand(), [impl = impl_, host, up] { impl->set_host_link(host, up); });
}

void Switch::set_device_plugged(const DeviceId& device, bool plugged) {
    asio::post(impl_->strand(),
               [impl = impl_, device, plugged] { impl->set_device_plugged(device, plugged); });
}

void Switch::report_ld_error(const DeviceId& device, fmapi::MldPortEvent event) {
    asio::post(impl_->strand(), [impl = impl_, device, event] { impl->report_ld_error(device, event); });
}

void Switch::set_device_health(const DeviceId& device, const fmapi::GetHealthInfoResponse& health) {
    asio::post(impl_->strand(), [impl = impl_, device, health] { impl->set_device_health(device, health); });
}

void Switch::set_port_link(std::uint8_t port, bool up) {
    asio::post(impl_->strand(), [impl = impl_, port, up] { impl->set_port_link(port, up); });
}

void Switch::set_port_plugged(std::uint8_t port, bool plugged) {
    asio::post(impl_->strand(), [impl = impl_, port, plugged] { impl->set_port_plugged(port, plugged); });
}

void Switch::disturb(std::shared_ptr<Disturbance> disturbance) {
    asio::post(impl_->strand(), [impl = impl_, disturbance] { impl->disturb(disturbance); });
}

void Switch::capture(fmapi::SwitchCapture capture) {
    asio::post(impl_->strand(),
               [impl = impl_, capture = std::move(capture)]() mutable { impl->capture(std::move(capture)); });
}

void Switch::look_again() {
    asio::post(impl_->strand(), [impl = impl_] { impl->look_again(); });
}

void Switch::power_off(bool keeps_state) {
    asio::co_spawn(impl_->strand(), impl_->power_off(keeps_state, impl_), asio::detached);
}

void Switch::power_on() { asio::co_spawn(impl_->strand(), impl_->power_on(impl_), asio::detached); }

void Switch::lose_device_state(const DeviceId& device) {
    asio::co_spawn(impl_->strand(), impl_->lose_device_state(device, impl_), asio::detached);
}

void Switch::set_device_link(const DeviceId& device, bool up) {
    asio::post(impl_->strand(), [impl = impl_, device, up] { impl->set_device_link(device, up); });
}

}  // namespace memtide::emul
