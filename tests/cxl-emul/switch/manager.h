#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/fmapi/codec.h"
#include "common/fmapi/commands.h"
#include "common/fmapi/mctp.h"
#include "common/fmapi/message.h"

namespace memtide::emul::test {

// A fabric manager that does as it is told: a blocking connection to a switch. Waiting ends after a generous
// deadline by throwing, which fails the test.
class Manager {
  public:
    // "tcp://..." or "unix://..."
    explicit Manager(const std::string& address, const fmapi::WireFormat& format = {});
    ~Manager();
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    void send(std::span<const std::byte> bytes);
    void send(const fmapi::Message& request, fmapi::MctpType type = fmapi::MctpType::kFmApi);
    fmapi::MctpMessage receive();
    // True when the switch closes the connection, false when it sends something instead.
    bool is_dropped();
    // No more will be sent; receiving goes on.
    void close_sending();

    fmapi::Message call(fmapi::Opcode opcode, fmapi::Payload payload = {});
    template <typename Command>
    fmapi::Message call(const typename Command::Request& request = {}) {
        return call(Command::kOpcode, fmapi::encode(request));
    }
    // The decoded answer of a command that must succeed.
    template <typename Command>
    typename Command::Response get(const typename Command::Request& request = {},
                                   typename Command::Response initial = {}) {
        return decode_success<typename Command::Response>(call<Command>(request), std::move(initial));
    }

    // Through the tunnel: to what is behind a port, and from there to an LD. The inner response.
    fmapi::Message call_device(std::uint8_t port, const fmapi::Message& request,
                               fmapi::MctpType type = fmapi::MctpType::kFmApi);
    fmapi::Message call_ld(std::uint8_t port, std::uint8_t ld, const fmapi::Message& request,
                           fmapi::MctpType type = fmapi::MctpType::kCci);

    fmapi::BackgroundOperationStatusResponse background() { return get<fmapi::BackgroundOperationStatus>(); }
    // Polls until no background operation runs, and returns how the last one ended.
    fmapi::ReturnCode wait_for_background();
    fmapi::ReturnCode wait_for_ld(std::uint8_t port, std::optional<std::uint8_t> ld);

    // A whole bind or unbind: the return code of the command, or of the operation when that was started.
    fmapi::ReturnCode bind(std::uint8_t vcs, std::uint8_t vppb, std::uint8_t port, std::uint16_t ld);
    fmapi::ReturnCode unbind(std::uint8_t vcs, std::uint8_t vppb,
                             fmapi::UnbindOption option = fmapi::UnbindOption::kWaitForLinkDown);
    fmapi::Vppb vppb(std::uint8_t vcs, std::uint8_t vppb);

    template <typename Response>
    static Response decode_success(const fmapi::Message& message, Response initial = {}) {
        expect_success(message);
        return fmapi::decode<Response>(message.payload, std::move(initial)).value();
    }

  private:
    static void expect_success(const fmapi::Message& message);
    std::optional<std::vector<std::byte>> read_some();

    int fd_ = -1;
    std::uint8_t tag_ = 0;
    fmapi::WireFormat format_;
    fmapi::PacketAssembler assembler_;
};

}  // namespace memtide::emul::test
