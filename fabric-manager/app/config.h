#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/config/yaml.h"
#include "common/http/server.h"
#include "common/log/log.h"
#include "fabric-manager/app/security_config.h"
#include "fabric-manager/engine/manager.h"
#include "fabric-manager/fmapi/listening_transport.h"

namespace memtide::fm {

// How the FM API of one switch is reached.
struct SwitchLink {
    std::optional<SwitchListener> listen;  // the switch connects; otherwise its address in ManagerSwitch
    std::string dialect = "detect";        // or a name of common/fmapi/dialect.h
    std::optional<std::size_t> in_flight;  // otherwise the dialect's
    std::optional<std::uint8_t> eid;       // MCTP endpoint id that the switch is given
};

// What config/fabric-manager.yaml says; every default stands in that file.
struct AppConfig {
    std::vector<std::string> listen;   // as http::Server::listen() reads them
    std::string state;                 // path of the database
    std::optional<Bytes> state_limit;  // the database does not grow beyond it
    std::string capture;               // path of the capture of the FM API; empty: none
    log::Level log_level = log::Level::kInfo;
    log::Format log_format = log::Format::kText;
    ManagerConfig manager;
    std::map<SwitchId, SwitchLink> links;  // of manager.switches
    http::ServerLimits http;
    SecurityConfig security;
    Milliseconds connect_timeout{2'000};  // of the FM API clients
    Milliseconds command_timeout{2'000};
    Milliseconds shutdown_grace{5'000};  // what running requests get after SIGTERM
};

// Fails with kInvalidArgument; the message has one line "FILE:LINE:COLUMN: what is wrong" for each mistake.
Result<AppConfig> load_config(const std::string& path);
// As load_config(), for text that is already there.
Result<AppConfig> parse_config(std::string_view text, std::string name);

// Why the manager does not listen there; empty when it does. Others than this machine's users are served only
// when `secure`: with TLS and authentication.
std::string listen_refusal(std::string_view address, bool secure);

}  // namespace memtide::fm
