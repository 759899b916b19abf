#include "cli/app/command_line.h"

#include <cctype>

#include <fmt/format.h>

#include "cli/app/usage.h"
#include "cli/commands/inventory.h"
#include "cli/commands/picture.h"
#include "cli/commands/rack.h"
#include "common/daemon/exit_code.h"
#include "common/usage/explain.h"

namespace memtide::cli {
namespace {

constexpr const char* kFooter = R"(Examples:
  memtide pool                            what there is, what is free
  memtide compose host0 256MiB            give 256 MiB to host0, and wait until it is a NUMA node there
  memtide list                            who has what
  memtide release c-7f3k2m9q1x            take it back: drained, unbound, erased
  memtide --json show c-7f3k2m9q1x        everything about one, for programs
  memtide history c-7f3k2m9q1x            what has happened to one
  memtide events --follow                 what happens, as it happens
  memtide rack up topology.yaml           a rack of QEMU hosts behind a CXL switch
  memtide help compose                    all about one command

Environment:
  MEMTIDE_URL         where the fabric manager is, unless --url says it
  MEMTIDE_TOKEN_FILE  file with the token to show, unless --token-file says it
  MEMTIDE_CA, MEMTIDE_CERT, MEMTIDE_KEY   as --ca, --cert and --key

Exit codes: 0 done; 1 it failed, or did not come about in time; 2 wrong usage; 130, 143 interrupted while it
waited. With --json a failure is a problem document (RFC 9457) on standard output.)";

constexpr std::uint64_t kDay = 86'400;                // seconds
constexpr std::uint64_t kLongestTtl = 10'000 * kDay;  // 27 years

// States are written "Online"; people type "online".
std::string capitalised(std::string state) {
    for (std::size_t i = 0; i < state.size(); ++i) {
        const auto c = static_cast<unsigned char>(state[i]);
        state[i] = static_cast<char>(i == 0 ? std::toupper(c) : std::tolower(c));
    }
    return state;
}

}  // namespace

CommandLine::CommandLine() {
    app_.name("memtide");
    app_.fallthrough();  // --json and --url may also stand behind the command
    app_.require_subcommand(1);
    app_.set_help_flag("-h,--help", "Print this help and exit");
    app_.set_version_flag("-V,--version", "memtide " MEMTIDE_VERSION, "Print the version and exit");
    app_.get_formatter()->label("SUBCOMMAND", "COMMAND");
    app_.get_formatter()->label("Positionals", "Arguments");
    app_.get_formatter()->label("REQUIRED", "");  // the usage line has brackets around what is not
    app_.add_option("--url", url_, "Where the fabric manager is (default: $MEMTIDE_URL, else " + url_ + ")")
        ->type_name("URL")
        ->envname("MEMTIDE_URL")
        ->option_text("URL");
    add_credentials();
    app_.add_flag("--json", json_, "Answer in JSON, for programs");
    add_inventory();
    add_compose();
    add_resize_and_lease();
    add_release();
    add_lift();
    add_list_and_show();
    add_history();
    add_events();
    add_agent();
    // Listed for --help only; main() hands these on before the parser sees them.
    add("fmapi", "The CXL FM API by hand, captures of it: see 'memtide fmapi --help'", "");
    add("rack", "Racks of QEMU hosts behind a CXL switch: see 'memtide rack --help'", "");
    add_help();
    app_.footer(kFooter);
}

void CommandLine::add_credentials() {
    const auto add_file = [this](const char* name, std::string& into, const char* variable,
                                 const char* text) {
        app_.add_option(name, into, fmt::format("{} (default: ${})", text, variable))
            ->type_name("FILE")
            ->envname(variable)
            ->option_text("FILE");
    };
    add_file("--token-file", credentials_.token_file, "MEMTIDE_TOKEN_FILE", "File with the token to show");
    add_file("--ca", credentials_.tls.ca, "MEMTIDE_CA",
             "CA that the manager's certificate must be of, for https");
    add_file("--cert", credentials_.tls.certificate, "MEMTIDE_CERT", "Client certificate to show, for https");
    add_file("--key", credentials_.tls.key, "MEMTIDE_KEY", "Its key");
}

