#pragma once

#include <gtest/gtest.h>

#include "tests/cxl-emul/switch/manager.h"
#include "tests/cxl-emul/switch/test_switch.h"

namespace memtide::emul::test {

enum class Transport { kTcp, kUnix };

// A switch and a manager that is connected over the transport under test.
class OverBothTransports : public ::testing::TestWithParam<Transport> {
  protected:
    [[nodiscard]] const std::string& address() const {
        return GetParam() == Transport::kTcp ? switch_.tcp() : switch_.unix_socket();
    }
    TestSwitch switch_;
    Manager manager_{address()};
};

inline auto both_transports() { return ::testing::Values(Transport::kTcp, Transport::kUnix); }
inline std::string transport_name(const ::testing::TestParamInfo<Transport>& info) {
    return info.param == Transport::kTcp ? "Tcp" : "Unix";
}

constexpr std::uint8_t kMldPort = 2;
constexpr std::uint8_t kSldPort = 3;
constexpr std::uint8_t kEmptyPort = 4;
constexpr std::uint8_t kNoPort = 9;
constexpr std::uint16_t kWholePort = 0xffff;

}  // namespace memtide::emul::test
