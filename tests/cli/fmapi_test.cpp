// `memtide fmapi` on an emulated switch.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/fmapi/arguments.h"
#include "common/base/hex.h"
#include "common/fmapi/capture/pcap_writer.h"
#include "common/fmapi/mctp.h"
#include "common/fmapi/mctp_control.h"
#include "common/json/write.h"
#include "tests/cli/scripted_manager.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

class Fmapi : public testing::Test {
  protected:
    process::Output fmapi(Words words) {
        words.insert(words.begin(), "fmapi");
        words.insert(words.end(), {"--switch", switch_.unix_socket()});
        return memtide("", words);
    }
    emul::test::TestSwitch switch_;
};

std::string complaint(const process::Output& output) {
    EXPECT_EQ(output.exit.code, 2);
    EXPECT_EQ(output.standard_output, "");
    return output.standard_error.substr(0, output.standard_error.find('\n'));
}

TEST_F(Fmapi, AsksTheSwitchItsDevicesAndTheirLds) {
    const auto identified = fmapi({"identify-switch-device"});
    EXPECT_EQ(identified.exit.code, 0) << identified.standard_error;
    EXPECT_THAT(identified.standard_output, StartsWith("Identify Switch Device: Success (0000h)\n"));
    EXPECT_THAT(identified.standard_output, HasSubstr("physical_ports  5\n"));
    EXPECT_THAT(fmapi({"--port", "2", "get-ld-allocations"}).standard_output,
                HasSubstr("granularity  256MiB\n"));
    EXPECT_THAT(fmapi({"--port", "2", "--ld", "0", "identify", "--json"}).standard_output,
                HasSubstr(R"("serial":5572078643259113473)"));
}

TEST_F(Fmapi, BindsAndWaitsForTheEnd) {
    const Words bind{"bind-vppb", "vcs=0", "vppb=0x1", "port=2", "ld=0", "--wait"};
    const auto bound = fmapi(bind);
    EXPECT_EQ(bound.exit.code, 0) << bound.standard_error;
    EXPECT_EQ(bound.standard_output,
              "Bind vPPB: Background Command Started (0001h)\nBind vPPB: Success (0000h)\n");
    const auto again = fmapi(bind);
    EXPECT_EQ(again.exit.code, 1) << "a return code other than success";
    EXPECT_EQ(again.standard_output, "Bind vPPB: Invalid Input (0002h)\n");
    EXPECT_THAT(fmapi({"get-virtual-cxl-switch-info", "vcss=0"}).standard_output,
                HasSubstr("bound-ld     2    0\n"));
}

TEST_F(Fmapi, SendsWhateverIsToBeSent) {
    const auto vendor = fmapi({"raw", "c001", "01", "02ff", "--hex"});
    EXPECT_EQ(vendor.exit.code, 1);
    EXPECT_THAT(vendor.standard_output, HasSubstr("Unsupported (0003h)"));
    EXPECT_THAT(vendor.standard_output, HasSubstr("0001c0030000000000000102ff\n"));
    EXPECT_EQ(complaint(fmapi({"raw", "c001", "1"})),
              "memtide: \"1 \" is not a byte of two hexadecimal digits");
    EXPECT_THAT(complaint(fmapi({"raw", "bind"})), HasSubstr("\"bind\" is not an opcode"));
}

TEST_F(Fmapi, WrongWordsAreNamedBeforeAnythingIsSent) {
    EXPECT_EQ(complaint(fmapi({"bind-vpb"})),
              "memtide: unknown command \"bind-vpb\"; did you mean \"bind-vppb\"?");
    EXPECT_EQ(complaint(fmapi({"bind-vppb", "vcz=3"})),
              "memtide: $.vcz: is not known; did you mean \"vcs\"?");
    EXPECT_THAT(complaint(fmapi({"bind-vppb", "vcs=300"})), StartsWith("memtide: $.vcs: must be"));
    EXPECT_EQ(complaint(fmapi({"bind-vppb", "vcs"})), "memtide: \"vcs\" is not FIELD=VALUE");
    EXPECT_EQ(complaint(fmapi({"bind-vppb", "vcs=1", "vcs=2"})), "memtide: \"vcs\" is given twice");
    EXPECT_EQ(complaint(memtide("", {"fmapi", "identify"})),
              "memtide: which switch? --switch or MEMTIDE_SWITCH says where it is");
}

