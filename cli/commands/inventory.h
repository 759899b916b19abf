#pragma once

#include <string>

#include "cli/client/manager_client.h"
#include "cli/commands/output.h"

namespace memtide::cli {

// Each asks the manager, prints, and answers the exit code.
int show_pool(const ManagerClient& manager, Output& output);
int show_hosts(const ManagerClient& manager, Output& output);
int show_switches(const ManagerClient& manager, Output& output);
int show_devices(const ManagerClient& manager, Output& output);
int show_tenants(const ManagerClient& manager, Output& output);
int show_topology(const ManagerClient& manager, Output& output);
// Of the LD with that serial number.
int lift_quarantine(const ManagerClient& manager, Output& output, const std::string& serial);

}  // namespace memtide::cli
