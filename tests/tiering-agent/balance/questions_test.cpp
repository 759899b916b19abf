#include "tiering-agent/balance/questions.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

using std::chrono::milliseconds;
using Sleep = Questions::Sleep;

TEST(Questions, AreAnsweredInOrderOnTheThreadThatSleeps) {
    Questions questions;
    std::stop_source stop;
    std::vector<int> answers;
    std::jthread sleeper(
        [&] { questions.answer_for(std::chrono::minutes(5), stop.get_token(), Sleep::kDeep); });
    std::atomic<int> answered{0};
    for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(questions.ask([&, i] {
            EXPECT_EQ(std::this_thread::get_id(), sleeper.get_id());
            answers.push_back(i);
            ++answered;
            answered.notify_all();
        }));
    for (int now = answered; now < 3; now = answered) answered.wait(now);
    stop.request_stop();
    sleeper.join();
    EXPECT_EQ(answers, (std::vector{0, 1, 2}));
}

TEST(Questions, WakeEndsALightSleepOrTheNextOne) {
    Questions questions;
    questions.wake();
    questions.answer_for(milliseconds(1), {}, Sleep::kDeep);
    questions.answer_for(std::chrono::minutes(5), {}, Sleep::kLight);  // returns at once
    std::jthread waker([&] { questions.wake(); });
    questions.answer_for(std::chrono::minutes(5), {}, Sleep::kLight);
}

TEST(Questions, TooManyAreRefused) {
    Questions questions;
    std::size_t answered = 0;
    for (std::size_t i = 0; i < Questions::kMostWaiting; ++i) EXPECT_TRUE(questions.ask([&] { ++answered; }));
    EXPECT_FALSE(questions.ask([&] { ++answered; }));
    questions.answer_waiting();
    EXPECT_EQ(answered, Questions::kMostWaiting);
    EXPECT_TRUE(questions.ask([] {}));
}

TEST(Questions, OneMayAskAnother) {
    Questions questions;
    bool answered = false;
    EXPECT_TRUE(questions.ask([&] { EXPECT_TRUE(questions.ask([&] { answered = true; })); }));
    questions.answer_waiting();
    EXPECT_TRUE(answered);
}

}  // namespace
}  // namespace memtide::agent
