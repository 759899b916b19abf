#include "cli/fmapi/command_line.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "cli/fmapi/arguments.h"
#include "cli/fmapi/render.h"
#include "common/base/duration.h"
#include "common/base/hex.h"
#include "common/daemon/exit_code.h"
#include "common/fmapi/dialect.h"
#include "common/usage/explain.h"

namespace memtide::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  memtide fmapi -s tcp://10.0.0.5:8600 identify-switch-device
  memtide fmapi -s unix:///run/switch0.sock get-physical-port-state ports=0,1,2
  memtide fmapi bind-vppb vcs=0 vppb=1 port=3 ld=0 --wait
  memtide fmapi --port 3 get-ld-allocations            the MLD at port 3, through the tunnel
  memtide fmapi --port 3 --ld 0 get-health-info        LD 0 of it
  memtide fmapi raw c001 01 02 03                      a vendor's command
  memtide fmapi bind-vppb --help                       its fields
  memtide fmapi decode capture.pcap                    what was said on a wire

Environment:
  MEMTIDE_SWITCH  where the switch is, unless --switch says it

Exit codes: 0 success, or a background operation has begun; 1 another return code, or no answer; 2 wrong usage.)";

constexpr std::chrono::minutes kBackgroundLimit(10);

std::string layout_or_none(const std::vector<fmapi::FieldText>& fields) {
    return fields.empty() ? "  none\n" : render_layout(fields);
}

std::string footer_of(const fmapi::CommandText& command) {
    std::string text = "Fields of the request, as FIELD=VALUE; those left out have defaults:\n" +
                       layout_or_none(command.request_fields()) + "Fields of the response:\n" +
                       layout_or_none(command.response_fields());
    if (command.traits.background) text += "A background operation: --wait waits for its end.\n";
    return text;
}

bool succeeded(fmapi::ReturnCode code) {
    return code == fmapi::ReturnCode::kSuccess || code == fmapi::ReturnCode::kBackgroundStarted;
}

}  // namespace

FmapiCommandLine::FmapiCommandLine() {
    app_.fallthrough();
    app_.require_subcommand(1);
    app_.set_help_flag("-h,--help", "Print this help and exit");
    app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app_.get_formatter()->label("REQUIRED", "");
    app_.footer(kFooter);
    add_options();
    add_list();
    add_raw();
    add_decode();
    add_replay();
    add_commands();
}

void FmapiCommandLine::add_options() {
    app_.add_option("-s,--switch", switch_,
                    "Where it is: tcp://HOST:PORT, unix:///PATH, cxl:///dev/cxl/DEVICE or mctp://EID@NETWORK "
                    "(default: $MEMTIDE_SWITCH)")
        ->type_name("ADDRESS")
        ->envname("MEMTIDE_SWITCH")
        ->option_text("ADDRESS");
    app_.add_option("-p,--port", port_, "Ask the device at this port of it")->type_name("N");
    app_.add_option("-l,--ld", ld_, "Ask this LD of that device")->type_name("N")->needs("--port");
    app_.add_option("--dialect", dialect_,
                    fmt::format("How it speaks: {} (default: found out)", fmapi::dialect_names()))
        ->type_name("NAME")
        ->check([](const std::string& name) {
            return fmapi::find_dialect(name) != nullptr || name == fm::kDetectDialect
                       ? std::string()
                       : fmt::format("\"{}\" is none of {}", name, fmapi::dialect_names());
        });
    app_.add_option("--timeout", timeout_, "How long to wait for an answer (default: 2s)")->type_name("TIME");
    app_.add_flag("--wait", wait_, "Wait until a background operation is over");
    app_.add_option("--record", record_, "Write what is said behind this file, for replay")
        ->type_name("FILE")
        ->check(something());
    app_.add_option("--pcap", pcap_,
                    "Write what goes over the wire behind this file, for Wireshark and decode")
        ->type_name("FILE")
        ->check(something());
    app_.add_flag("--json", json_, "Answer in JSON, for programs");
    app_.add_flag("--hex", hex_, "Show the bytes of the messages, too");
}

CLI::App* FmapiCommandLine::add(const std::string& word, const std::string& text, const std::string& footer) {
    auto* const command = app_.add_subcommand(word, text);
    command->footer(footer);
    return command;
}

void FmapiCommandLine::add_commands() {
    for (const fmapi::CommandText& text : fmapi::command_texts()) {
        auto* const command =
            add(text.word, fmt::format("{:04x}h {}", static_cast<unsigned>(text.opcode), text.name),
                footer_of(text));
        command->group("FM API commands");
        command->add_option("FIELD=VALUE", words_, "What is asked")->type_name("");
        command->callback(
            [this, &text] { chosen_ = [this, &text](Output& output) { return ask(output, text); }; });
    }
}

