// config/wireshark/memtide_fmapi.lua: its tables are the descriptions of the commands, and with it tshark
// shows what a capture has.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/fmapi/capture/pcap_writer.h"
#include "common/fmapi/commands.h"
#include "common/fmapi/dialect.h"
#include "common/fmapi/mctp_control.h"
#include "common/fmapi/text/payload_json.h"
#include "common/process/child.h"
#include "tests/common/fmapi/generated.h"
#include "tests/common/fmapi/samples.h"

namespace memtide::fmapi {
namespace {

const std::filesystem::path kScript = test::kSource / "config/wireshark/memtide_fmapi.lua";
constexpr std::string_view kTablesBegin = "-- commands: generated, see docs/add-a-command.md\n";
constexpr std::string_view kTablesEnd = "-- commands: end\n";

// The tables of Lua that the dissector goes by.
class LuaTables {
  public:
    LuaTables() {
        for_each_command([this]<typename C>(C) {
            add<typename C::Request>();
            add<typename C::Response>();
        });
    }
    [[nodiscard]] std::string text() const {
        std::string all = opcodes() + return_codes() + "local structs = {\n";
        for (const auto& [name, rows] : structs_)
            all += fmt::format("    [\"{}\"] = {{\n{}    }},\n", name, rows);
        return all + "}\n" + commands();
    }
    // "structure.list" of those whose length no field has.
    [[nodiscard]] const std::set<std::string>& computed_lists() const { return computed_; }

  private:
    static std::string opcodes() {
        std::string text = "local opcodes = {\n";
        for_each_command([&]<typename C>(C) {
            text += fmt::format("    [0x{:04x}] = \"{}\",\n", static_cast<unsigned>(C::kOpcode), C::kName);
        });
        return text + "}\n";
    }
    static std::string return_codes() {
        constexpr unsigned kMore = 0x100;  // than there are
        const std::string_view none = name_of(static_cast<ReturnCode>(0xfffe));
        std::string text = "local return_codes = {\n";
        for (unsigned code = 0; code < kMore; ++code)
            if (const auto name = name_of(static_cast<ReturnCode>(code)); name != none)
                text += fmt::format("    [0x{:04x}] = \"{}\",\n", code, name);
        return text + "}\n";
    }
    static std::string commands() {
        std::string text = "-- Request and response.\nlocal commands = {\n";
        for_each_command([&]<typename C>(C) {
            text += fmt::format("    [0x{:04x}] = {{ \"{}\", \"{}\" }},\n", static_cast<unsigned>(C::kOpcode),
                                C::Request::kName, C::Response::kName);
        });
        return text + "}\n";
    }

    template <Described T>
    void add() {
        const std::string name(T::kName);
        if (structs_.contains(name)) return;
        structs_[name];  // two that contain each other would go on for ever
        std::string rows;
        std::apply([&](const auto&... f) { (add_row(rows, f), ...); }, T::fields);
        structs_[name] = rows;
    }

    static void put(std::string& rows, std::string_view kind, std::string_view name, std::size_t width,
                    const std::string& more = "") {
        rows += fmt::format("        {{ \"{}\", \"{}\", {}{} }},\n", kind, name, width, more);
    }
    template <typename Enum>
    static std::string values_of() {
        if constexpr (std::same_as<Enum, Opcode>) return ", opcodes";
        if constexpr (std::same_as<Enum, ReturnCode>) return ", return_codes";
        std::string text;
        for (const ValueName& row : kValueNames<Enum>)
            text += fmt::format("{} [{}] = \"{}\"", text.empty() ? "" : ",", row.value, row.name);
        return text.empty() ? text : ", {" + text + " }";
    }

