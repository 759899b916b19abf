#include <string>

#include <gtest/gtest.h>

#include "tests/cli/scripted_manager.h"

namespace memtide::cli {
namespace {

http::Response three(const http::Request&) {
    return http::json_response(
        200, R"({"items": [{"id": "c-1", "state": "Online"}, {"id": "c-2", "state": "Released"},
        {"id": "c-3", "state": "Failed"}], "next": null})");
}

TEST(List, ShowsWhatLives) {
    ScriptedManager manager(three);
    const auto table = memtide(manager.url(), {"list"}).standard_output;
    EXPECT_NE(table.find("c-1"), std::string::npos) << table;
    EXPECT_EQ(table.find("c-2"), std::string::npos) << table;
    EXPECT_EQ(table.find("c-3"), std::string::npos) << table;
    EXPECT_EQ(memtide(manager.url(), {"list", "--json"}).standard_output,
              "{\"items\":[{\"id\":\"c-1\",\"state\":\"Online\"}]}\n");
}

TEST(List, AllAreShownWhenAskedFor) {
    ScriptedManager manager(three);
    const auto table = memtide(manager.url(), {"list", "--all"}).standard_output;
    for (const char* id : {"c-1", "c-2", "c-3"}) EXPECT_NE(table.find(id), std::string::npos) << table;
}

TEST(List, TheManagerFiltersByHostAndStateOnEveryPage) {
    ScriptedManager manager([](const http::Request& request) {
        return http::json_response(200, request.query_value("page")
                                            ? R"({"items": [{"id": "c-9", "state": "Failed"}], "next": null})"
                                            : R"({"items": [], "next": "2"})");
    });
    const auto table =
        memtide(manager.url(), {"list", "--host", "host 0", "--state", "failed"}).standard_output;
    EXPECT_NE(table.find("c-9"), std::string::npos) << table;
    ASSERT_EQ(manager.requests().size(), 2U);
    for (const http::Request& request : manager.requests()) {
        EXPECT_EQ(request.query_value("host"), "host 0");
        EXPECT_EQ(request.query_value("state"), "Failed");
    }
    EXPECT_EQ(manager.requests()[1].query_value("page"), "2");
}

}  // namespace
}  // namespace memtide::cli
