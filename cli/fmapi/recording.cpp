#include "cli/fmapi/recording.h"

#include <cerrno>
#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "common/base/hex.h"
#include "common/fmapi/text/command_text.h"
#include "common/json/json.h"
#include "common/json/write.h"

namespace memtide::cli {
namespace {

boost::json::object to_line(const Exchange& exchange) {
    boost::json::object line{
        {"time", fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", std::chrono::floor<std::chrono::milliseconds>(
                                                          std::chrono::system_clock::now()))}};
    if (exchange.target.port) line["port"] = *exchange.target.port;
    if (exchange.target.ld) line["ld"] = *exchange.target.ld;
    line["request"] = to_json(exchange.request);
    line["response"] = to_json(exchange.response, &exchange.request);
    line["request_hex"] = to_hex(encode_message(exchange.request));
    line["response_hex"] = to_hex(encode_message(exchange.response));
    return line;
}

fmapi::Message message_of(const json::Object& line, std::string_view member) {
    const json::Value value = line.require(member);
    const auto bytes = parse_hex(value.string(std::size_t{1} << 22));
    const auto message = bytes ? fmapi::decode_message(*bytes) : std::unexpected(bytes.error());
    if (message) return *message;
    value.reject(message.error().message);
    return {};
}

Result<Exchange> from_line(std::string_view text) {
    const auto parsed = json::parse(text, {.bytes = std::size_t{1} << 24});
    if (!parsed) return std::unexpected(parsed.error());
    const json::Reader reader(*parsed);
    const json::Object line = reader.root().object();
    Exchange exchange;
    if (const auto port = line.get("port")) exchange.target.port = port->integer<std::uint8_t>();
    if (const auto ld = line.get("ld")) exchange.target.ld = ld->integer<std::uint8_t>();
    exchange.request = message_of(line, "request_hex");
    exchange.response = message_of(line, "response_hex");
    if (auto ok = reader.check(json::Reader::Unknown::kIgnored); !ok)
        return std::unexpected(std::move(ok).error());
    return exchange;
}

}  // namespace

Result<Recorder> Recorder::open(const std::string& path) {
    errno = 0;
    std::ofstream file(path, std::ios::app);
    if (!file) return fail_errno("write to", path, errno);
    return Recorder(path, std::move(file));
}

Result<> Recorder::add(const Exchange& exchange) {
    errno = 0;
    file_ << json::write(to_line(exchange)) << '\n' << std::flush;
    if (!file_) return fail_errno("write to", path_, errno);
    return {};
}

Result<std::vector<Exchange>> read_recording(const std::string& path) {
    errno = 0;
    std::ifstream file(path);
    if (!file) return fail_errno("open", path, errno);
    std::vector<Exchange> exchanges;
    std::size_t number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.empty()) continue;
        auto exchange = from_line(line);
        if (!exchange)
            return fail(ErrorCode::kInvalidArgument,
                        fmt::format("{}:{}: {}", path, number, exchange.error().message));
        exchanges.push_back(*std::move(exchange));
    }
    return exchanges;
}

}  // namespace memtide::cli
