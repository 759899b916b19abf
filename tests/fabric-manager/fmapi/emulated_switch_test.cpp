// The client and the emulated switch, which were written against the same specification by different rooms,
// agree.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cxl-emul/switch/switch.h"
#include "fabric-manager/fmapi/client.h"
#include "tests/fabric-manager/fmapi/peer.h"

namespace memtide::fm {
namespace {

using boost::asio::awaitable;
using fmapi::Opcode;
using fmapi::ReturnCode;
using testing::HasSubstr;

constexpr std::uint8_t kMldPort = 2;
constexpr std::uint8_t kSldPort = 3;

std::string topology_text(const std::string& folder) {
    return fmt::format(R"(name: test
switches:
  - name: switch0
    serial: 0x5357
    listen: ["tcp://127.0.0.1:0", "unix://{0}/switch0.sock"]
    media: {0}
    ports:
      - {{id: 0, host: host0}}
      - {{id: 1, host: host1}}
      - {{id: 2, device: mld0}}
      - {{id: 3, device: sld0}}
    vcss:
      - {{id: 0, upstream_port: 0, vppbs: 4}}
      - {{id: 1, upstream_port: 1, vppbs: 4}}
    devices:
      - {{name: mld0, kind: mld, serial: 0x4d54000100000000, size: 1GiB, granularity: 256MiB, lds: [256MiB, 256MiB, 0, 0]}}
      - {{name: sld0, kind: sld, serial: 0x50, size: 256MiB}}
)",
                       folder);
}

class EmulatedSwitch : public testing::TestWithParam<std::size_t> {  // which of the listeners
  protected:
    EmulatedSwitch() {
        if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("mkdtemp");
        topology_ = emul::parse_topology(topology_text(folder_), "test.yaml").value();
        switch_ = emul::Switch::open(io_.get_executor(), topology_, topology_.switches[0], emul::no_hotplug())
                      .value();
        switch_->start();
        ClientOptions options;
        options.address = switch_->addresses().at(GetParam());
        options.command_timeout = options.connect_timeout = std::chrono::seconds(30);
        client_ = make_fm_api_client(io_.get_executor(), options).value();
    }
    ~EmulatedSwitch() override {
        client_.reset();
        switch_->stop();
        io_.restart();
        io_.run_for(std::chrono::seconds(10));
        std::filesystem::remove_all(folder_);
    }

    template <typename Make>
    auto result_of(Make make) {
        using R = typename decltype(make())::value_type;
        R result = fail(ErrorCode::kInternal, "did not end");
        test::run(io_, [&]() -> awaitable<void> { result = co_await make(); });
        return result;
    }
    // Whether the operation that was begun ends well.
    Result<> finish(Result<Completion> begun, Target target, Opcode operation) {
        if (!begun) return std::unexpected(begun.error());
        if (*begun == Completion::kDone) return {};
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        return result_of([&] { return wait_for_background(*client_, target, operation, deadline); });
    }

    std::string folder_ = (std::filesystem::temp_directory_path() / "memtide-fmapi.XXXXXX").string();
    emul::Topology topology_;
    boost::asio::io_context io_;
    std::unique_ptr<emul::Switch> switch_;
    std::unique_ptr<FmApiClient> client_;
};
INSTANTIATE_TEST_SUITE_P(, EmulatedSwitch, testing::Values(0, 1),
                         [](const auto& info) { return info.param == 0 ? "Tcp" : "Unix"; });

TEST_P(EmulatedSwitch, IsInventoried) {
    const auto identity = result_of([&] { return client_->identify(Target::the_switch()); });
    ASSERT_TRUE(identity) << identity.error().message;
    EXPECT_EQ(identity->serial, 0x5357U);
    EXPECT_EQ(identity->component_type, fmapi::ComponentType::kSwitch);

    const auto device = result_of([&] { return client_->identify_switch(); });
    ASSERT_TRUE(device) << device.error().message;
    EXPECT_EQ(device->physical_ports, 4);
    EXPECT_TRUE(device->active_ports.test(3));
    EXPECT_EQ(device->total_vppbs, 8);

    const auto ports = result_of([&] { return client_->physical_ports({0, 2, 3, 77}); });
    ASSERT_TRUE(ports) << ports.error().message;
    EXPECT_EQ((*ports)[0].config_state, fmapi::PortConfigState::kUpstream);
    EXPECT_EQ((*ports)[1].device_type, fmapi::ConnectedDeviceType::kType3Mld);
    EXPECT_EQ((*ports)[1].supported_lds, 4);
    EXPECT_EQ((*ports)[2].device_type, fmapi::ConnectedDeviceType::kType3Sld);
    EXPECT_EQ((*ports)[3].config_state, fmapi::PortConfigState::kInvalidPort);

    const auto vcss = result_of([&] { return client_->virtual_switches({0, 1}); });
    ASSERT_TRUE(vcss) << vcss.error().message;
    EXPECT_EQ((*vcss)[1].upstream_port, 1);
    EXPECT_EQ((*vcss)[1].vppbs.size(), 4U);

    const auto header = result_of([&] { return client_->read_port_config(kMldPort, 0x08); });
    ASSERT_TRUE(header) << header.error().message;
    EXPECT_EQ(*header >> 8, 0x060400U);  // a PCI-to-PCI bridge
}

TEST_P(EmulatedSwitch, HasDevicesThatAnswerThroughTheTunnels) {
    const auto mld = result_of([&] { return client_->identify(Target::device(kMldPort)); });
    ASSERT_TRUE(mld) << mld.error().message;
    EXPECT_EQ(mld->serial, 0x4d54000100000000U);
    const auto ld = result_of([&] { return client_->identify(Target::logical_device(kMldPort, 1)); });
    ASSERT_TRUE(ld) << ld.error().message;
    EXPECT_EQ(ld->serial, 0x4d54000100000002U);
    const auto sld = result_of([&] { return client_->identify(Target::device(kSldPort)); });
    ASSERT_TRUE(sld) << sld.error().message;
    EXPECT_EQ(sld->serial, 0x50U);

    const auto info = result_of([&] { return client_->ld_info(kMldPort); });
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->memory_size, gibibytes(1).value);
    const auto memory = result_of([&] { return client_->identify_memory_device(Target::device(kSldPort)); });
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ(memory->total(), mebibytes(256));
    for (const Target target :
         {Target::device(kMldPort), Target::logical_device(kMldPort, 1), Target::device(kSldPort)}) {
        const auto health = result_of([&] { return client_->health_info(target); });
        ASSERT_TRUE(health) << health.error().message;
        EXPECT_EQ(health->media_status, fmapi::MediaStatus::kNormal);
        EXPECT_EQ(health->temperature, 35);
    }
}