    void add_row(std::string& rows, const Reserved& f) { put(rows, "skip", "reserved", f.count); }
    template <typename T, typename M>
    void add_row(std::string& rows, const Field<T, M>& f) {
        const std::string tail = f.optional_tail ? ", optional = true" : "";
        const std::size_t width = detail::fixed_size(f);
        if constexpr (std::same_as<M, IdBitmap>) {
            put(rows, "ids", f.name, width, tail);
        } else if constexpr (std::is_enum_v<M>) {
            put(rows, "uint", f.name, width, values_of<M>() + tail);
        } else if constexpr (std::is_integral_v<M>) {
            put(rows, std::is_signed_v<M> ? "int" : "uint", f.name, width, tail);
        } else if constexpr (Described<M>) {
            add<M>();
            put(rows, "struct", f.name, width, fmt::format(", \"{}\"{}", M::kName, tail));
        } else {
            put(rows, "bytes", f.name, width, tail);
        }
    }
    template <typename T, typename E, typename C>
    void add_row(std::string& rows, const CountField<T, E, C>& f) {
        std::string_view counted;
        const auto look = [&]<typename Other>(const Other& other) {
            if constexpr (std::same_as<Other, ListField<T, E>>)
                if (other.list == f.list) counted = other.name;
        };
        std::apply([&](const auto&... other) { (look(other), ...); }, T::fields);
        put(rows, "count", f.name, sizeof(C), fmt::format(", \"{}\"", counted));
    }
    template <typename T, typename E>
    void add_row(std::string& rows, const ListField<T, E>& f) {
        if (f.length != nullptr) computed_.insert(fmt::format("{}.{}", T::kName, f.name));
        std::string of;
        if constexpr (Described<E>) {
            add<E>();
            of = fmt::format(", \"{}\"", E::kName);
        } else if constexpr (std::same_as<E, std::byte>) {
            of = ", bytes = true";
        } else {
            static_assert(std::is_integral_v<E>);
        }
        put(rows, "list", f.name, detail::member_size<E>(), of);
    }

    std::map<std::string, std::string> structs_;
    std::set<std::string> computed_;
};

TEST(WiresharkDissector, HasTheCommandsAsTheyAreDescribed) {
    test::expect_or_write_between(kScript, kTablesBegin, kTablesEnd, LuaTables().text());
}

TEST(WiresharkDissector, KnowsTheLengthOfEveryListThatNoFieldCounts) {
    const std::string script = test::contents(kScript);
    const LuaTables tables;
    for (const std::string& list : tables.computed_lists())
        EXPECT_THAT(script, testing::HasSubstr("[\"" + list + "\"] = function")) << "in its table `lengths`";
}

// With tshark, where it is installed.
class Tshark : public testing::Test {
  protected:
    void SetUp() override {
        const auto there = run({"tshark", "--version"});
        if (!there || !there->exit.succeeded()) GTEST_SKIP() << "tshark is not installed";
        std::string version = there->standard_output;
        std::ranges::replace(version, '\n', ' ');
        if (version.find("with Lua") == std::string::npos) GTEST_SKIP() << "this tshark has no Lua";
    }
    ~Tshark() override { std::filesystem::remove(path_); }

    static Result<process::Output> run(std::vector<std::string> argv) {
        // A home of its own: preferences of whoever runs the test are no part of it.
        process::Command command;
        command.argv = std::move(argv);
        command.environment = {{"HOME", "/nonexistent"}};
        return process::run(std::move(command), std::chrono::minutes(5));
    }
    // What tshark writes with the script, warnings about root left out.
    std::string shown(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(),
                         {"tshark", "-X", "lua_script:" + kScript.string(), "-r", path_, "-n"});
        const auto output = run(std::move(arguments));
        if (!output) return output.error().message;
        EXPECT_THAT(output->standard_error, testing::Not(testing::HasSubstr("Lua: Error")))
            << output->standard_error;
        EXPECT_EQ(output->exit.code, 0) << output->standard_error;
        return output->standard_output;
    }
    static std::vector<std::string> lines_of(const std::string& text) {
        std::vector<std::string> lines;
        std::istringstream in(text);
        for (std::string line; std::getline(in, line);) lines.push_back(line);
        return lines;
    }

    std::string path_ = fmt::format("/tmp/memtide-wireshark-{}.pcap", getpid());
};

// Requests and answers of a connection, as somebody with a capture at hand would have them.
class Talk {
  public:
    Talk(PcapWriter& writer, std::uint64_t connection, const WireFormat& format)
        : writer_(writer), connection_(connection), format_(format) {}

    void say(Sender sender, const MctpMessage& message) {
        ASSERT_TRUE(writer_.write(connection_, sender, to_packets(message, format_)));
    }
    void exchange(Message request, ReturnCode code, Payload answer, bool opcode_zero = false) {
        request.tag = ++tag_;
        Message response = make_response(request, code, std::move(answer));
        if (opcode_zero) response.opcode = Opcode{};
        const MctpMessage asked{.route = {.tag = static_cast<std::uint8_t>(tag_ & 7)}, .message = request};
        say(Sender::kManager, asked);
        say(Sender::kSwitch, {.route = reply_route(asked.route), .message = response});
    }

