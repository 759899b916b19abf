#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/error.h"

namespace memtide::agent {

// Kernel modules the hot-plug of CXL memory needs, in order (Linux 6.3 and later).
const std::vector<std::string>& cxl_modules();

class ModuleLoader {
  public:
    virtual ~ModuleLoader() = default;
    // Loads it with what it depends on; fine when it is loaded or built in. kNotFound, kPermission, kIo.
    virtual Result<> load(const std::string& name) = 0;
};
std::unique_ptr<ModuleLoader> make_kmod_loader();  // libkmod
// Refuses everything: for hosts whose administrator loads modules.
std::unique_ptr<ModuleLoader> make_disabled_loader();

}  // namespace memtide::agent