TEST_F(Fmapi, NoAnswerIsAFailureThatSaysSo) {
    const auto output = memtide("", {"fmapi", "-s", "unix:///nowhere/switch.sock", "identify"});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_THAT(output.standard_error, HasSubstr("/nowhere/switch.sock"));
    const auto json = memtide("", {"--json", "fmapi", "-s", "unix:///nowhere/switch.sock", "identify"});
    EXPECT_EQ(json.exit.code, 1);
    const auto problem = boost::json::parse(json.standard_output);
    EXPECT_EQ(problem.at("code"), "unavailable");
    EXPECT_THAT(std::string(problem.at("detail").as_string()), HasSubstr("/nowhere/switch.sock"));
}

TEST_F(Fmapi, FilesMustHaveAName) {
    EXPECT_EQ(complaint(fmapi({"identify", "--pcap", ""})), "memtide: identify: --pcap: must not be empty");
    EXPECT_EQ(complaint(fmapi({"identify", "--record", ""})),
              "memtide: identify: --record: must not be empty");
}

TEST_F(Fmapi, HelpTellsOfEveryFieldAndItsValues) {
    const auto help = memtide("", {"fmapi", "unbind-vppb", "--help"});
    EXPECT_EQ(help.exit.code, 0);
    EXPECT_THAT(help.standard_output, HasSubstr("option  1 byte: wait, managed, surprise"));
    EXPECT_EQ(memtide("", {"help", "fmapi", "unbind-vppb"}).standard_output, help.standard_output);
    EXPECT_THAT(memtide("", {"fmapi", "list"}).standard_output, HasSubstr("5201    bind-vppb "));
}

TEST_F(Fmapi, RecordsAndReplaysSayingWhatIsAnsweredOtherwise) {
    const std::string file = switch_.folder() + "/session.jsonl";
    fmapi({"--record", file, "identify"});
    fmapi({"--record", file, "--port", "2", "get-ld-info"});
    EXPECT_EQ(fmapi({"replay", file}).standard_output, "2 commands, 0 answered otherwise than recorded\n");
    fmapi({"--record", file, "get-virtual-cxl-switch-info", "vcss=0"});
    fmapi({"bind-vppb", "port=2", "ld=0", "--wait"});
    const auto output = fmapi({"replay", file});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_THAT(output.standard_output,
                StartsWith("3: Get Virtual CXL Switch Info to switch\n  was  Success"));
    std::ofstream(file, std::ios::app) << "{\"request_hex\":\"00\"}\n";
    EXPECT_THAT(fmapi({"replay", file}).standard_error, HasSubstr(file + ":4: "));
}

TEST_F(Fmapi, DecodesCapturesAndText) {
    const std::string file = switch_.folder() + "/session.pcap";
    const auto request = fmapi::make_request(fmapi::Opcode::kUnbindVppb, 4, *parse_hex("010202"));
    const auto response = fmapi::make_response(request, fmapi::ReturnCode::kBusy);
    auto writer = fmapi::PcapWriter::open(file);
    ASSERT_TRUE(writer);
    const auto write = [&](fmapi::Sender sender, const fmapi::Message& message) {
        ASSERT_TRUE(writer->write(1, sender, fmapi::to_packets({.route = {}, .message = message})));
    };
    write(fmapi::Sender::kManager, request);
    write(fmapi::Sender::kSwitch, response);
    const auto output = memtide("", {"fmapi", "decode", file});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    EXPECT_THAT(
        output.standard_output,
        HasSubstr("10.0.0.1:40000 > 10.0.0.2:2650 request Unbind vPPB (5202h) tag 4\n    vcs     1\n"));
    EXPECT_THAT(output.standard_output, HasSubstr("response Unbind vPPB (5202h) tag 4: Busy (0006h)\n"));
    const auto json = memtide("", {"fmapi", "decode", file, "--json"});
    EXPECT_THAT(json.standard_output, HasSubstr(R"("answers":1)"));

    const std::string text = switch_.folder() + "/hex.txt";
    std::ofstream(text) << "# a request\n" << to_hex(encode_message(request)) << "\n";
    EXPECT_THAT(memtide("", {"fmapi", "decode", "--text", text}).standard_output,
                StartsWith("1 request Unbind vPPB (5202h) tag 4\n"));
    EXPECT_EQ(memtide("", {"fmapi", "decode", text}).exit.code, 1) << "no pcap";
}

