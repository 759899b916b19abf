#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cli/fmapi/command_line.h"
#include "cli/fmapi/render.h"
#include "common/base/hex.h"
#include "common/daemon/exit_code.h"
#include "common/fmapi/capture/capture.h"
#include "common/fmapi/dialect.h"

namespace memtide::cli {
namespace {

Result<fmapi::Capture> read_text(const std::string& path, const std::optional<fmapi::WireFormat>& format) {
    errno = 0;
    std::ifstream file;
    if (path != "-") file.open(path);
    std::istream& in = path == "-" ? std::cin : file;
    if (!in) return fail_errno("open", path, errno);
    return fmapi::read_capture_text(std::string(std::istreambuf_iterator<char>(in), {}), format);
}

boost::json::object to_json(const fmapi::Capture& capture, std::size_t index) {
    const fmapi::CapturedMessage& captured = capture.messages[index];
    boost::json::object line{{"number", index + 1}};
    if (captured.time)
        line["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%S}Z",
                                   std::chrono::floor<std::chrono::microseconds>(*captured.time));
    if (!captured.source.empty()) line["source"] = captured.source;
    if (!captured.destination.empty()) line["destination"] = captured.destination;
    if (!captured.error.empty()) line["error"] = captured.error;
    if (captured.type) line["type"] = static_cast<unsigned>(*captured.type);
    if (captured.answers) line["answers"] = *captured.answers + 1;
    if (!captured.message) return line;
    if (captured.type == fmapi::MctpType::kControl) {
        line["kind"] = "MCTP control";
        line["payload_hex"] = to_hex(captured.message->payload);
        return line;
    }
    const fmapi::Message* const request =
        captured.answers ? &*capture.messages[*captured.answers].message : nullptr;
    for (auto& [name, value] : fmapi::to_json(*captured.message, request)) line[name] = value;
    return line;
}

std::string member(const boost::json::object& line, std::string_view name) {
    const auto* value = line.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string render(const boost::json::object& line, std::size_t number) {
    std::string text = fmt::format("{} ", number);
    if (const auto time = member(line, "time"); !time.empty()) text += time + " ";
    if (const auto source = member(line, "source"); !source.empty())
        text += fmt::format("{} > {} ", source, member(line, "destination"));
    if (!line.contains("kind")) return text + member(line, "error") + "\n";
    if (!line.contains("command"))
        return text + member(line, "kind") + " " + member(line, "payload_hex") + "\n";
    text += fmt::format("{} {} ({}h) tag {}", member(line, "kind"), member(line, "command"),
                        member(line, "opcode"), line.at("tag").to_number<unsigned>());
    if (const auto code = member(line, "return_code"); !code.empty()) text += ": " + code;
    text += "\n";
    for (const char* const name : {"payload_hex", "error"})
        if (line.contains(name)) text += render_fields({{name, line.at(name)}}, 4);
    if (const auto* payload = line.if_contains("payload")) text += render_fields(payload->get_object(), 4);
    return text;
}

}  // namespace

int FmapiCommandLine::decode(Output& output) const {
    const fmapi::Dialect* const dialect = fmapi::find_dialect(dialect_);
    const auto format = dialect != nullptr ? std::optional(dialect->wire) : std::nullopt;
    const auto capture = text_ ? read_text(file_, format)
                               : fmapi::read_capture_file(file_, {.tcp_port = tcp_port_, .format = format});
    if (!capture) return output.complaint(capture.error().message);
    bool whole = capture->missing_bytes == 0;
    for (std::size_t i = 0; i < capture->messages.size() && output.is_open(); ++i) {
        const auto line = to_json(*capture, i);
        whole = whole && capture->messages[i].error.empty();
        if (json_)
            output.value(line);
        else
            output.text(render(line, i + 1));
    }
    if (capture->missing_bytes != 0)
        return output.complaint(
            fmt::format("{} bytes lie behind a gap of the capture", capture->missing_bytes));
    return whole ? daemon::kExitOk : daemon::kExitFailure;
}

}  // namespace memtide::cli
