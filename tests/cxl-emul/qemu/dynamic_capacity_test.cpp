#include "cxl-emul/qemu/dynamic_capacity.h"

#include <array>
#include <functional>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "common/process/child.h"
#include "tests/cxl-emul/qemu/fake_qemu.h"

// QEMU's own dynamic capacity device, in a machine that never runs: what QEMU itself makes of each request.
namespace memtide::emul {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

constexpr Bytes kPiece = mebibytes(128);
const std::string kTag = "5be5a2a0-0000-4000-8000-000000000001";

// A machine with a device of 1 GiB in two regions, stopped before its first instruction.
class PausedQemu : public testing::Test {
  protected:
    void SetUp() override {
        std::array<int, 2> fds{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
        process::Command command;
        command.argv = {"qemu-system-x86_64",
                        "-S",
                        "-nodefaults",
                        "-no-user-config",
                        "-display",
                        "none",
                        "-machine",
                        "q35,cxl=on,cxl-fmw.0.targets.0=cxl.0,cxl-fmw.0.size=4G",
                        "-accel",
                        "tcg",
                        "-m",
                        "64M",
                        "-object",
                        "memory-backend-ram,id=memory,size=1G,reserve=off",
                        "-device",
                        "pxb-cxl,bus_nr=12,bus=pcie.0,id=cxl.0",
                        "-device",
                        "cxl-rp,port=0,bus=cxl.0,id=rp0,chassis=0,slot=2",
                        "-device",
                        "cxl-type3,bus=rp0,volatile-dc-memdev=memory,num-dc-regions=2,id=dcd0,sn=0x77",
                        "-chardev",
                        fmt::format("socket,id=qmp,fd={}", fds[1]),
                        "-mon",
                        "chardev=qmp,mode=control"};
        command.pass_fds = {fds[1]};
        auto spawned = process::Child::spawn(command);
        ::close(fds[1]);
        if (!spawned) {
            ::close(fds[0]);
            GTEST_SKIP() << "no QEMU here: " << spawned.error().message;
        }
        qemu_.emplace(*std::move(spawned));
        client_.emplace(context_.get_executor(), fds[0]);
        run_to_end(context_, connect());
    }
    void TearDown() override {
        if (!client_) return;
        client_->close();
        context_.restart();
        context_.run();
    }

    // Empty when QEMU does it, else why not.
    std::string add(QemuDcAdd request) {
        request.device = "dcd0";
        return complaint([&] { return add_dynamic_capacity(*client_, request); });
    }
    std::string release(QemuDcRelease request) {
        request.device = "dcd0";
        return complaint([&] { return release_dynamic_capacity(*client_, request); });
    }

  private:
    asio::awaitable<void> connect() {
        const auto greeted = co_await client_->handshake();
        EXPECT_TRUE(greeted);
    }
    std::string complaint(const std::function<asio::awaitable<Result<>>()>& request) {
        Result<> result;
        run_to_end(context_, keep(request(), result));
        return result ? "" : result.error().message;
    }
    static asio::awaitable<void> keep(asio::awaitable<Result<>> work, Result<>& result) {
        result = co_await std::move(work);
    }

    asio::io_context context_{1};
    std::optional<process::Child> qemu_;
    std::optional<QmpClient> client_;
};

TEST_F(PausedQemu, OffersExtentsThatStayPending) {
    EXPECT_EQ(add({.extents = {{Bytes(), kPiece}}}), "");
    EXPECT_THAT(add({.extents = {{Bytes(), kPiece}}}), HasSubstr("still pending"));
    EXPECT_EQ(add({.region = 1, .tag = kTag, .extents = {{Bytes(), kPiece}, {kPiece * 2, kPiece}}}), "");
}

TEST_F(PausedQemu, ChecksExtents) {
    EXPECT_THAT(add({.extents = {{Bytes(), Bytes{4096}}}}), HasSubstr("not aligned"));
    EXPECT_THAT(add({.extents = {{Bytes(), Bytes()}}}), HasSubstr("0 length"));
    EXPECT_THAT(add({.extents = {{Bytes(), gibibytes(1)}}}), HasSubstr("beyond the region end"));
    EXPECT_THAT(add({.region = 2, .extents = {{Bytes(), kPiece}}}), HasSubstr("too large"));
}

TEST_F(PausedQemu, KnowsPrescriptiveSelectionOnly) {
    for (const auto selection :
         {QemuDcSelection::kFree, QemuDcSelection::kContiguous, QemuDcSelection::kEnableSharedAccess})
        EXPECT_THAT(add({.selection = selection, .extents = {{Bytes(), kPiece}}}),
                    HasSubstr("Selection policy not supported"));
}

// Nothing can be released here: that takes a guest that has accepted it.
TEST_F(PausedQemu, ReleasesWhatAGuestHasOnly) {
    ASSERT_EQ(add({.extents = {{Bytes(), kPiece}}}), "");
    EXPECT_THAT(release({.extents = {{Bytes(), kPiece}}}), HasSubstr("pending DPA range"));
    EXPECT_THAT(release({.forced = true, .extents = {{Bytes(), kPiece}}}),
                HasSubstr("Forced removal not supported"));
    EXPECT_THAT(release({.removal = QemuDcRemoval::kTagBased, .tag = kTag, .extents = {}}),
                HasSubstr("Removal policy not supported"));
}

}  // namespace
}  // namespace memtide::emul