CLI::App* CommandLine::add(const char* name, const char* text, const char* examples) {
    auto* const command = app_.add_subcommand(name, text)->group("Commands");
    command->footer(
        fmt::format("Examples:\n{}\n--json and --url go with it too: see 'memtide --help'", examples));
    return command;
}

void CommandLine::add_inventory() {
    const auto show = [this](const char* name, const char* text, const char* examples, auto function) {
        add(name, text, examples)->callback([this, function] { chosen_ = function; });
    };
    show("pool", "Capacity and what is free, by device",
         "  memtide pool\n  memtide --json pool | jq .free           bytes\n", show_pool);
    show("hosts", "Hosts, their agents and what they have", "  memtide hosts\n", show_hosts);
    show("switches", "CXL switches and whether they answer", "  memtide switches\n", show_switches);
    show("devices", "Devices and their logical devices", "  memtide devices\n", show_devices);
    show("tenants", "Tenants, what they have and what they may have",
         "  memtide tenants        with a tenant's token: only that one\n", show_tenants);
    add_topology();
}

void CommandLine::add_topology() {
    auto* const command = add(
        "topology", "What is connected to what, in words or as a picture",
        "  memtide topology\n"
        "  memtide topology --svg > fabric.svg                       the fabric as it is now\n"
        "  memtide topology --svg --file my-rack.yaml > rack.svg     a topology file; needs no manager\n");
    auto* const svg = command->add_flag("--svg", svg_, "Draw it: a picture in SVG on standard output");
    command->add_option("--file", topology_file_, "Draw this topology file instead of the manager's fabric")
        ->type_name("FILE")
        ->needs(svg)
        ->check(something());
    command->callback([this] {
        chosen_ = [this](const ManagerClient& manager, Output& output) {
            if (!svg_) return show_topology(manager, output);
            if (output.json())
                return output.wrong_usage("--svg and --json are two answers; ask for one", "topology");
            return topology_file_.empty() ? draw_topology(manager, output)
                                          : draw_topology_file(output, topology_file_);
        };
    });
}

void CommandLine::add_waiting(CLI::App* command) {
    command->add_flag("--no-wait", no_wait_, "Return as soon as the manager has accepted it");
    command
        ->add_option("--timeout", timeout_seconds_,
                     "How long to wait for it, as 90s or 10min (default: 5min)")
        ->type_name("TIME")
        ->transform(seconds(1, kDay));
}

void CommandLine::add_compose() {
    auto* const command =
        add("compose", "Give pooled memory to a host",
            "  memtide compose host0 256MiB\n"
            "  memtide compose host1 1.5GiB --label team=a --ttl 1h --no-wait\n"
            "  memtide compose host0 2GiB --ways 2              interleaved over two devices\n"
            "  memtide compose host0 4GiB --policy spread --dry-run\n");
    command->add_option("HOST", compose_.host, "Who gets it")->required()->type_name("")->check(something());
    command->add_option("SIZE", compose_.size, "How much: a multiple of 256MiB, as 256MiB or 1.5GiB")
        ->required()
        ->type_name("")
        ->check(size());
    command->add_option("--tenant", compose_.tenant, "On whose behalf")->type_name("NAME");
    command->add_option("--label", compose_.labels, "A label; may be given several times")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false)
        ->check(key_and_value());
    command
        ->add_option("--ttl", compose_.ttl_seconds, "After what time it is released by itself: 90s, 1h, 7d")
        ->type_name("TIME")
        ->transform(seconds(1, kLongestTtl));
    add_placement(command);
    command->add_flag("--dry-run", compose_.dry_run, "Only say where it would go");
    add_waiting(command);
    command->callback([this] {
        compose_.waiting = waiting();
        chosen_ = [this](const auto& manager, auto& output) { return compose(manager, output, compose_); };
    });
}

