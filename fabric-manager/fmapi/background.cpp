#include <algorithm>
#include <chrono>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "fabric-manager/fmapi/client.h"

namespace memtide::fm {
namespace asio = boost::asio;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

// The end of the operation, or nothing while it runs.
std::optional<Result<>> outcome(const fmapi::BackgroundOperationStatusResponse& status,
                                fmapi::Opcode operation, const Target& target) {
    if (status.opcode != operation)
        return fail(ErrorCode::kProtocol,
                    fmt::format("{} reports on {} instead of {}", to_string(target),
                                fmapi::to_string(status.opcode), fmapi::to_string(operation)));
    if (status.running()) return std::nullopt;
    if (status.return_code != fmapi::ReturnCode::kSuccess)
        return fail(fmapi::error_code_of(status.return_code),
                    fmt::format("{} of {} in the background: {}", fmapi::to_string(operation),
                                to_string(target), to_string(status.return_code)));
    return Result<>{};
}

}  // namespace

asio::awaitable<Result<>> wait_for_background(FmApiClient& client, Target target, fmapi::Opcode operation,
                                              steady_clock::time_point deadline) {
    asio::steady_timer pause(co_await asio::this_coro::executor);
    for (auto interval = 1ms;; interval = std::min(interval * 2, 100ms)) {
        const auto status = co_await client.background_status(target);
        if (!status) co_return std::unexpected(status.error());
        if (auto over = outcome(*status, operation, target)) co_return std::move(*over);
        const auto now = steady_clock::now();
        if (now >= deadline)
            co_return fail(ErrorCode::kTimeout,
                           fmt::format("{} of {} still runs in the background, {} % done",
                                       fmapi::to_string(operation), to_string(target), status->percent()));
        pause.expires_at(std::min(now + interval, deadline));
        const auto [ec] = co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
        if (ec) co_return fail(ErrorCode::kCancelled, "cancelled");
    }
}

}  // namespace memtide::fm
