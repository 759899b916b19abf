// The client and the emulated switch in every dialect, found out and configured.
#include "common/fmapi/dialect.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/fmapi/capture/capture.h"
#include "common/fmapi/capture/session_capture.h"
#include "cxl-emul/switch/switch.h"
#include "fabric-manager/fmapi/client.h"
#include "tests/fabric-manager/fmapi/peer.h"

namespace memtide::fm {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using namespace std::chrono_literals;
using testing::HasSubstr;

std::string speaking(const std::string& folder, std::string_view dialect, std::string_view place) {
    return fmt::format(R"(name: test
switches:
  - name: switch0
    serial: 0x5357
    {2}
    dialect: {1}
    media: {0}
    ports: [{{id: 0, host: host0}}, {{id: 2, device: mld0}}]
    vcss: [{{id: 0, upstream_port: 0, vppbs: 4}}]
    devices:
      - {{name: mld0, kind: mld, serial: 0x4d54000100000000, size: 1GiB, lds: [256MiB, 256MiB, 0, 0]}}
)",
                       folder, dialect, place);
}

class Speaking : public testing::Test {
  protected:
    ~Speaking() override {
        client_.reset();
        if (switch_) switch_->stop();
        switch_.reset();
        io_.restart();
        io_.run_for(10s);
        std::filesystem::remove_all(folder_);
    }
    void start_switch(std::string_view dialect, const std::string& place) {
        if (!std::filesystem::exists(folder_) && ::mkdtemp(folder_.data()) == nullptr)
            throw std::runtime_error("mkdtemp");
        topology_ = emul::parse_topology(speaking(folder_, dialect, place), "test.yaml").value();
        switch_ = emul::Switch::open(io_.get_executor(), topology_, topology_.switches[0], emul::no_hotplug())
                      .value();
        if (!switch_pcap_.empty())
            switch_->capture(fmapi::SessionCapture::open(switch_pcap_).value()->of_switch("switch0"));
        switch_->start();
    }
    void stop_switch() {
        switch_->stop();
        switch_.reset();
        io_.restart();
        io_.run_for(200ms);
    }
    void start_listening_switch(std::string_view dialect) {
        start_switch(dialect, R"(listen: ["tcp://127.0.0.1:0"])");
    }
    ClientOptions patient() {
        ClientOptions options;
        if (!switch_->addresses().empty()) options.address = switch_->addresses().at(0);
        options.connect_timeout = options.command_timeout = 30s;
        return options;
    }
    void connect(ClientOptions options) {
        client_ = make_fm_api_client(io_.get_executor(), std::move(options)).value();
    }
    template <typename Make>
    auto result_of(Make make) {
        using R = typename decltype(make())::value_type;
        R result = fail(ErrorCode::kInternal, "did not end");
        test::run(io_, [&]() -> awaitable<void> { result = co_await make(); });
        return result;
    }
    // All that is different somewhere: identities, a tunnel in a tunnel, what is not known, a background
    // operation.
    void expect_works() {
        const auto identity = result_of([&] { return client_->identify(Target::the_switch()); });
        ASSERT_TRUE(identity) << identity.error().message;
        EXPECT_EQ(identity->serial, 0x5357U);
        const auto about = result_of([&] { return client_->identify_switch(); });
        ASSERT_TRUE(about) << about.error().message;
        EXPECT_EQ(about->vcss, 1);
        const auto ld = result_of([&] { return client_->identify(Target::logical_device(2, 1)); });
        ASSERT_TRUE(ld) << ld.error().message;
        EXPECT_EQ(ld->serial, 0x4d54000100000002U);
        const auto heads = result_of([&] { return client_->multi_headed_info(2); });
        ASSERT_FALSE(heads);
        EXPECT_EQ(heads.error().code, ErrorCode::kInvalidArgument) << heads.error().message;
        const auto bound =
            result_of([&] { return client_->bind({.vcs = 0, .vppb = 1, .port = 2, .ld = 1}); });
        ASSERT_TRUE(bound) << bound.error().message;
        EXPECT_EQ(*bound, Completion::kInBackground);
        const auto over = result_of([&] {
            return wait_for_background(*client_, Target::the_switch(), fmapi::Opcode::kBindVppb,
                                       std::chrono::steady_clock::now() + 30s);
        });
        EXPECT_TRUE(over) << over.error().message;
        const auto vcss = result_of([&] { return client_->virtual_switches({0}); });
        ASSERT_TRUE(vcss) << vcss.error().message;
        EXPECT_EQ((*vcss)[0].vppbs[1].binding, fmapi::VppbBinding::kBoundLd);
        EXPECT_EQ(client_->connections(), 1U);
    }

    std::string folder_ = (std::filesystem::temp_directory_path() / "memtide-dialect.XXXXXX").string();
    std::string switch_pcap_;  // what the switch captures; empty: nothing
    emul::Topology topology_;
    asio::io_context io_;
    std::unique_ptr<emul::Switch> switch_;
    std::unique_ptr<FmApiClient> client_;
};

class InEveryDialect : public Speaking, public testing::WithParamInterface<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(, InEveryDialect, testing::ValuesIn([] {
                             std::vector<std::string_view> names;
                             for (const fmapi::Dialect& one : fmapi::dialects()) names.push_back(one.name);
                             return names;
                         }()),
                         [](const auto& info) {
                             std::string name(info.param);
                             std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                             return name;
                         });

TEST_P(InEveryDialect, AConfiguredClientWorks) {
    start_listening_switch(GetParam());
    ClientOptions options = patient();
    options.dialect = GetParam();
    connect(std::move(options));
    expect_works();
    EXPECT_EQ(client_->dialect().name, GetParam());
    EXPECT_FALSE(client_->dialect().detected);
}

// Who said what, and what was an answer to what.
std::vector<std::tuple<std::string, fmapi::Message, std::optional<std::size_t>>> said_in(
    const std::string& pcap) {
    const auto capture = fmapi::read_capture_file(pcap);
    EXPECT_TRUE(capture) << capture.error().message;
    std::vector<std::tuple<std::string, fmapi::Message, std::optional<std::size_t>>> said;
    if (!capture) return said;
    EXPECT_EQ(capture->missing_bytes, 0U);
    for (const fmapi::CapturedMessage& one : capture->messages) {
        EXPECT_TRUE(one.message) << one.error;
        if (one.message) said.emplace_back(one.source, *one.message, one.answers);
    }
    return said;
}

TEST_P(InEveryDialect, BothEndsCaptureTheSameAndItIsReadWithoutBeingToldHow) {
    char folder[] = "/tmp/memtide-captures.XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    switch_pcap_ = fmt::format("{}/switch.pcap", folder);
    const std::string client_pcap = fmt::format("{}/client.pcap", folder);
    start_listening_switch(GetParam());
    ClientOptions options = patient();
    options.dialect = GetParam();
    options.capture = fmapi::SessionCapture::open(client_pcap).value()->of_switch("switch0");
    connect(std::move(options));
    expect_works();
    const auto by_client = said_in(client_pcap);
    EXPECT_EQ(by_client, said_in(switch_pcap_));
    std::set<fmapi::Opcode> asked;
    std::size_t answers = 0;
    for (const auto& [who, message, answers_to] : by_client) {
        EXPECT_THAT(who, testing::AnyOf("10.0.0.1:40000", "10.0.0.2:2650"));
        if (!message.is_response) asked.insert(message.opcode);
        if (answers_to) ++answers;
    }
    for (const auto opcode :
         {fmapi::Opcode::kIdentify, fmapi::Opcode::kIdentifySwitchDevice,
          fmapi::Opcode::kTunnelManagementCommand, fmapi::Opcode::kBindVppb,
          fmapi::Opcode::kBackgroundOperationStatus, fmapi::Opcode::kGetVirtualSwitchInfo})
        EXPECT_TRUE(asked.contains(opcode)) << fmapi::to_string(opcode);
    EXPECT_GE(answers, asked.size());
    std::filesystem::remove_all(folder);
}

TEST_P(InEveryDialect, AClientThatIsNotToldFindsOut) {
    const fmapi::Dialect& dialect = *fmapi::find_dialect(GetParam());
    start_listening_switch(GetParam());
    ClientOptions options = patient();
    options.dialect = kDetectDialect;
    options.command_timeout = dialect.wire.framing == fmapi::Framing::kFixedPackets ? 30s : 1s;
    options.assign_endpoint = dialect.needs_endpoint_id;
    if (dialect.silent_about_unknown) options.dialect = "silent";  // silence cannot be heard at once
    connect(std::move(options));
    expect_works();
    const fmapi::Dialect& seen =
        fmapi::recognise_dialect(dialect.wire, dialect.opcode_zero_in_responses, dialect.identify_length);
    if (!dialect.silent_about_unknown) {
        EXPECT_EQ(client_->dialect().name, seen.name);
        EXPECT_TRUE(client_->dialect().detected);
    }
}

TEST_F(Speaking, ASwitchThatChangesItsDialectIsFoundOutAgain) {
    start_switch("high-nibble",
                 R"(listen: ["unix:///tmp/memtide-dialect-)" + std::to_string(::getpid()) + R"(.sock"])");
    ClientOptions options = patient();
    options.dialect = kDetectDialect;
    options.command_timeout = 1s;
    connect(std::move(options));
    EXPECT_TRUE(result_of([&] { return client_->identify_switch(); }));
    EXPECT_EQ(client_->dialect().name, "high-nibble");
    stop_switch();
    start_switch("spec",
                 R"(listen: ["unix:///tmp/memtide-dialect-)" + std::to_string(::getpid()) + R"(.sock"])");
    const auto again = result_of([&] { return client_->identify_switch(); });
    EXPECT_TRUE(again) << again.error().message;
    EXPECT_EQ(client_->dialect().name, "spec");
}

TEST_F(Speaking, ASwitchMayConnectAndAgainAfterItWasRestarted) {
    // A port that was free a moment ago.
    asio::ip::tcp::acceptor probe(io_, {asio::ip::address_v4::loopback(), 0});
    const auto port = probe.local_endpoint().port();
    probe.close();
    ClientOptions options;
    options.address = fmt::format("tcp://127.0.0.1:{}", port);
    options.listen = parse_switch_listener(options.address, {}).value();
    options.connect_timeout = options.command_timeout = 30s;
    options.dialect = "framed";
    connect(std::move(options));
    const std::string place = fmt::format(R"(connect: ["tcp://127.0.0.1:{}"])", port);
    start_switch("framed", place);
    expect_works();
    stop_switch();
    start_switch("framed", place);
    const auto again = result_of([&] { return client_->identify_switch(); });
    EXPECT_TRUE(again) << again.error().message;
    EXPECT_EQ(client_->connections(), 2U);
}

TEST_F(Speaking, OneClientAtATimeLeavesTheNextOneWaiting) {
    start_listening_switch("silent");
    ClientOptions options = patient();
    options.dialect = "silent";
    connect(options);
    EXPECT_TRUE(result_of([&] { return client_->identify_switch(); }));
    options.command_timeout = 200ms;
    auto second = make_fm_api_client(io_.get_executor(), options).value();
    EXPECT_EQ(result_of([&] { return second->identify_switch(); }).error().code, ErrorCode::kTimeout);
    client_->close();
    second.reset();
    connect(patient());
    EXPECT_TRUE(result_of([&] { return client_->identify_switch(); }));
}

TEST_F(Speaking, ManyCommandsAreInFlightWhereTheSwitchTakesThem) {
    start_listening_switch("pipelined");
    ClientOptions options = patient();
    options.dialect = "pipelined";
    connect(std::move(options));
    EXPECT_EQ(client_->dialect().in_flight, 16U);
    int good = 0;
    int ended = 0;
    for (int i = 0; i < 200; ++i)
        asio::co_spawn(
            io_,
            [&, i]() -> awaitable<void> {
                const auto ld = static_cast<std::uint8_t>(i % 2);
                const auto answer = co_await client_->identify(Target::logical_device(2, ld));
                good += answer && answer->serial == 0x4d54000100000001U + ld ? 1 : 0;
                ++ended;
            },
            asio::detached);
    test::run(io_, [&]() -> awaitable<void> {
        asio::steady_timer timer(io_);
        while (ended < 200) {
            timer.expires_after(1ms);
            co_await timer.async_wait(asio::use_awaitable);
        }
    });
    EXPECT_EQ(good, 200);
}

TEST(DialectOfASwitch, ThatAnswersNothingIsNotFoundOutInBoundedTime) {
    asio::io_context io;
    test::Peer peer(io);
    peer.handle([](test::PeerConnection&, fmapi::MctpMessage) -> awaitable<void> { co_return; });
    ClientOptions options = test::impatient(peer);
    options.dialect = kDetectDialect;
    const auto client = make_fm_api_client(io.get_executor(), options).value();
    Result<fmapi::IdentifyResponse> answer = fail(ErrorCode::kInternal, "did not end");
    test::run(io, [&]() -> awaitable<void> { answer = co_await client->identify(Target::the_switch()); });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(answer.error().message, HasSubstr("finding out its dialect"));
    EXPECT_EQ(peer.connections, 4);
    EXPECT_EQ(client->connections(), 0U);
}

}  // namespace
}  // namespace memtide::fm