void CommandLine::add_placement(CLI::App* command) {
    const auto percent = [&](const char* name, std::optional<std::uint64_t>& value, const char* text) {
        command->add_option(name, value, text)->type_name("PERCENT")->check(whole_number(1, 100));
    };
    command
        ->add_option("--policy", compose_.policy, "pack: few devices; spread: many; bandwidth: interleaved")
        ->type_name("POLICY")
        ->check(CLI::IsMember({"pack", "spread", "bandwidth"}));
    command->add_option("--ways", compose_.ways, "Interleave over 2, 4 or 8 devices")
        ->type_name("N")
        ->check(CLI::IsMember({1, 2, 4, 8}));
    command
        ->add_option("--max-devices", compose_.max_devices, "From how many devices it may come (default: 8)")
        ->type_name("N")
        ->check(whole_number(1, 8));
    percent("--max-per-device", compose_.max_percent_per_device,
            "At most so much of all the host has behind one device");
    percent("--max-per-switch", compose_.max_percent_per_switch,
            "At most so much of all the host has behind one switch");
    command->add_flag("--exclusive", compose_.exclusive_devices,
                      "No device on which another tenant has memory");
    command->add_flag("--use-reserve", compose_.use_reserve, "May take what the operator keeps back");
    command->add_flag("--reprovide", compose_.reprovide, "Replace what is lost when a device fails");
}

void CommandLine::add_resize_and_lease() {
    auto* const resize = add("resize", "Make a composition larger or smaller while it is online",
                             "  memtide resize c-7f3k2m9q1x 2GiB\n");
    resize->add_option("ID", id_, "Which composition")->required()->type_name("")->check(something());
    resize->add_option("SIZE", size_, "How much it shall have then: a multiple of 256MiB")
        ->required()
        ->type_name("")
        ->check(size());
    add_waiting(resize);
    resize->callback([this] {
        chosen_ = [this](const auto& manager, auto& output) {
            return change_composition(manager, output, id_, {{"size", size_}}, waiting());
        };
    });
    auto* const lease = add("lease", "Renew a composition's lease, or end it so that it stays",
                            "  memtide lease c-7f3k2m9q1x 1h\n"
                            "  memtide lease c-7f3k2m9q1x 0         no lease any more\n");
    lease->add_option("ID", id_, "Which composition")->required()->type_name("")->check(something());
    lease->add_option("TIME", ttl_seconds_, "From now on, as 90s, 1h or 7d; 0: it stays until it is released")
        ->required()
        ->type_name("")
        ->transform(seconds(0, kLongestTtl));
    lease->callback([this] {
        chosen_ = [this](const auto& manager, auto& output) {
            return change_composition(manager, output, id_, {{"ttl", ttl_seconds_}}, Waiting{false, {}});
        };
    });
}

void CommandLine::add_release() {
    auto* const command = add("release", "Take memory back: drain, unbind, erase",
                              "  memtide release c-7f3k2m9q1x\n"
                              "  memtide release c-7f3k2m9q1x --force     from a host that has crashed\n");
    command->add_option("ID", id_, "Which composition")->required()->type_name("")->check(something());
    command->add_flag("--force", force_, "Do not wait for the host; its programs may lose data");
    add_waiting(command);
    command->callback([this] {
        chosen_ = [this](const auto& manager, auto& output) {
            return release(manager, output, id_, force_, waiting());
        };
    });
}

void CommandLine::add_lift() {
    auto* const command =
        add("lift", "Take an LD out of quarantine, when its device was repaired",
            "  memtide lift 0x4d54000100000001\n"
            "  memtide devices --json                   has those whose use is quarantined\n");
    command->add_option("SERIAL", id_, "Serial number of the LD")
        ->required()
        ->type_name("")
        ->check(something());
    command->callback([this] {
        chosen_ = [this](const auto& manager, auto& output) { return lift_quarantine(manager, output, id_); };
    });
}

