#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/fmapi/codec.h"
#include "cxl-emul/switch/commands.h"
#include "cxl-emul/switch/topology.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {

// The test switch as its pure commands, without I/O: background operations run until end() is called.
class InProcess {
  public:
    // `more` goes into the switch's section of the topology: "    pbr: {}\n".
    explicit InProcess(const std::string& more = "") : model_(config_with(more)) {}

    [[nodiscard]] SwitchModel& model() { return model_; }
    [[nodiscard]] const std::vector<Operation>& running() const { return running_; }

    fmapi::Message call(const fmapi::Message& request) {
        Answer answer = handle(model_, fmapi::MctpType::kFmApi, request);
        if (answer.started) running_.push_back(*answer.started);
        return std::move(answer.response);
    }
    template <typename Command>
    fmapi::Message call(const typename Command::Request& request = {}) {
        return call(fmapi::make_request(Command::kOpcode, 0, fmapi::encode(request)));
    }
    template <typename Command>
    fmapi::ReturnCode code(const typename Command::Request& request = {}) {
        return call<Command>(request).return_code;
    }
    template <typename Command>
    typename Command::Response get(const typename Command::Request& request = {},
                                   typename Command::Response initial = {}) {
        return decoded<Command>(call<Command>(request), std::move(initial));
    }

    // Through the tunnel to what is behind a port.
    fmapi::Message at_device(std::uint8_t port, const fmapi::Message& request,
                             fmapi::MctpType type = fmapi::MctpType::kFmApi) {
        const auto outer = get<fmapi::TunnelManagementCommand>(
            {.id = port, .type = type, .command = fmapi::encode_message(request)});
        return fmapi::decode_message(outer.response).value();
    }
    template <typename Command>
    fmapi::Message at_device(std::uint8_t port, const typename Command::Request& request = {}) {
        return at_device(port, fmapi::make_request(Command::kOpcode, 0, fmapi::encode(request)));
    }
    template <typename Command>
    typename Command::Response get_at_device(std::uint8_t port,
                                             const typename Command::Request& request = {}) {
        return decoded<Command>(at_device<Command>(port, request));
    }
    // And from there to an LD.
    fmapi::Message at_ld(std::uint8_t port, std::uint8_t ld, const fmapi::Message& request) {
        const auto inner =
            get_at_device<fmapi::TunnelManagementCommand>(port, {.id = ld,
                                                                 .target = fmapi::TunnelTarget::kLd,
                                                                 .type = fmapi::MctpType::kCci,
                                                                 .command = fmapi::encode_message(request)});
        return fmapi::decode_message(inner.response).value();
    }

    // Ends the oldest operation that runs.
    void end(fmapi::ReturnCode code = fmapi::ReturnCode::kSuccess) { end_at(0, code); }
    void end_at(std::size_t index, fmapi::ReturnCode code) {
        const Operation operation = running_.at(index);
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
        finish(model_, operation, code);
    }
    // A bind from its start to its end.
    void bind(std::uint8_t vcs, std::uint8_t vppb, std::uint8_t port, std::uint16_t ld) {
        if (code<fmapi::BindVppb>({vcs, vppb, port, ld}) != fmapi::ReturnCode::kBackgroundStarted)
            throw std::runtime_error("the bind is refused");
        end();
    }
    fmapi::Vppb vppb(std::uint8_t vcs, std::uint8_t vppb) {
        const fmapi::GetVirtualSwitchInfoRequest request{.first_vppb = vppb, .vppb_limit = 1, .vcss = {vcs}};
        return get<fmapi::GetVirtualSwitchInfo>(request,
                                                fmapi::GetVirtualSwitchInfoResponse::answering(request))
            .vcss.at(0)
            .vppbs.at(0);
    }

  private:
    static SwitchConfig config_with(const std::string& more) {
        std::string text = test_topology("/media");
        text.insert(text.find("    ports:\n"), more);
        return parse_topology(text, "test").value().switches[0];
    }
    template <typename Command>
    static typename Command::Response decoded(const fmapi::Message& answer,
                                              typename Command::Response initial = {}) {
        if (answer.return_code != fmapi::ReturnCode::kSuccess)
            throw std::runtime_error("refused: " + fmapi::to_string(answer));
        return fmapi::decode<typename Command::Response>(answer.payload, std::move(initial)).value();
    }

    SwitchModel model_;
    std::vector<Operation> running_;
};

}  // namespace memtide::emul::test
