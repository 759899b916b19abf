#include "common/diagram/svg.h"

#include <set>
#include <sstream>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/diagram/layout.h"
#include "common/diagram/palette.h"
#include "tests/common/diagram/fabrics.h"

namespace memtide::diagram {
namespace {

using testing::HasSubstr;
using testing::Not;

// Throws unless it is well-formed XML.
boost::property_tree::ptree parsed(const std::string& svg) {
    std::istringstream in(svg);
    boost::property_tree::ptree tree;
    boost::property_tree::read_xml(in, tree);
    return tree;
}

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
}

TEST(DiagramSvg, IsAnXmlDocumentWithEverythingNamed) {
    const std::string svg = to_svg(test::fabric_of(2, 2));
    EXPECT_GT(parsed(svg).get<int>("svg.<xmlattr>.width"), 0);
    for (const char* name : {"host0", "host1", "switch0", "switch1", "dev0", "dev1", "VCS 1", "256MiB"})
        EXPECT_THAT(svg, HasSubstr(">" + std::string(name) + "<"));
}

TEST(DiagramSvg, WhatIsBoundHasTheColourOfItsHost) {
    const Fabric fabric = test::fabric_of(2, 1);
    const std::string svg = to_svg(fabric);
    // The LD, the vPPB, the host's box and, along the binding, three lines; the legend shows the first
    // host's.
    EXPECT_GE(count(svg, "stroke=\"" + host_colour(1) + "\""), 5U);
    EXPECT_THAT(svg, HasSubstr("dev0 LD 1: 256MiB, bound to host1"));
    EXPECT_THAT(svg, HasSubstr("bound, in the colour of its host"));
    EXPECT_THAT(svg, Not(HasSubstr("quarantined</text>")));  // the legend has what there is
}

TEST(DiagramSvg, NamesCannotBreakOutOfTheDocument) {
    Fabric fabric = test::fabric_of(1, 1);
    const std::string evil = "</text><script>alert('1')</script>\"&\x01\xff\x1b[2J";
    fabric.title = evil;
    fabric.hosts[0].detail = evil;
    fabric.hosts[0].name = evil;
    fabric.switches[0].detail = evil;
    fabric.switches[0].ports[0].host = evil;
    fabric.devices[0].lds[0].note = evil;
    fabric.devices[0].kind = evil;
    fabric.networks.push_back({evil, {evil, evil}});
    const std::string svg = to_svg(fabric);
    EXPECT_NO_THROW(parsed(svg));
    EXPECT_THAT(svg, Not(HasSubstr("<script")));
    EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
}

TEST(DiagramSvg, LinkThatIsDownAndSwitchThatIsAwayAreRed) {
    Fabric fabric = test::fabric_of(1, 1);
    EXPECT_EQ(count(to_svg(fabric), kBad), 0U + count(to_svg({}), kBad));
    fabric.switches[0].ports[1].link_up = false;
    EXPECT_GT(count(to_svg(fabric), kBad), 0U);
    fabric.switches[0].ports[1].link_up = true;
    fabric.switches[0].is_up = false;
    EXPECT_THAT(to_svg(fabric), HasSubstr("(down)"));
}

TEST(DiagramSvg, NetworkIsALineBetweenItsHosts) {
    Fabric fabric = test::fabric_of(2, 1);
    fabric.networks = {
        {"rdma0", {"host0", "host1"}}, {"rdma1", {"host0", "host1"}}, {"lost", {"host0", "host9"}}};
    const std::string svg = to_svg(fabric);
    EXPECT_THAT(svg, HasSubstr("rdma0 (RDMA)"));
    EXPECT_THAT(svg, HasSubstr("rdma1 (RDMA)"));
    EXPECT_THAT(svg, Not(HasSubstr("lost")));
}

TEST(DiagramSvg, ASwitchBelowAnotherHangsOnItsCable) {
    Fabric fabric = test::fabric_of(1, 2);
    fabric.switches[0].ports.push_back({.id = 7, .host = {}, .device = {}, .below = "switch1"});
    const Layout layout = lay_out(fabric);
    EXPECT_GT(layout.switches[1].box.y, layout.switches[0].box.bottom());
    EXPECT_GT(layout.devices[0].box.y, layout.switches[1].box.bottom());
    const std::string svg = to_svg(fabric);
    EXPECT_NO_THROW(parsed(svg));
    EXPECT_THAT(svg, HasSubstr("port 7: switch1"));
}

TEST(DiagramSvg, SwitchesThatAreBelowEachOtherAreDrawnAllTheSame) {
    Fabric fabric = test::fabric_of(1, 2);
    fabric.switches[0].ports.push_back({.id = 7, .host = {}, .device = {}, .below = "switch1"});
    fabric.switches[1].ports.push_back({.id = 7, .host = {}, .device = {}, .below = "switch0"});
    fabric.switches[1].ports.push_back({.id = 8, .host = {}, .device = {}, .below = "nowhere"});
    EXPECT_NO_THROW(parsed(to_svg(fabric)));
}

TEST(DiagramSvg, HostsOfAFewRacksAllHaveColoursOfTheirOwn) {
    std::set<std::string> colours;
    for (std::size_t host = 0; host < 64; ++host) colours.insert(host_colour(host));
    EXPECT_EQ(colours.size(), 64U);
}

TEST(DiagramSvg, FabricOfNothingIsADocumentToo) { EXPECT_NO_THROW(parsed(to_svg({}))); }

TEST(DiagramSvg, BindingsToWhatIsNotThereAreLeftOut) {
    Fabric fabric = test::fabric_of(1, 1);
    fabric.switches[0].vcss[0].vppbs[0] = {0, "gone", "0"};
    fabric.switches[0].vcss[0].vppbs[1] = {1, "dev0", "99"};
    EXPECT_NO_THROW(parsed(to_svg(fabric)));
}

}  // namespace
}  // namespace memtide::diagram