void CommandLine::add_list_and_show() {
    auto* const list =
        add("list", "Compositions: who has what",
            "  memtide list\n  memtide list --all --host host0\n  memtide list --state Failed\n");
    list->add_flag("-a,--all", list_.all, "Also those that have ended, Released or Failed");
    list->add_option("--state", list_.state, "Only those in this state, such as Online or Failed")
        ->type_name("STATE")
        ->check(something());
    list->add_option("--host", list_.host, "Only those of this host")->type_name("HOST")->check(something());
    list->add_option("--tenant", list_.tenant, "Only those of this tenant")
        ->type_name("NAME")
        ->check(something());
    list->add_option("--label", list_.label, "Only those with this label")
        ->type_name("KEY[=VALUE]")
        ->check(something());
    list->add_option("--device", list_.device, "Only those whose memory is of this device")
        ->type_name("NAME")
        ->check(something());
    list->callback([this] {
        if (list_.state) list_.state = capitalised(*list_.state);
        chosen_ = [this](const auto& manager, auto& output) {
            return list_compositions(manager, output, list_);
        };
    });

    auto* const show = add("show", "Everything about one composition", "  memtide show c-7f3k2m9q1x\n");
    show->add_option("ID", id_, "Which composition")->required()->type_name("")->check(something());
    show->callback([this] {
        chosen_ = [this](const auto& manager, auto& output) {
            return show_composition(manager, output, id_);
        };
    });
}

void CommandLine::add_history() {
    auto* const command =
        add("history", "All that has happened to one composition", "  memtide history c-7f3k2m9q1x\n");
    command->add_option("ID", id_, "Which composition")->required()->type_name("")->check(something());
    command->callback([this] {
        chosen_ = [this](const auto& manager, auto& output) { return show_history(manager, output, id_); };
    });
}

void CommandLine::add_events() {
    auto* const command = add("events", "What has happened",
                              "  memtide events\n"
                              "  memtide events --follow --since 120      go on after event 120\n"
                              "  memtide events --follow --type switch    what happens to switches\n");
    const auto only = [&](const char* option, auto& value, const char* text, const char* type) {
        command->add_option(option, value, text)->type_name(type)->check(something());
    };
    command->add_flag("-f,--follow", events_.follow,
                      "Go on with what happens from now on; reconnects by itself");
    command->add_option("--since", events_.since, "Only events with a larger id than this (default: 0)")
        ->type_name("ID")
        ->check(whole_number(0, kNoLimit));
    only("--type", events_.filter.type, "Only events of this type, or of all types that begin with it",
         "TYPE");
    only("--composition", events_.filter.composition, "Only events about this composition", "ID");
    only("--host", events_.filter.host, "Only events about this host", "HOST");
    command->callback([this] {
        chosen_ = [this](const auto& manager, auto& output) { return show_events(manager, output, events_); };
    });
}

void CommandLine::add_help() {
    auto* const command = add("help", "What a command does, with examples", "  memtide help compose\n");
    command->add_option("COMMAND", topic_, "Which; without it, all of them in short")->type_name("");
    command->callback([this] { chosen_ = [this](const auto&, auto& output) { return help(output); }; });
}

int CommandLine::help(Output& output) const {
    if (topic_.empty()) {
        output.text(app_.get_formatter()->make_help(&app_, "memtide", CLI::AppFormatMode::Normal));
        return daemon::kExitOk;
    }
    if (topic_.front() == "rack") {
        std::vector<std::string> words(topic_.begin() + 1, topic_.end());
        words.emplace_back("--help");
        return run_rack(output, words);
    }
    const auto about =
        app_.get_subcommands([this](const CLI::App* command) { return command->check_name(topic_.front()); });
    if (about.empty()) return output.wrong_usage(unknown_command(app_, topic_.front()), "");
    output.text(about.front()->help("memtide"));
    return daemon::kExitOk;
}

int CommandLine::run(int argc, char** argv) {
    Output talk(false);
    try {
        app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        talk.text(app_.help());
        return talk.close(daemon::kExitOk);
    } catch (const CLI::CallForVersion& version) {
        talk.text(fmt::format("{}\n", version.what()));
        return talk.close(daemon::kExitOk);
    } catch (const CLI::ParseError& error) {
        return talk.wrong_usage(explain(app_, error), command_name(app_));
    }
    Output output(json_);
    auto credentials = http::Credentials::load(credentials_);
    if (!credentials) return output.close(output.failure(unusable(credentials.error())));
    const int code = chosen_(ManagerClient(url_, *std::move(credentials)), output);
    return output.close(code);
}

}  // namespace memtide::cli