void FmapiCommandLine::add_list() {
    add("list", "Every command with its opcode", "")->callback([this] {
        chosen_ = [this](Output& output) {
            if (!json_) {
                output.text(render_commands());
                return daemon::kExitOk;
            }
            boost::json::array list;
            for (const fmapi::CommandText& command : fmapi::command_texts())
                list.push_back({{"opcode", fmt::format("{:04x}", static_cast<unsigned>(command.opcode))},
                                {"command", command.word},
                                {"name", command.name},
                                {"repeatable", command.traits.repeatable},
                                {"background", command.traits.background}});
            output.value(list);
            return daemon::kExitOk;
        };
    });
}

void FmapiCommandLine::add_raw() {
    auto* const command = add("raw", "Any opcode with any payload, in hexadecimal",
                              "  memtide fmapi raw 5101 01 00\n  memtide fmapi --port 3 raw 0001\n");
    command->add_option("OPCODE", opcode_, "Four hexadecimal digits")->required()->type_name("");
    command->add_option("BYTES", words_, "The payload")->type_name("");
    command->callback([this] { chosen_ = [this](Output& output) { return ask_raw(output); }; });
}

void FmapiCommandLine::add_decode() {
    auto* const command =
        add("decode", "What was said in a capture: pcap, pcapng, or hexadecimal text",
            "  memtide fmapi decode capture.pcap\n"
            "  tcpdump -w - port 8600 | memtide fmapi decode --tcp-port 8600 -\n"
            "  memtide fmapi decode --dialect framed-big-endian capture.pcap\n"
            "  echo '00 01 00 01 00 00 00 00 00 00 00 00' | memtide fmapi decode --text -\n");
    command->add_option("FILE", file_, "Which; - for standard input")->required()->type_name("");
    command->add_option("--tcp-port", tcp_port_, "Only connections from or to this port")->type_name("PORT");
    command->add_flag("--text", text_, "It is hexadecimal text: MCTP packets, or CCI messages");
    command->callback([this] { chosen_ = [this](Output& output) { return decode(output); }; });
}

void FmapiCommandLine::add_replay() {
    auto* const command =
        add("replay",
            "Asks again what a recording has, binds and erases too, and says what is answered otherwise",
            "  memtide fmapi -s unix:///run/switch0.sock replay session.jsonl\n");
    command->add_option("FILE", file_, "What --record wrote")->required()->type_name("");
    command->callback([this] { chosen_ = [this](Output& output) { return replay(output); }; });
}

Result<Console> FmapiCommandLine::console() const {
    if (switch_.empty())
        return fail(ErrorCode::kInvalidArgument, "which switch? --switch or MEMTIDE_SWITCH says where it is");
    const auto timeout = parse_duration(timeout_);
    if (!timeout) return std::unexpected(timeout.error());
    return Console::open(switch_, dialect_, *timeout, pcap_);
}

// Wrong words, or a file that cannot be written to.
int FmapiCommandLine::without_console(Output& output, const Error& why, const std::string& command) {
    return why.code == ErrorCode::kInvalidArgument ? output.wrong_usage(why.message, command)
                                                   : output.failure(no_answer(why));
}

// Without a list these ask for nothing, and the answer would look like a switch that has nothing.
static std::string missing_list(fmapi::Opcode opcode, const boost::json::object& fields) {
    if (opcode == fmapi::Opcode::kGetPhysicalPortState && !fields.contains("ports"))
        return "ports=0,1,2 says which; identify-switch-device tells which there are (active_ports)";
    if (opcode == fmapi::Opcode::kGetVirtualSwitchInfo && !fields.contains("vcss"))
        return "vcss=0,1 says which; identify-switch-device tells which there are (active_vcss)";
    return {};
}

int FmapiCommandLine::ask(Output& output, const fmapi::CommandText& command) {
    const auto fields = fields_of_words(words_);
    if (!fields) return output.wrong_usage(fields.error().message, "fmapi " + command.word);
    if (const std::string missing = missing_list(command.opcode, *fields); !missing.empty())
        return output.wrong_usage(missing, "fmapi " + command.word);
    auto payload = command.encode_request(*fields);
    if (!payload) return output.wrong_usage(payload.error().message, "fmapi " + command.word);
    return exchange(output, command.opcode, *std::move(payload));
}

int FmapiCommandLine::ask_raw(Output& output) {
    const auto opcode = fmapi::parse_opcode(opcode_);
    if (!opcode) return output.wrong_usage(opcode.error().message, "fmapi raw");
    std::string text;
    for (const std::string& word : words_) text += word + " ";
    auto payload = parse_hex(text);
    if (!payload) return output.wrong_usage(payload.error().message, "fmapi raw");
    return exchange(output, *opcode, *std::move(payload));
}

