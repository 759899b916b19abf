#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands/output.h"
#include "cli/fmapi/console.h"
#include "cli/fmapi/recording.h"
#include "common/fmapi/text/command_text.h"
#include "fabric-manager/fmapi/client.h"

namespace memtide::cli {

// `memtide fmapi`: the FM API by hand, for people with a switch on the bench. Every command of it is a
// command here, by its name; besides raw requests, captures, recordings.
class FmapiCommandLine {
  public:
    FmapiCommandLine();
    FmapiCommandLine(const FmapiCommandLine&) = delete;
    FmapiCommandLine& operator=(const FmapiCommandLine&) = delete;

    // `arguments`: the words behind "fmapi". Answers the exit code.
    int run(std::vector<std::string> arguments);

  private:
    void add_options();
    void add_commands();
    void add_raw();
    void add_list();
    void add_decode();
    void add_replay();
    CLI::App* add(const std::string& word, const std::string& text, const std::string& footer);

    int ask(Output& output, const fmapi::CommandText& command);
    int ask_raw(Output& output);
    int exchange(Output& output, fmapi::Opcode opcode, fmapi::Payload payload);
    int follow(Output& output, Console& console, fmapi::Opcode opcode);
    int replay(Output& output);
    int decode(Output& output) const;
    void show(Output& output, const Exchange& exchange) const;
    [[nodiscard]] Result<Console> console() const;
    static int without_console(Output& output, const Error& why, const std::string& command);
    [[nodiscard]] fm::Target target() const { return {.port = port_, .ld = ld_}; }

    CLI::App app_{"The CXL FM API by hand: every command of it, captures, recordings", "memtide fmapi"};
    std::function<int(Output&)> chosen_;
    std::string switch_;
    std::optional<std::uint8_t> port_;
    std::optional<std::uint8_t> ld_;
    std::string dialect_{fm::kDetectDialect};
    std::string timeout_ = "2s";
    bool json_ = false;
    bool hex_ = false;
    bool wait_ = false;
    std::string record_;
    std::string pcap_;
    std::vector<std::string> words_;  // FIELD=VALUE, or bytes
    std::string opcode_;
    std::string file_;
    std::optional<std::uint16_t> tcp_port_;
    bool text_ = false;
};

// What `memtide fmapi ...` hands on, when that was typed: the words behind "fmapi"; --json before it goes
// with it.
std::optional<std::vector<std::string>> fmapi_arguments(const std::vector<std::string>& typed);

}  // namespace memtide::cli
