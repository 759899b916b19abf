// Commands and payloads as people type and read them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/fmapi/text/command_text.h"
#include "common/fmapi/text/payload_json.h"
#include "common/json/write.h"
#include "tests/common/fmapi/hex.h"
#include "tests/common/fmapi/samples.h"

namespace memtide::fmapi {
namespace {

using test::bytes;
using test::hex;
using testing::HasSubstr;

const CommandText& command(std::string_view word) {
    const CommandText* const found = find_command(word);
    EXPECT_NE(found, nullptr) << word;
    return *found;
}

std::string encoded(std::string_view word, const boost::json::object& fields) {
    const auto payload = command(word).encode_request(fields);
    return payload ? hex(*payload) : payload.error().message;
}

TEST(PayloadJson, EveryPayloadReadsBackAsItWasWritten) {
    std::apply(
        [](const auto&... sample) {
            const auto check = []<typename T>(const T& value) {
                // An opcode and a return code are there to be read, not to be typed.
                if constexpr (!std::same_as<T, BackgroundOperationStatusResponse>) {
                    const boost::json::value text(to_json(value));
                    const json::Reader reader(text);
                    const T again = from_json<T>(reader.root().object());
                    EXPECT_TRUE(reader.check(json::Reader::Unknown::kRefused)) << T::kName;
                    EXPECT_EQ(encode(again), encode(value)) << T::kName << json::write(text);
                }
            };
            (check(sample), ...);
        },
        test::all_samples());
}

TEST(PayloadJson, NamesValuesAndWritesBytesInHexadecimal) {
    EXPECT_EQ(json::write(to_json(UnbindVppbRequest{1, 2, UnbindOption::kSurpriseHotRemove})),
              R"({"vcs":1,"vppb":2,"option":"surprise"})");
    EXPECT_EQ(json::write(to_json(DcReferenceRequest{test::kSomeTag})),
              R"({"tag":"100f0e0d0c0b0a090807060504030201"})");
    EXPECT_EQ(json::write(to_json(UnbindVppbRequest{1, 2, static_cast<UnbindOption>(9)})),
              R"({"vcs":1,"vppb":2,"option":9})");
}

TEST(CommandText, AreFoundByWordNameAndOpcode) {
    for (const char* const text : {"bind-vppb", "Bind vPPB", "5201", "0x5201", "5201h", "BIND-VPPB"})
        EXPECT_EQ(command(text).opcode, Opcode::kBindVppb) << text;
    EXPECT_EQ(find_command("bind"), nullptr);
    EXPECT_EQ(find_command("c001"), nullptr);
    EXPECT_EQ(command_texts().size(), opcodes().size());
}

TEST(CommandText, RequestsAreMadeOfNamedFields) {
    EXPECT_EQ(encoded("bind-vppb", {{"vcs", 1}, {"vppb", 2}, {"port", 3}, {"ld", 4}}), "01 02 03 00 04 00");
    EXPECT_EQ(encoded("unbind-vppb", {{"vcs", 1}, {"option", "surprise"}}), "01 00 02");
    EXPECT_EQ(encoded("get-physical-port-state", {{"ports", {0, 7}}}), "02 00 07");
}

TEST(CommandText, MistakesAreNamedAllAtOnce) {
    const auto text = encoded("unbind-vppb", {{"vcs", 256}, {"option", "now"}, {"vpb", 1}});
    EXPECT_THAT(text, HasSubstr("$.vcs"));
    EXPECT_THAT(text, HasSubstr("$.option: must be a number, or one of wait, managed, surprise"));
    EXPECT_THAT(text, HasSubstr("did you mean \"vppb\"?"));
}

TEST(MessageJson, TellsOfHeaderPayloadAndWhatCameBehindIt) {
    Message request = make_request(Opcode::kUnbindVppb, 7, bytes("01 02 02 ee"));
    EXPECT_EQ(json::write(to_json(request)),
              R"({"kind":"request","tag":7,"opcode":"5202","command":"Unbind vPPB",)"
              R"("payload":{"vcs":1,"vppb":2,"option":"surprise","trailing":"ee"}})");
    request.payload.resize(1);
    EXPECT_THAT(json::write(to_json(request)), HasSubstr("\\\"vppb\\\" needs bytes 1 to 1"));
}

TEST(MessageJson, OpensTunnelsAndReadsAnswersByWhatWasAsked) {
    const Message inner = make_request(Opcode::kGetLdInfo, 3);
    const Message request =
        make_request(Opcode::kTunnelManagementCommand, 9,
                     encode(TunnelRequest{2, TunnelTarget::kPort, MctpType::kFmApi, encode_message(inner)}));
    const Message inner_response =
        make_response(inner, ReturnCode::kSuccess, encode(GetLdInfoResponse{1024, 4, 0}));
    Message response =
        make_response(request, ReturnCode::kSuccess,
                      encode(TunnelResponse{MctpType::kFmApi, encode_message(inner_response)}));
    response.opcode = Opcode{};  // as some peers answer
    const auto text = json::write(to_json(response, &request));
    EXPECT_THAT(text, HasSubstr(R"("opcode":"0000","command":"Tunnel Management Command")"));
    EXPECT_THAT(text, HasSubstr(R"("command":"Get LD Info")"));
    EXPECT_THAT(text, HasSubstr(R"("memory_size":1024)"));
}

// A message has room for thousands of tunnels in each other: more than a stack has for their JSON.
TEST(MessageJson, LeavesTunnelsInTunnelsWithoutEndClosed) {
    Message message = make_request(Opcode::kGetLdInfo, 0);
    for (int i = 0; i < 3'800; ++i)
        message = make_request(
            Opcode::kTunnelManagementCommand, 0,
            encode(TunnelRequest{2, TunnelTarget::kPort, MctpType::kFmApi, encode_message(message)}));
    const boost::json::object told = to_json(message);
    const boost::json::object* payload = &told.at("payload").as_object();
    int opened = 0;
    for (; payload->contains("message"); ++opened)
        payload = &payload->at("message").as_object().at("payload").as_object();
    EXPECT_EQ(opened, 4);
    EXPECT_TRUE(payload->at("command").is_string());
}

}  // namespace
}  // namespace memtide::fmapi
