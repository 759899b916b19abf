#include "cxl-emul/rack/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/rack/status_text.h"

namespace memtide::emul {
namespace {

namespace json = boost::json;

TEST(Messages, ErrorTravelsWithItsCode) {
    const auto back = read_reply(error_reply(3, {ErrorCode::kConflict, "in use"}));
    ASSERT_FALSE(back);
    EXPECT_EQ(back.error().code, ErrorCode::kConflict);
    EXPECT_EQ(back.error().message, "in use");
}

TEST(Messages, ErrorOfAnotherVersionIsStillAnError) {
    EXPECT_EQ(
        read_reply({FrameType::kReply, 1, R"({"error": {"code": "new-one", "message": "m"}})"}).error().code,
        ErrorCode::kInternal);
    EXPECT_EQ(read_reply({FrameType::kReply, 1, R"({"error": 7})"}).error().code, ErrorCode::kProtocol);
}

TEST(Messages, WhatIsNoObjectIsRefused) {
    for (const char* text : {"", "7", "[]", "{", "\xff"})
        EXPECT_EQ(parse_message({FrameType::kRequest, 1, text}).error().code, ErrorCode::kProtocol) << text;
}

TEST(Messages, ValuesOfAnotherTypeReadAsEmpty) {
    const json::object message{{"text", 7}, {"number", "x"}, {"negative", -1}, {"list", {"a", 1, "b"}}};
    EXPECT_EQ(text_of(message, "text"), "");
    EXPECT_EQ(number_of(message, "number"), 0U);
    EXPECT_EQ(number_of(message, "negative"), 0U);
    EXPECT_EQ(texts_of(message, "list"), (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(texts_of(message, "missing").empty());
}

TEST(StatusText, ShowsHostsAndWhatIsBound) {
    const json::object vppb{{"vcs", 0},         {"vppb", 1}, {"host", "host0"},  {"state", "bound"},
                            {"device", "mld0"}, {"ld", 2},   {"serial", "0x11"}, {"size", 268435456}};
    const json::object status{
        {"name", "demo"},
        {"pid", 12},
        {"run_folder", "/run/memtide/demo"},
        {"accelerator", "tcg"},
        {"accelerator_reason", "no /dev/kvm"},
        {"failure", ""},
        {"hosts", {json::object{{"name", "host0"}, {"state", "ready"}, {"pid", 13}, {"boot_seconds", 6.12}}}},
        {"switches",
         {json::object{{"name", "switch0"}, {"listen", {"tcp://127.0.0.1:2650"}}, {"vppbs", {vppb}}}}}};
    EXPECT_EQ(status_text(status),
              "rack demo (pid 12), /run/memtide/demo; without KVM (slower)\n"
              "\n"
              "HOST   STATE  PID  BOOT  KERNEL  AGENT  DETAIL\n"
              "host0  ready  13   6.1s  -       -\n"
              "\n"
              "SWITCH   LISTENS ON\n"
              "switch0  tcp://127.0.0.1:2650\n"
              "\n"
              "HOST   SWITCH   VCS  VPPB  STATE  DEVICE  SERIAL  SIZE\n"
              "host0  switch0  0    1     bound  mld0:2  0x11    256MiB\n");
}

TEST(StatusText, VerboseTellsWhyThereIsNoKvm) {
    const json::object status{{"accelerator", "tcg"}, {"accelerator_reason", "no /dev/kvm"}};
    EXPECT_THAT(status_text(status, true), testing::HasSubstr("without KVM (slower): no /dev/kvm\n"));
    EXPECT_THAT(status_text(status), testing::Not(testing::HasSubstr("/dev/kvm")));
}

TEST(StatusText, ListHasALineForEachRack) {
    const json::object rack{{"name", "demo"},
                            {"pid", 12},
                            {"topology", "/t/demo.yaml"},
                            {"run_folder", "/run/memtide/demo"},
                            {"hosts", {json::object{{"name", "host0"}, {"state", "ready"}}}}};
    EXPECT_EQ(list_text({rack}),
              "RACK  PID  HOSTS        TOPOLOGY      RUN FOLDER\n"
              "demo  12   host0 ready  /t/demo.yaml  /run/memtide/demo\n");
}

TEST(StatusText, EmptyStatusIsNoCrash) { EXPECT_NE(status_text({}), ""); }

}  // namespace
}  // namespace memtide::emul
