#include "fabric-manager/security/host_header.h"

#include <gtest/gtest.h>

namespace memtide::fm {
namespace {

TEST(HostHeader, LoopbackNamesAndAddressesAreThisMachine) {
    for (const char* header :
         {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:8080", "127.9.9.9:1", "[::1]", "[::1]:8080"})
        EXPECT_TRUE(names_this_machine(header, {})) << header;
}

TEST(HostHeader, WhatAWebPageWouldBringIsNot) {
    for (const char* header : {"", ":8080", "evil.example", "evil.example:8080", "127.0.0.1.evil.example",
                               "localhost.evil.example", "192.0.2.1", "[2001:db8::1]:80", "[::1", "[::1]x",
                               "0.0.0.0", "127.0.0.1, evil.example"})
        EXPECT_FALSE(names_this_machine(header, {})) << header;
}

TEST(HostHeader, ConfiguredNamesAreToo) {
    EXPECT_TRUE(names_this_machine("manager.rack:8080", {"manager.rack"}));
    EXPECT_FALSE(names_this_machine("manager.rack.evil", {"manager.rack"}));
}

}  // namespace
}  // namespace memtide::fm
