#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config/yaml.h"

namespace memtide {
namespace {

YamlDocument parse(std::string_view text) {
    auto document = YamlDocument::parse(text, "x.yaml");
    EXPECT_TRUE(document) << document.error().message;
    return *std::move(document);
}

TEST(Yaml, ValuesAreReadWithTheirTypes) {
    const auto document =
        parse("name: pool-1\nsize: 512MiB\nid: 0x10\non: true\nwait: 250ms\nserial: 0xff\n");
    const YamlMap root = document.root();
    EXPECT_EQ(root.require("name").name(), "pool-1");
    EXPECT_EQ(root.require("size").bytes_multiple_of(kCxlGranule), mebibytes(512));
    EXPECT_EQ(root.require("id").integer(0, 255), 16U);
    EXPECT_TRUE(root.require("on").boolean());
    EXPECT_EQ(root.require("wait").milliseconds(), 250U);
    EXPECT_EQ(root.require("serial").serial().value, 0xffU);
    EXPECT_FALSE(root.get("absent"));
    EXPECT_TRUE(document.check());
}

TEST(Yaml, UnknownKeyIsNamedWithItsPlaceAndTheNearestKnownKey) {
    const auto document = parse("ports:\n  - id: 1\n    hots: a\n");
    for (const auto& port : document.root().require("ports").list()) {
        const YamlMap map = port.map();
        (void)map.require("id");
        (void)map.get("host");
    }
    EXPECT_EQ(document.check().error().message, "x.yaml:3:5: unknown key \"hots\"; did you mean \"host\"?");
}

TEST(Yaml, AllMistakesAreReportedAtOnceInFileOrder) {
    const auto document = parse("size: 100MiB\ncount: -1\nname: A B\nsize: 1GiB\n");
    const YamlMap root = document.root();
    (void)root.require("name").name();
    (void)root.require("count").integer(0, 10);
    (void)root.require("size").bytes_multiple_of(kCxlGranule);
    (void)root.require("gone").string();
    EXPECT_EQ(document.check().error().message,
              "x.yaml:1:1: missing \"gone\"\n"
              "x.yaml:1:7: 100MiB must be a multiple of 256MiB, and at least that\n"
              "x.yaml:2:8: must be a whole number from 0 to 10\n"
              "x.yaml:3:7: \"A B\" is not a name: use 1 to 63 of a-z, 0-9 and -, with no - at either end\n"
              "x.yaml:4:1: key \"size\" is given twice");
}

TEST(Yaml, WrongTypesAreMistakesNotCrashes) {
    const auto document = parse("list: 1\nmap: [1]\ntext: {a: b}\n");
    const YamlMap root = document.root();
    EXPECT_TRUE(root.require("list").list().empty());
    EXPECT_FALSE(root.require("map").map().get("x"));
    EXPECT_EQ(root.require("text").string(), "");
    EXPECT_EQ(document.check().error().message,
              "x.yaml:1:7: must be a list\nx.yaml:2:6: must be a map of keys and values\nx.yaml:3:7: must be "
              "a text");
}

TEST(Yaml, BrokenYamlIsRefusedWithItsPlace) {
    const auto document = YamlDocument::parse("a: [1, 2\nb: 3\n", "x.yaml");
    ASSERT_FALSE(document);
    EXPECT_TRUE(document.error().message.starts_with("x.yaml:2:")) << document.error().message;
}

TEST(Yaml, ATabInTheIndentationIsNamed) {
    for (const char* text : {"a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n", "\ta: 1\n"})
        EXPECT_THAT(YamlDocument::parse(text, "x.yaml").error().message,
                    testing::HasSubstr("a tab in the indentation"))
            << text;
}

TEST(Yaml, WhetherAMapIsEmptyMakesNoKeyKnown) {
    const auto document = YamlDocument::parse("a: {}\nb: {typo: 1}\n", "f");
    ASSERT_TRUE(document.has_value());
    EXPECT_TRUE(document->root().require("a").map().is_empty());
    EXPECT_FALSE(document->root().require("b").map().is_empty());
    ASSERT_FALSE(document->check().has_value());
    EXPECT_NE(document->check().error().message.find("typo"), std::string::npos);
}

TEST(Yaml, OneValueIsComplainedAboutOnce) {
    const auto document = YamlDocument::parse("a: 60\nb: 5sec\n", "x.yaml");
    ASSERT_TRUE(document);
    for (const char* key : {"a", "b"}) {
        const auto value = document->root().get(key);
        EXPECT_EQ(value->milliseconds(), 0U);
        value->reject("must be longer than 0ms");
    }
    EXPECT_EQ(document->check().error().message,
              "x.yaml:1:4: \"60\" has no unit: write 60s, 60ms, 60min or 60h\n"
              "x.yaml:2:4: \"5sec\" must be a duration such as 250ms, 2s, 5min or 1h");
}

TEST(Yaml, AFileThatIsNotThereOrNotAMapIsRefused) {
    EXPECT_EQ(YamlDocument::load("/nonexistent.yaml").error().message,
              "/nonexistent.yaml: No such file or directory");
    EXPECT_EQ(YamlDocument::load("/dev/null").error().message, "/dev/null: is empty");
    EXPECT_EQ(YamlDocument::load("/tmp").error().message, "/tmp: is a folder, not a file");
    EXPECT_EQ(YamlDocument::parse("- 1\n", "x.yaml").error().message,
              "x.yaml:1:1: the file must be a map of keys and values");
    EXPECT_FALSE(YamlDocument::parse("", "x.yaml"));
}

TEST(Yaml, DeepNestingIsRefusedWithoutExhaustingTheStack) {
    EXPECT_FALSE(YamlDocument::parse("a: " + std::string(100'000, '['), "x.yaml"));
}

}  // namespace
}  // namespace memtide
