#include "cli/fmapi/console.h"

#include <optional>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <fmt/format.h>

#include "common/log/log.h"
#include "fabric-manager/fmapi/address.h"
#include "fabric-manager/fmapi/session.h"
#include "fabric-manager/fmapi/transport.h"
#include "fabric-manager/fmapi/tunnel.h"

namespace memtide::cli {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Result<Console> Console::open(const std::string& address, const std::string& dialect, milliseconds timeout,
                              const std::string& pcap) {
    // What the session tells of itself is no part of the answer.
    log::set_level(log::Level::kWarning);
    auto parsed = fm::parse_switch_address(address);
    if (!parsed) return std::unexpected(std::move(parsed).error());
    fmapi::SwitchCapture capture;
    if (!pcap.empty()) {
        const auto file = fmapi::SessionCapture::open(pcap);
        if (!file) return std::unexpected(Error(file.error()).with_context("--pcap"));
        capture = fmapi::SwitchCapture(*file, 0);  // one: nobody has to be told which it is
    }
    Console console;
    console.io_ = std::make_unique<boost::asio::io_context>(1);
    fm::ClientOptions options;
    options.address = address;
    options.dialect = dialect;
    options.connect_timeout = timeout;
    options.command_timeout = timeout;
    auto transport = fm::make_transport(console.io_->get_executor(), *parsed, std::move(capture));
    console.session_ =
        std::make_shared<fm::Session>(console.io_->get_executor(), std::move(transport), std::move(options));
    return console;
}

Result<fmapi::Message> Console::ask(const fm::Target& target, fmapi::Opcode opcode,
                                    const fmapi::Payload& payload) {
    std::optional<Result<fmapi::Message>> answer;
    boost::asio::co_spawn(*io_, fm::exchange_with(session_, target, {.opcode = opcode, .payload = payload}),
                          [&](const std::exception_ptr& failed, Result<fmapi::Message> got) {
                              if (failed) std::rethrow_exception(failed);
                              answer = std::move(got);
                          });
    // Not to its end: the session goes on listening for what the switch says unasked.
    while (!answer && io_->run_one() != 0) {
    }
    if (io_->stopped()) io_->restart();
    return answer ? *std::move(answer) : fail(ErrorCode::kInternal, "the exchange ended without an answer");
}

Result<fmapi::BackgroundOperationStatusResponse> Console::wait(const fm::Target& target,
                                                               fmapi::Opcode started, milliseconds limit) {
    const auto deadline = steady_clock::now() + limit;
    for (milliseconds pause(1);; pause = std::min(2 * pause, milliseconds(200))) {
        std::this_thread::sleep_for(pause);
        const auto answer = ask(target, fmapi::Opcode::kBackgroundOperationStatus, {});
        if (!answer) return std::unexpected(answer.error());
        if (answer->return_code != fmapi::ReturnCode::kSuccess)
            return fail(fmapi::error_code_of(answer->return_code),
                        "Background Operation Status: " + to_string(answer->return_code));
        auto status = fmapi::decode<fmapi::BackgroundOperationStatusResponse>(answer->payload);
        if (!status) return std::unexpected(std::move(status).error());
        if (status->opcode != started)
            return fail(ErrorCode::kProtocol, fmt::format("{} tells of {}, not of {}", to_string(target),
                                                          to_string(status->opcode), to_string(started)));
        if (!status->running()) return status;
        if (steady_clock::now() >= deadline)
            return fail(ErrorCode::kTimeout,
                        fmt::format("{} still runs, {}% done", to_string(started), status->percent()));
    }
}

}  // namespace memtide::cli
