#include "fabric-manager/rest/routes.h"

#include <array>

namespace memtide::fm {

using enum Privilege;

std::span<const Route> routes() {
    static constexpr std::array table{
        Route{"GET", "/v1/pool", "getPool", get_pool, kReadFabric},
        Route{"GET", "/v1/hosts", "listHosts", list_hosts, kReadFabric, "limit page switch connected"},
        Route{"GET", "/v1/hosts/{host}", "getHost", get_host, kReadFabric},
        Route{"GET", "/v1/switches", "listSwitches", list_switches, kReadFabric, "limit page up"},
        Route{"GET", "/v1/switches/{switch}", "getSwitch", get_switch, kReadFabric},
        Route{"GET", "/v1/devices", "listDevices", list_devices, kReadFabric,
              "limit page switch kind present host"},
        Route{"GET", "/v1/devices/{device}", "getDevice", get_device, kReadFabric},
        Route{"DELETE", "/v1/quarantine/{serial}", "liftQuarantine", lift_quarantine, kForceRelease},
        Route{"GET", "/v1/topology", "getTopology", get_topology, kReadFabric},

        Route{"POST", "/v1/compositions", "createComposition", create_composition, kChangeCompositions,
              "dryRun wait timeout"},
        Route{"GET", "/v1/compositions", "listCompositions", list_compositions, kReadCompositions,
              "limit page host state tenant label switch device"},
        Route{"GET", "/v1/compositions/{id}", "getComposition", get_composition, kReadCompositions,
              "wait timeout"},
        Route{"PATCH", "/v1/compositions/{id}", "changeComposition", change_composition, kChangeCompositions,
              "wait timeout", false, false, true},
        Route{"DELETE", "/v1/compositions/{id}", "releaseComposition", release_composition,
              kChangeCompositions, "force wait timeout", false, false, true},
        Route{"GET", "/v1/compositions/{id}/history", "getHistory", get_history, kReadCompositions,
              "limit page"},

        Route{"GET", "/v1/tenants", "listTenants", list_tenants, kReadTenants, "limit page"},
        Route{"GET", "/v1/tenants/{tenant}", "getTenant", get_tenant, kReadTenants},

        Route{"GET", "/v1/events", "streamEvents", stream_events, kReadEvents,
              "after follow type composition host", false, true},

        Route{"GET", "/v1/hosts/{host}/desired", "getDesired", get_desired, kReadDesired, "after timeout",
              true, true},
        Route{"PUT", "/v1/hosts/{host}/observed", "putObserved", put_observed, kReport, {}, true},

        Route{"GET", "/v1/openapi.json", "getOpenapi", get_openapi, kPublic, {}, true},
        Route{"GET", "/metrics", "getMetrics", get_metrics, kReadFabric, {}, true},
        Route{"GET", "/healthz", "getHealth", get_health, kPublic, {}, true},
        Route{"GET", "/readyz", "getReadiness", get_readiness, kPublic, {}, true},
    };
    return table;
}

}  // namespace memtide::fm
