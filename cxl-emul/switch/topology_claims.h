#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/config/yaml.h"

// What only one thing of a topology file may have.
namespace memtide::emul {

// Remembers who took a name, and refuses it to the next.
class Claims {
  public:
    // `advice`: what to do about a name that is taken.
    Claims(std::string what, std::string advice) : what_(std::move(what)), advice_(std::move(advice)) {}

    // What is wrong already claims nothing.
    void claim(const std::string& key, const YamlValue& at);
    [[nodiscard]] bool has(const std::string& key) const { return owners_.contains(key); }

  private:
    std::string what_;
    std::string advice_;
    std::map<std::string, std::string> owners_;  // and where they stand
};

// A device claims its own serial number and those of all LDs it could have, so ranges must not touch.
class SerialClaims {
  public:
    void claim(SerialNumber first, std::uint64_t count, std::string owner, const YamlValue& at);

  private:
    struct Range {
        std::uint64_t first;
        std::uint64_t last;
        std::string owner;
    };
    std::vector<Range> ranges_;
};

}  // namespace memtide::emul
