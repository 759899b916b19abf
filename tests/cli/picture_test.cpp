// `memtide topology --svg`: from a manager's answer, and from a file.
#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/render/fabric_picture.h"
#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kFabric = R"({
  "hosts": [{"name": "host0", "composed": 268435456, "agent": {"connected": true}},
            {"name": "host1", "composed": 0, "agent": {"connected": false}}],
  "switches": [{"name": "switch0", "address": "tcp://127.0.0.1:2650", "up": true,
    "ports": [{"id": 0, "role": "upstream", "link_up": true, "device": null},
              {"id": 1, "role": "upstream", "link_up": true, "device": null},
              {"id": 2, "role": "downstream", "link_up": true, "device": "mhd0"},
              {"id": 3, "role": "downstream", "link_up": false, "device": "sld0"}],
    "vcss": [{"id": 0, "upstream_port": 0, "host": "host0",
              "vppbs": [{"id": 0, "status": "bound-ld", "port": 2, "ld": 3}, {"id": 1, "status": "unbound"}]},
             {"id": 1, "upstream_port": 1, "host": "host1",
              "vppbs": [{"id": 0, "status": "bound-port", "port": 3, "ld": null}]}]}],
  "devices": [{"name": "mhd0", "kind": "mld", "size": 1073741824, "head_count": 2,
               "heads": [{"number": 1, "switch": "switch0", "port": 2}],
               "lds": [{"id": 3, "size": 268435456, "use": "bound", "head": 1, "composition": "c-1",
                        "bound_at": {"switch": "switch0", "vcs": 0, "vppb": 0}},
                       {"id": 0, "size": 0, "use": "unallocated", "head": 0, "bound_at": null}]},
              {"name": "sld0", "kind": "sld", "size": 268435456, "head_count": 1, "held": "worn out",
               "lds": [{"id": null, "size": 268435456, "use": "bound",
                        "bound_at": {"switch": "switch0", "vcs": 1, "vppb": 0}}]}]})";

TEST(Picture, BindingsNameTheDeviceTheLdAndTheHost) {
    const diagram::Fabric fabric = picture_of_topology(boost::json::parse(kFabric));
    ASSERT_EQ(fabric.switches.size(), 1U);
    const diagram::Switch& one = fabric.switches[0];
    EXPECT_EQ(one.ports[1].host, "host1");
    EXPECT_EQ(one.ports[2].device, "mhd0");
    EXPECT_EQ(one.ports[2].head, 1U);
    EXPECT_FALSE(one.ports[3].link_up);
    EXPECT_EQ(one.vcss[0].vppbs[0].device, "mhd0");
    EXPECT_EQ(one.vcss[0].vppbs[0].ld, "3");
    EXPECT_EQ(one.vcss[1].vppbs[0].device, "sld0");
    EXPECT_EQ(one.vcss[1].vppbs[0].ld, "");
    ASSERT_EQ(fabric.devices.size(), 2U);
    EXPECT_EQ(fabric.devices[0].heads, (std::vector<unsigned>{0, 1}));
    EXPECT_EQ(fabric.devices[0].lds[0].host, "host0");
    EXPECT_EQ(fabric.devices[0].lds[0].head, 1U);
    EXPECT_EQ(fabric.devices[0].lds[1].use, diagram::LdUse::kEmpty);
    EXPECT_EQ(fabric.devices[1].lds[0].host, "host1");
    EXPECT_TRUE(fabric.devices[1].is_ill);
    EXPECT_EQ(fabric.hosts[1].standing, diagram::Host::Standing::kAway);
}

TEST(Picture, AnswerOfAnotherKindDoesNotBreakIt) {
    for (const char* text :
         {"{}", "null",
          R"({"hosts": [1], "switches": [{"ports": {}, "vcss": [null]}], "devices": [{"lds": [[]]}]})",
          R"({"devices": [{"name": 5, "head_count": 99999999999, "size": -1}]})"})
        EXPECT_NO_THROW((void)picture_of_topology(boost::json::parse(text))) << text;
}

TEST(Picture, OfAManagerIsSvgOnStandardOutput) {
    ScriptedManager manager([](const http::Request&) { return http::json_response(200, kFabric); });
    const auto drawn = memtide(manager.url(), {"topology", "--svg"});
    EXPECT_EQ(drawn.exit.code, 0) << drawn.standard_error;
    EXPECT_THAT(drawn.standard_output, StartsWith("<?xml"));
    EXPECT_THAT(drawn.standard_output, HasSubstr("mhd0 LD 3: 256MiB, bound to host0, c-1"));
    EXPECT_EQ(manager.requests().at(0).path, "/v1/topology");
}

TEST(Picture, OfAFileNeedsNoManager) {
    const auto drawn = memtide("http://127.0.0.1:1",
                               {"topology", "--svg", "--file", MEMTIDE_CONFIG "/topologies/sparse-pod.yaml"});
    EXPECT_EQ(drawn.exit.code, 0) << drawn.standard_error;
    EXPECT_THAT(drawn.standard_output, HasSubstr(">mhd11<"));
}

TEST(Picture, FileThatIsNoTopologySaysWhy) {
    const auto refused = memtide("http://127.0.0.1:1", {"topology", "--svg", "--file", "/no/such.yaml"});
    EXPECT_EQ(refused.exit.code, 2);
    EXPECT_THAT(refused.standard_error, HasSubstr("/no/such.yaml"));
}

TEST(Picture, WrongUsageIsExplained) {
    EXPECT_EQ(memtide("http://127.0.0.1:1", {"topology", "--file", "x.yaml"}).exit.code, 2);
    const auto both = memtide("http://127.0.0.1:1", {"topology", "--svg", "--json"});
    EXPECT_EQ(both.exit.code, 2);
    EXPECT_THAT(both.standard_error, HasSubstr("--svg and --json"));
}

}  // namespace
}  // namespace memtide::cli
