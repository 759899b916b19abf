#include "tests/integration/faulty_switch.h"

#include <array>
#include <map>
#include <stdexcept>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "common/fmapi/mctp.h"
#include "common/fmapi/message.h"

namespace memtide::test {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

struct FaultySwitch::State : std::enable_shared_from_this<State> {
    State(const asio::any_io_executor& executor, const std::string& path)
        : acceptor(executor, Local::endpoint(path)) {}

    Local::acceptor acceptor;
    std::unique_ptr<emul::Switch> inner;
    Fault fault = Fault::kNone;
    std::optional<fmapi::Opcode> only;
    int times = 0;
    int spoilt = 0;
    std::map<fmapi::Opcode, int> commands;

    Fault next_fault(fmapi::Opcode opcode) {
        if (fault == Fault::kNone || times == 0 || (only && *only != opcode)) return Fault::kNone;
        --times;
        ++spoilt;
        return fault;
    }

    asio::awaitable<void> accept(std::shared_ptr<State> self) {
        for (;;) {
            boost::system::error_code error;
            Local::socket socket =
                co_await acceptor.async_accept(asio::redirect_error(asio::use_awaitable, error));
            if (error) co_return;
            asio::co_spawn(acceptor.get_executor(), serve(std::move(socket), self), asio::detached);
        }
    }

    asio::awaitable<void> serve(Local::socket socket, std::shared_ptr<State>) {
        fmapi::PacketAssembler assembler;
        std::array<std::byte, 4096> buffer{};
        for (;;) {
            boost::system::error_code error;
            const std::size_t got = co_await socket.async_read_some(
                asio::buffer(buffer), asio::redirect_error(asio::use_awaitable, error));
            if (error) co_return;
            assembler.feed(std::span(buffer).first(got));
            for (;;) {
                auto message = assembler.next();
                if (!message) co_return;
                if (!message->has_value()) break;
                const bool go_on = co_await answer(socket, **std::move(message));
                if (!go_on) co_return;
            }
        }
    }

    // False when the connection shall be closed.
    asio::awaitable<bool> answer(Local::socket& socket, fmapi::MctpMessage request) {
        const fmapi::Opcode opcode = request.message.opcode;
        ++commands[opcode];
        fmapi::MctpMessage response{fmapi::reply_route(request.route), request.type, {}};
        response.message = co_await inner->execute(std::move(request.message));
        const Fault now = next_fault(opcode);
        if (now == Fault::kSilent) co_return true;
        if (now == Fault::kHangUp) co_return false;
        if (now == Fault::kLate) {
            asio::steady_timer timer(socket.get_executor(), std::chrono::seconds(3));
            co_await timer.async_wait(asio::use_awaitable);
        }
        if (now == Fault::kWrongTag) response.message.tag ^= 0x55;
        std::vector<std::byte> bytes = fmapi::to_packets(response);
        if (now == Fault::kGarbage) bytes.assign(bytes.size() + 17, std::byte{0xa5});
        boost::system::error_code error;
        co_await asio::async_write(socket, asio::buffer(bytes),
                                   asio::redirect_error(asio::use_awaitable, error));
        co_return !error;
    }
};

FaultySwitch::FaultySwitch(Background& background, const TempFolder& folder, const SwitchOptions& options)
    : background_(background) {
    std::string yaml = topology_yaml(folder, options);
    const std::string outer = folder.file("switch0.sock");
    yaml.replace(yaml.find(outer), outer.size(), folder.file("inner.sock"));
    const auto topology = emul::parse_topology(yaml, "topology.yaml");
    if (!topology) throw std::runtime_error(topology.error().message);
    state_ = std::make_shared<State>(background.executor(), outer);
    auto inner =
        emul::Switch::open(background.executor(), *topology, topology->switches[0], emul::no_hotplug());
    if (!inner) throw std::runtime_error(inner.error().message);
    state_->inner = *std::move(inner);
    state_->inner->start();
    asio::co_spawn(background.executor(), state_->accept(state_), asio::detached);
}

FaultySwitch::~FaultySwitch() { state_->inner->stop(); }

void FaultySwitch::set_fault(Fault fault, std::optional<fmapi::Opcode> only, int times) {
    background_.call([&] {
        state_->fault = fault;
        state_->only = only;
        state_->times = times;
        state_->spoilt = 0;
        return true;
    });
}

int FaultySwitch::spoilt() {
    return background_.call([this] { return state_->spoilt; });
}

int FaultySwitch::commands(fmapi::Opcode opcode) {
    return background_.call([this, opcode] { return state_->commands[opcode]; });
}

std::vector<emul::VppbStatus> FaultySwitch::bound() {
    std::vector<emul::VppbStatus> result;
    for (const emul::VppbStatus& vppb : background_.run(state_->inner->vppbs()))
        if (vppb.state == emul::VppbStatus::State::kBound) result.push_back(vppb);
    return result;
}

}  // namespace memtide::test