TEST_F(Fmapi, CapturesItsSessionsBehindEachOther) {
    const std::string file = switch_.folder() + "/session.pcap";
    EXPECT_EQ(fmapi({"--pcap", file, "identify"}).exit.code, 0);
    EXPECT_EQ(fmapi({"--pcap", file, "--dialect", "spec", "--port", "2", "get-ld-info"}).exit.code, 0);
    const auto output = memtide("", {"fmapi", "decode", file});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    EXPECT_THAT(output.standard_output, HasSubstr("request Identify (0001h)"));
    EXPECT_THAT(output.standard_output, HasSubstr("response Tunnel Management Command (5300h)"));
    EXPECT_THAT(output.standard_output, HasSubstr("ld_count"));
    const auto told = memtide("", {"fmapi", "decode", "--dialect", "framed", file});
    EXPECT_EQ(told.exit.code, 1) << "it is not";
    EXPECT_THAT(told.standard_output, HasSubstr("stream of frames: "));

    const auto nowhere = fmapi({"--pcap", "/nowhere/x.pcap", "identify"});
    EXPECT_EQ(nowhere.exit.code, 1);
    EXPECT_THAT(nowhere.standard_error, HasSubstr("--pcap: write to /nowhere/x.pcap: "));
    std::ofstream(file) << "something else";
    EXPECT_THAT(complaint(fmapi({"--pcap", file, "identify"})), HasSubstr("something else than a capture"));
}

TEST_F(Fmapi, ControlMessagesOfMctpAreShownAsWhatTheyAre) {
    const std::string file = switch_.folder() + "/control.pcap";
    auto writer = fmapi::PcapWriter::open(file);
    ASSERT_TRUE(writer);
    fmapi::MctpMessage control;
    control.type = fmapi::MctpType::kControl;
    control.message.payload = fmapi::set_endpoint_id_request(0, 9);
    ASSERT_TRUE(writer->write(1, fmapi::Sender::kManager, fmapi::to_packets(control)));
    EXPECT_THAT(memtide("", {"fmapi", "decode", file}).standard_output, HasSubstr(" MCTP control 80010009"));
}

std::string fields(const Words& words) {
    const auto object = fields_of_words(words);
    return object ? json::write(*object) : object.error().message;
}

TEST(Fields, AreTextsListsAndStructures) {
    EXPECT_EQ(fields({"a=1", "c=256MiB", "d=surprise", "e=1,0x2", "f.g=3", "f.h=4"}),
              R"({"a":"1","c":"256MiB","d":"surprise","e":["1","0x2"],"f":{"g":"3","h":"4"}})");
    EXPECT_EQ(fields({R"(extents=[{"dpa":0}])"}), R"({"extents":[{"dpa":0}]})");
    EXPECT_EQ(fields({"a=1", "a.b=2"}), "\"a.b\" is given twice");
    EXPECT_EQ(fields({"=1"}), "\"=1\" is not FIELD=VALUE");
    EXPECT_THAT(fields({"a=[1"}), HasSubstr("\"a=[1\": line 1"));
}

}  // namespace
}  // namespace memtide::cli
