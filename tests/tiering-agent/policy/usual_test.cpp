#include "tiering-agent/policy/usual.h"

#include <gtest/gtest.h>

namespace memtide::agent {
namespace {

TEST(Usual, ALoadThatStaysAsItIsSurprisesNobody) {
    Usual usual;
    for (int i = 0; i < 100; ++i)
        EXPECT_FALSE(usual.is_surprising(1'000 + (i * 7 % 11 - 5) * 20, 10)) << "at " << i;
}

TEST(Usual, MuchMoreIsASurpriseAndLessIsNone) {
    Usual usual;
    for (int i = 0; i < 10; ++i) usual.is_surprising(1'000, 10);
    EXPECT_FALSE(usual.is_surprising(100, 10));
    for (int i = 0; i < 20; ++i) usual.is_surprising(1'000, 10);
    EXPECT_TRUE(usual.is_surprising(3'000, 10));
}

TEST(Usual, WhatStaysBecomesUsual) {
    Usual usual;
    for (int i = 0; i < 10; ++i) usual.is_surprising(0, 10);
    EXPECT_TRUE(usual.is_surprising(5'000, 10));
    for (int i = 0; i < 20; ++i) usual.is_surprising(5'000, 10);
    EXPECT_FALSE(usual.is_surprising(5'000, 10));
}

TEST(Usual, LittleOrUnknownIsNoSurprise) {
    Usual usual;
    EXPECT_FALSE(usual.is_surprising(1'000'000, 10)) << "nothing is known yet";
    usual.forget();
    for (int i = 0; i < 10; ++i) usual.is_surprising(0, 10);
    EXPECT_FALSE(usual.is_surprising(9, 10)) << "so few do not matter";
    usual.forget();
    EXPECT_FALSE(usual.is_surprising(1'000'000, 10)) << "nothing is known any more";
}

}  // namespace
}  // namespace memtide::agent
