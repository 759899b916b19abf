#include "cxl-emul/switch/endpoint.h"

#include <string>

#include <gtest/gtest.h>

namespace memtide::emul {
namespace {

TEST(Endpoint, IsWrittenAsItWasRead) {
    for (const std::string text :
         {"tcp://127.0.0.1:2650", "tcp://[::1]:0", "unix:///run/memtide/switch0.sock"}) {
        const auto endpoint = parse_endpoint(text);
        ASSERT_TRUE(endpoint) << endpoint.error().message;
        EXPECT_EQ(format_endpoint(*endpoint), text);
    }
}

TEST(Endpoint, WhatIsNoneIsRefused) {
    for (const std::string text :
         {"", "127.0.0.1:2650", "tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://127.0.0.1:65536",
          "tcp://127.0.0.1:-1", "tcp://127.0.0.1:2x", "tcp://:2650", "tcp://localhost:2650",
          "tcp://10.0.0.1:2650", "unix://", "unix://relative", "unix:///folder/", "http://127.0.0.1:2650"})
        EXPECT_FALSE(parse_endpoint(text)) << text;
}

TEST(Endpoint, UnixPathMustFitASocketAddress) {
    EXPECT_TRUE(parse_endpoint("unix:///" + std::string(106, 'x')));
    EXPECT_FALSE(parse_endpoint("unix:///" + std::string(107, 'x')));
}

}  // namespace
}  // namespace memtide::emul