int FmapiCommandLine::exchange(Output& output, fmapi::Opcode opcode, fmapi::Payload payload) {
    auto bench = console();
    if (!bench) return without_console(output, bench.error(), "fmapi");
    std::optional<Recorder> recorder;
    if (!record_.empty()) {
        auto opened = Recorder::open(record_);
        if (!opened) return output.failure(no_answer(opened.error()));
        recorder = *std::move(opened);
    }
    auto response = bench->ask(target(), opcode, payload);
    if (!response) return output.failure(no_answer(response.error()));
    const Exchange said{target(), fmapi::make_request(opcode, response->tag, std::move(payload)), *response};
    show(output, said);
    if (recorder)
        if (const auto added = recorder->add(said); !added) return output.complaint(added.error().message);
    if (!succeeded(response->return_code)) return daemon::kExitFailure;
    return wait_ && response->return_code == fmapi::ReturnCode::kBackgroundStarted
               ? follow(output, *bench, opcode)
               : daemon::kExitOk;
}

int FmapiCommandLine::follow(Output& output, Console& bench, fmapi::Opcode opcode) {
    const auto ended = bench.wait(target(), opcode, kBackgroundLimit);
    if (!ended) return output.failure(no_answer(ended.error()));
    if (json_)
        output.value(boost::json::object{{"ended", fmapi::name_of(opcode)},
                                         {"return_code", to_string(ended->return_code)}});
    else
        output.text(fmt::format("{}: {}\n", fmapi::name_of(opcode), to_string(ended->return_code)));
    return ended->return_code == fmapi::ReturnCode::kSuccess ? daemon::kExitOk : daemon::kExitFailure;
}

void FmapiCommandLine::show(Output& output, const Exchange& exchange) const {
    boost::json::object answer = to_json(exchange.response, &exchange.request);
    if (hex_) {
        answer["request_hex"] = to_hex(encode_message(exchange.request));
        answer["response_hex"] = to_hex(encode_message(exchange.response));
    }
    if (json_) {
        output.value(answer);
        return;
    }
    std::string text = fmt::format("{}: {}\n", fmapi::name_of(exchange.request.opcode),
                                   to_string(exchange.response.return_code));
    for (const char* const member : {"payload_hex", "error", "request_hex", "response_hex"})
        if (const auto* value = answer.if_contains(member)) text += render_fields({{member, *value}});
    if (const auto* payload = answer.if_contains("payload")) text += render_fields(payload->get_object());
    output.text(text);
}

static std::string answer_text(fmapi::ReturnCode code, const fmapi::Payload& payload) {
    return to_string(code) + (payload.empty() ? "" : " " + to_hex(payload));
}

int FmapiCommandLine::replay(Output& output) {
    const auto recorded = read_recording(file_);
    if (!recorded) return output.failure(no_answer(recorded.error()));
    auto bench = console();
    if (!bench) return without_console(output, bench.error(), "fmapi replay");
    std::size_t different = 0;
    for (std::size_t i = 0; i < recorded->size(); ++i) {
        const Exchange& was = (*recorded)[i];
        const auto now = bench->ask(was.target, was.request.opcode, was.request.payload);
        const bool same =
            now && now->return_code == was.response.return_code && now->payload == was.response.payload;
        if (same) continue;
        ++different;
        const std::string is = now ? answer_text(now->return_code, now->payload) : now.error().message;
        const std::string recorded_answer = answer_text(was.response.return_code, was.response.payload);
        if (json_)
            output.value(boost::json::object{{"line", i + 1},
                                             {"command", fmapi::name_of(was.request.opcode)},
                                             {"target", to_string(was.target)},
                                             {"was", recorded_answer},
                                             {"is", is}});
        else
            output.text(fmt::format("{}: {} to {}\n  was  {}\n  is   {}\n", i + 1,
                                    fmapi::name_of(was.request.opcode), to_string(was.target),
                                    recorded_answer, is));
    }
    if (!json_)
        output.text(
            fmt::format("{} commands, {} answered otherwise than recorded\n", recorded->size(), different));
    return different == 0 ? daemon::kExitOk : daemon::kExitFailure;
}

int FmapiCommandLine::run(std::vector<std::string> arguments) {
    Output talk(false);
    std::ranges::reverse(arguments);  // as CLI11 takes them
    try {
        app_.parse(std::move(arguments));
    } catch (const CLI::CallForHelp&) {
        talk.text(app_.help());
        return talk.close(daemon::kExitOk);
    } catch (const CLI::ParseError& error) {
        const std::string command = command_name(app_);
        return talk.wrong_usage(explain(app_, error), command.empty() ? "fmapi" : "fmapi " + command);
    }
    Output output(json_);
    return output.close(chosen_(output));
}

std::optional<std::vector<std::string>> fmapi_arguments(const std::vector<std::string>& typed) {
    auto word = typed.begin();
    const bool json = word != typed.end() && *word == "--json";
    if (json) ++word;
    const bool help = word != typed.end() && *word == "help";
    if (help) ++word;
    if (word == typed.end() || *word != "fmapi") return std::nullopt;
    std::vector<std::string> arguments(std::next(word), typed.end());
    if (help) arguments.emplace_back("--help");
    if (json) arguments.emplace_back("--json");
    return arguments;
}

}  // namespace memtide::cli