TEST_P(EmulatedSwitch, CarvesLds) {
    const std::vector<fmapi::LdAllocation> wanted{{2, 0}};
    const auto set = result_of([&] { return client_->set_ld_allocations(kMldPort, 2, wanted); });
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(*set, wanted);
    const auto all = result_of([&] { return client_->ld_allocations(kMldPort); });
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->allocations.size(), 4U);
    EXPECT_EQ(all->allocations[2].range1, 2U);

    const std::vector<fmapi::LdAllocation> too_much{{1, 0}};
    const auto refused = result_of([&] { return client_->set_ld_allocations(kMldPort, 3, too_much); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
}

TEST_P(EmulatedSwitch, BindsAndUnbindsAnLdInTheBackground) {
    const fmapi::BindVppbRequest request{.vcs = 1, .vppb = 2, .port = kMldPort, .ld = 1};
    const auto bound =
        finish(result_of([&] { return client_->bind(request); }), Target::the_switch(), Opcode::kBindVppb);
    ASSERT_TRUE(bound) << bound.error().message;
    const auto vcs = result_of([&] { return client_->virtual_switches({1}); });
    EXPECT_EQ(vcs->at(0).vppbs[2], (fmapi::Vppb{fmapi::VppbBinding::kBoundLd, kMldPort, 1}));

    // What is bound is neither bound again nor erased.
    const fmapi::BindVppbRequest again{.vcs = 0, .vppb = 0, .port = kMldPort, .ld = 1};
    const auto refused =
        finish(result_of([&] { return client_->bind(again); }), Target::the_switch(), Opcode::kBindVppb);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(result_of([&] { return client_->sanitize(Target::logical_device(kMldPort, 1)); }));

    const fmapi::UnbindVppbRequest release{
        .vcs = 1, .vppb = 2, .option = fmapi::UnbindOption::kManagedHotRemove};
    const auto unbound = finish(result_of([&] { return client_->unbind(release); }), Target::the_switch(),
                                Opcode::kUnbindVppb);
    EXPECT_TRUE(unbound) << unbound.error().message;
}

TEST_P(EmulatedSwitch, ErasesAnLd) {
    const std::string media =
        topology_.media_file(topology_.switches[0], *topology_.switches[0].device(DeviceId("mld0")));
    const auto offset = static_cast<std::streamoff>(mebibytes(256).value + 12345);
    std::fstream file(media, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset).write("secret", 6).flush();
    const Target target = Target::logical_device(kMldPort, 1);
    const auto erased =
        finish(result_of([&] { return client_->sanitize(target); }), target, Opcode::kSanitize);
    ASSERT_TRUE(erased) << erased.error().message;
    std::string text(6, '?');
    file.seekg(offset).read(text.data(), 6);
    EXPECT_EQ(text, std::string(6, '\0'));
}

TEST_P(EmulatedSwitch, RefusesWithAnErrorThatNamesTheCommand) {
    const auto nobody = result_of([&] { return client_->identify(Target::device(0)); });
    ASSERT_FALSE(nobody);
    EXPECT_EQ(nobody.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(nobody.error().message, HasSubstr("Identify (0001h) to device at port 0"));
    EXPECT_FALSE(result_of([&] { return client_->sanitize(Target::logical_device(kMldPort, 3)); }));
    EXPECT_FALSE(result_of([&] { return client_->ld_info(kSldPort); }));
}

}  // namespace
}  // namespace memtide::fm