  private:
    PcapWriter& writer_;
    std::uint64_t connection_;
    WireFormat format_;
    std::uint8_t tag_ = 0;
};

TEST_F(Tshark, ShowsEveryPayloadToItsLastFieldInEveryDialect) {
    std::size_t exchanges = 0;
    {
        auto writer = PcapWriter::open(path_);
        ASSERT_TRUE(writer) << writer.error().message;
        std::uint64_t connection = 0;
        for (const Dialect& dialect : dialects()) {
            Talk talk(*writer, connection++, dialect.wire);
            for_each_command([&]<typename C>(C) {
                const auto samples = test::all_samples();
                talk.exchange(make_request(C::kOpcode, 0, encode(std::get<typename C::Request>(samples))),
                              ReturnCode::kSuccess, encode(std::get<typename C::Response>(samples)),
                              dialect.opcode_zero_in_responses);
                ++exchanges;
            });
        }
    }
    EXPECT_EQ(shown({"-Y", "fmapi.malformed || fmapi.trailing || _ws.lua.error"}), "");
    EXPECT_EQ(lines_of(shown({"-Y", "fmapi.response_to", "-T", "fields", "-e", "fmapi.response_to"})).size(),
              exchanges);
}

TEST_F(Tshark, ShowsTheHeaderAndTheFieldsOfThePayload) {
    {
        auto writer = PcapWriter::open(path_);
        ASSERT_TRUE(writer);
        Talk talk(*writer, 0, {});
        talk.exchange(make_request(Opcode::kBindVppb, 0, encode(BindVppbRequest{0, 1, 2, 3})),
                      ReturnCode::kBusy, {});
        Message inner = make_request(Opcode::kIdentify, 9);
        talk.exchange(make_request(Opcode::kTunnelManagementCommand, 0,
                                   encode(TunnelRequest{.id = 2, .command = encode_message(inner)})),
                      ReturnCode::kSuccess,
                      encode(TunnelResponse{
                          .response = encode_message(make_response(
                              inner, ReturnCode::kSuccess, encode(IdentifyResponse{1, 2, 3, 4, 5})))}));
        GetVirtualSwitchInfoRequest two{.first_vppb = 1, .vppb_limit = 1, .vcss = {0}};
        VirtualSwitch vcs{.vcs = 0,
                          .state = VcsState::kEnabled,
                          .total_vppbs = 4,
                          .vppbs = {{VppbBinding::kBoundLd, 2, 1}}};
        GetVirtualSwitchInfoResponse listed;
        listed.vcss = {vcs};
        talk.exchange(make_request(Opcode::kGetVirtualSwitchInfo, 0, encode(two)), ReturnCode::kSuccess,
                      encode(listed));
    }
    EXPECT_EQ(lines_of(shown({"-Y", "fmapi", "-T", "fields", "-E", "separator=|", "-e", "fmapi.opcode", "-e",
                              "fmapi.tag", "-e", "fmapi.return_code", "-e", "fmapi.bind_vppb_request.port",
                              "-e", "fmapi.vppb.binding", "-e", "fmapi.identify_response.serial"})),
              (std::vector<std::string>{"0x5201|1||2||", "0x5201|1|0x0006|||", "0x5300,0x0001|2,9||||",
                                        "0x5300,0x0001|2,9|0x0000,0x0000|||5", "0x5200|3||||",
                                        "0x5200|3|0x0000||3|"}));
    const std::string all = shown({"-V"});
    EXPECT_THAT(all, testing::HasSubstr("request Bind vPPB (5201h) tag 1"));
    EXPECT_THAT(all, testing::HasSubstr("binding: bound-ld (3"));
    EXPECT_THAT(shown({"-Y", "fmapi.trailing || fmapi.malformed"}), "");
}

TEST_F(Tshark, TakesOtherPortsByDecodeAs) {
    {
        auto writer = PcapWriter::open(path_);
        ASSERT_TRUE(writer);
        Talk(*writer, 0, {}).exchange(make_request(Opcode::kIdentify, 0), ReturnCode::kBusy, {});
    }
    EXPECT_EQ(shown({"-d", "tcp.port==2650,echo", "-Y", "fmapi"}), "");
    EXPECT_EQ(lines_of(shown({"-d", "tcp.port==40000,fmapi", "-Y", "fmapi"})).size(), 2U);
}

}  // namespace
}  // namespace memtide::fmapi
