#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/tiering-agent/hotplug/fake_kernel.h"
#include "tiering-agent/hotplug/reconciler.h"

namespace memtide::agent {

inline constexpr SerialNumber kSerial{0x4d54000100000001};
inline constexpr SerialNumber kForeignSerial{0x99};
inline const RegionId kId{CompositionId{"c-1"}, 0};

class RecordingMover final : public PageMover {
  public:
    std::size_t move(int, const std::vector<std::uint64_t>& addresses, int) override {
        return addresses.size();
    }
};

// An agent on a fake kernel, with a clock of its own. crash() leaves what a kill -9 leaves: the kernel and
// the file.
class AgentOnFakeKernel : public testing::Test {
  protected:
    void SetUp() override { start(); }

    void start() {
        records_ = std::make_unique<RegionRecords>(*RegionRecords::open(state_.path(), "boot"));
        host_ = std::make_unique<SysfsHost>(
            HostParts{kernel_, kernel_, *records_, modules_, mover_, interruption_});
        reconciler_ = std::make_unique<Reconciler>(
            *host_, RetryTimes{}, [] { return false; }, [this](const Observed& o) { last_ = o; });
    }
    void crash() {
        reconciler_.reset();
        host_.reset();
        records_.reset();
        start();
    }

    static Desired wanting(Want want, SerialNumber serial = kSerial, Bytes size = mebibytes(256)) {
        return {.revision = 1, .regions = {{.id = kId, .serials = {serial}, .size = size, .want = want}}};
    }

    // Passes until there is nothing to do but wait; retries come after `rounds` of waiting at most.
    ObservedRegion run(const Desired& desired, int rounds = 20) {
        for (int guard = 0; guard < 500; ++guard) {
            auto pass = reconciler_->pass(desired, wall_, now_);
            EXPECT_TRUE(pass.has_value());
            if (pass->acted) continue;
            if (!pass->retry_at || rounds-- == 0) break;
            now_ = *pass->retry_at;
        }
        return last_.regions.empty() ? ObservedRegion{} : last_.regions.front();
    }
    [[nodiscard]] bool warned(std::string_view code) const {
        return std::ranges::find(last_.warnings, code, &Finding::code) != last_.warnings.end();
    }
    void expect_nothing_left() {
        EXPECT_TRUE(kernel_.regions.empty());
        EXPECT_TRUE(kernel_.blocks().empty());
        EXPECT_TRUE(records_->all().empty());
        for (const auto& [name, device] : kernel_.devices) EXPECT_EQ(device.reserved, 0U);
    }

    ScratchFolder root_;
    ScratchFolder state_;
    FakeKernel kernel_{root_.path()};
    FakeModules modules_{[this](const std::string& name) -> Result<> { return load_module(name); }};
    virtual Result<> load_module(const std::string&) { return {}; }
    RecordingMover mover_;
    Interruption interruption_;
    std::unique_ptr<RegionRecords> records_;
    std::unique_ptr<SysfsHost> host_;
    std::unique_ptr<Reconciler> reconciler_;
    Reconciler::Clock::time_point now_ = Reconciler::Clock::now();
    WallTime wall_ = std::chrono::system_clock::now();
    Observed last_;
};
}  // namespace memtide::agent
