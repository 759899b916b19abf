#include "fabric-manager/rest/routes.h"

#include <array>

namespace memtide::fm {

std::span<const Route> routes() {
    static constexpr std::array table{
        Route{"GET", "/v1/pool", "getPool", get_pool},
        Route{"GET", "/v1/hosts", "listHosts", list_hosts, "limit page"},
        Route{"GET", "/v1/hosts/{host}", "getHost", get_host},
        Route{"GET", "/v1/switches", "listSwitches", list_switches, "limit page"},
        Route{"GET", "/v1/switches/{switch}", "getSwitch", get_switch},
        Route{"GET", "/v1/devices", "listDevices", list_devices, "limit page"},
        Route{"GET", "/v1/devices/{device}", "getDevice", get_device},
        Route{"GET", "/v1/topology", "getTopology", get_topology},

        Route{"POST", "/v1/compositions", "createComposition", create_composition, "dryRun"},
        Route{"GET", "/v1/compositions", "listCompositions", list_compositions, "limit page host state"},
        Route{"GET", "/v1/compositions/{id}", "getComposition", get_composition, "wait timeout", true},
        Route{"PATCH", "/v1/compositions/{id}", "changeComposition", change_composition},
        Route{"DELETE", "/v1/compositions/{id}", "releaseComposition", release_composition, "force"},

        Route{"GET", "/v1/events", "streamEvents", stream_events, "after follow", true},

        Route{"GET", "/v1/hosts/{host}/desired", "getDesired", get_desired, "after timeout", true},
        Route{"PUT", "/v1/hosts/{host}/observed", "putObserved", put_observed},

        Route{"GET", "/v1/openapi.json", "getOpenapi", get_openapi},
        Route{"GET", "/metrics", "getMetrics", get_metrics},
        Route{"GET", "/healthz", "getHealth", get_health},
        Route{"GET", "/readyz", "getReadiness", get_readiness},
    };
    return table;
}

}  // namespace memtide::fm
