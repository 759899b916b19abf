// Whatever a client or an agent sends as a body: an answer of the kind that openapi.json describes, never a
// fault of the manager's own, and an inventory that still adds up.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include <boost/json/parse.hpp>

#include "common/log/log.h"
#include "fabric-manager/rest/api.h"
#include "tests/fabric-manager/engine/rig.h"

namespace {

using namespace memtide;
using namespace memtide::fm;

void require(bool condition) {
    if (!condition) std::abort();
}

// One manager for all inputs; its store needs no disk.
struct World {
    World() {
        log::set_level(log::Level::kError);
        rig.store.path = ":memory:";
        rig.config.keep_ended = 50;
        rig.config.keep_events = 500;
        rig.config.timing.switch_poll = Milliseconds(60'000);
        rig.agents.clear();  // reports come from the fuzzer
        rig.fabric->add_mld(2, {1, 1, 1, 1}, 4);
        rig.start_ready();
        api = std::make_unique<RestApi>(*rig.manager, metrics);
    }
    Rig rig;
    metrics::Registry metrics;
    std::unique_ptr<RestApi> api;
};

struct Endpoint {
    const char* method;
    const char* path;
};
constexpr Endpoint kEndpoints[] = {
    {"POST", "/v1/compositions"},
    {"PUT", "/v1/hosts/host0/observed"},
    {"PUT", "/v1/hosts/host1/observed"},
    {"PUT", "/v1/hosts/nobody/observed"},
};

http::Response send(World& world, const char* method, std::string path, std::string body,
                    std::map<std::string, std::string> query = {}) {
    http::Request request;
    request.method = method;
    request.path = std::move(path);
    request.headers["Content-Type"] = "application/json";
    request.query = std::move(query);
    request.body = std::move(body);
    return world.rig.run(world.api->router().dispatch(std::move(request)));
}

// So that there is room for the next one.
void give_back(World& world, const std::string& id) {
    require(send(world, "DELETE", "/v1/compositions/" + id, "", {{"force", "true"}}).status == 202);
    require(world.rig.reaches(CompositionId(id), CompositionState::kReleased));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    static World& world = *new World;
    const Endpoint& endpoint = kEndpoints[data[0] % std::size(kEndpoints)];
    const http::Response response = send(world, endpoint.method, endpoint.path,
                                         std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
    require(response.status != 500 && response.body.find("storage-") == std::string::npos);
    if (response.status == 204) return 0;
    const boost::json::value body = boost::json::parse(response.body);
    if (response.status == 202) {
        give_back(world, std::string(body.at("id").as_string()));
    } else {
        require(response.status >= 400 && response.status < 500);
        require(response.headers.at("Content-Type") == "application/problem+json");
        require(!body.at("code").as_string().empty() && !body.at("detail").as_string().empty());
    }
    return 0;
}
