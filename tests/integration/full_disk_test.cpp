// A disk that fills up under the journal: nothing is accepted that is not durable, and all goes on with room.
#include <sys/resource.h>

#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class FullDisk : public Fabric {
  protected:
    void SetUp() override { run_all({.bind_time = std::chrono::milliseconds(300)}); }
    // No write of the manager grows a file beyond this from now on; the kernel refuses as a full disk would.
    void limit_files(rlim_t bytes) {
        rlimit limit{};
        ASSERT_EQ(prlimit(manager_->pid(), RLIMIT_FSIZE, nullptr, &limit), 0);
        limit.rlim_cur = bytes;
        ASSERT_EQ(prlimit(manager_->pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
    }
    void fill() { limit_files(1); }
    void make_room() { limit_files(RLIM_INFINITY); }
};

TEST_F(FullDisk, RequestsAreRefusedAndAcceptedAgainWhenThereIsRoom) {
    fill();
    for (int i = 0; i < 3; ++i) {
        const RestAnswer refused = rest_.compose("host0", "256MiB");
        EXPECT_EQ(refused.status, 503U) << refused.body;
        EXPECT_EQ(refused.code(), "storage-full");
    }
    // Nothing is left of what was refused, and reading goes on.
    expect_all_free();
    EXPECT_TRUE(rest_.get("/v1/compositions").json.at("items").as_array().empty());
    make_room();
    const std::string id = compose("host0");
    expect_state(id, "Online");
    release(id);
    expect_state(id, "Released");
    expect_all_free();
}

TEST_F(FullDisk, AReleaseIsRefusedToo) {
    const std::string id = compose("host0");
    expect_state(id, "Online");
    fill();
    const RestAnswer refused = rest_.call("DELETE", "/v1/compositions/" + id);
    EXPECT_EQ(refused.status, 503U) << refused.body;
    EXPECT_EQ(state_of(id), "Online");
    make_room();
    release(id);
    expect_state(id, "Released");
}

TEST_F(FullDisk, ACompositionUnderWayWaitsForRoom) {
    const std::string id = compose("host0");
    EXPECT_TRUE(eventually([&] { return state_of(id) == "Binding"; }));
    fill();
    // Longer than the bind takes: it ends while nothing can be journaled.
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    EXPECT_EQ(rest_.get("/healthz").status, 200U);
    EXPECT_NE(state_of(id), "Online");
    make_room();
    expect_state(id, "Online");
    release(id);
    expect_state(id, "Released");
    expect_all_free();
}

TEST_F(FullDisk, WhatWasAcknowledgedBeforeSurvivesAKillWhileTheDiskIsFull) {
    const std::string id = compose("host0");
    expect_state(id, "Online");
    fill();
    EXPECT_EQ(rest_.compose("host1", "256MiB").status, 503U);
    manager_->kill();
    run_manager();
    EXPECT_EQ(state_of(id), "Online");
    release(id);
    expect_state(id, "Released");
}

}  // namespace
}  // namespace memtide::test
