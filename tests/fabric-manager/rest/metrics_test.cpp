// Holds every metric of the manager to conventions: names, units, help, and labels that cannot grow without
// bounds.
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/metrics/process.h"
#include "fabric-manager/fmapi/meter.h"
#include "fabric-manager/rest/api.h"
#include "tests/fabric-manager/engine/rig.h"

namespace memtide::fm {
namespace {

using testing::HasSubstr;

struct Family {
    std::string help;
    std::string type;
    std::set<std::string> series;  // without values
    std::set<std::string> labels;
};

std::map<std::string, Family> families(const std::string& text) {
    std::map<std::string, Family> result;
    std::istringstream lines(text);
    std::string name;
    static const std::regex label(R"re(([a-zA-Z_]+)="((?:[^"\\]|\\.)*)")re");
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string first;
        std::string kind;
        words >> first;
        if (first == "#") {
            words >> kind >> name;
            std::string rest;
            std::getline(words >> std::ws, rest);
            (kind == "HELP" ? result[name].help : result[name].type) = rest;
            continue;
        }
        EXPECT_TRUE(line.starts_with(name)) << line << " stands under " << name;
        const std::string series = line.substr(0, line.rfind(' '));
        Family& family = result[name];
        for (std::sregex_iterator it(series.begin(), series.end(), label), end; it != end; ++it)
            family.labels.insert((*it)[1]);
        if (series.find("_bucket{") == std::string::npos) family.series.insert(series);
    }
    return result;
}

std::string file_text(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

class Metrics : public testing::Test {
  protected:
    void SetUp() override {
        rig_.fabric->add_mld(2, {1, 1}, 2);
        rig_.start_ready();
        api_ = std::make_unique<RestApi>(*rig_.manager, rig_.metrics());
        const auto meter = round_trip_meter(rig_.metrics(), SwitchId("switch0"));
        metrics::add_process_metrics(rig_.metrics(), "test", "0");
        meter(fmapi::Opcode::kIdentify, std::chrono::milliseconds(2), true);
        meter(fmapi::Opcode::kIdentify, std::chrono::milliseconds(2), false);
    }
    std::string scrape() {
        http::Request request;
        request.method = "GET";
        request.path = "/metrics";
        return rig_.run(api_->router().dispatch(std::move(request))).body;
    }

    Rig rig_;
    std::unique_ptr<RestApi> api_;
};

TEST_F(Metrics, NamesSayWhatTheyMeasureInWhichUnit) {
    const Composition c = rig_.online("host0", 1);
    rig_.released(c.id);
    const std::regex name_pattern("(memtide|process)_[a-z0-9_]+");
    const auto all = families(scrape());
    EXPECT_GE(all.size(), 15U);
    const std::string documented = file_text(std::string(MEMTIDE_SOURCE_DIR) + "/docs/metrics.md");
    for (const auto& [name, family] : all) {
        EXPECT_THAT(documented, HasSubstr("`" + name + "`"));
        EXPECT_TRUE(std::regex_match(name, name_pattern)) << name;
        EXPECT_FALSE(family.help.empty()) << name;
        EXPECT_EQ(name.ends_with("_total"), family.type == "counter") << name << " is a " << family.type;
        EXPECT_EQ(name.find("_ms"), std::string::npos) << name << ": seconds are the unit of time";
        EXPECT_TRUE(family.type != "histogram" || name.ends_with("_seconds")) << name;
    }
}

// Whoever is woken by an alert finds it in the documentation, and what it looks at is measured.
TEST(Alerts, AreOfDocumentedMetricsAndSayWhatToDo) {
    const std::string source = MEMTIDE_SOURCE_DIR;
    const std::string rules = file_text(source + "/config/prometheus/memtide-alerts.yaml");
    const std::string metrics = file_text(source + "/docs/metrics.md");
    const std::string operations = file_text(source + "/docs/operations.md");
    const auto each = [&](const char* pattern, auto check) {
        const std::regex regex(pattern);
        int found = 0;
        for (auto it = std::sregex_iterator(rules.begin(), rules.end(), regex); it != std::sregex_iterator();
             ++it, ++found)
            check((*it)[1].str());
        return found;
    };
    EXPECT_GE(each("(memtide_[a-z0-9_]+?)(_bucket)?[^a-z0-9_]",
                   [&](const std::string& name) { EXPECT_THAT(metrics, HasSubstr("`" + name + "`")); }),
              9);
    EXPECT_GE(each("alert: ([A-Za-z]+)",
                   [&](const std::string& name) { EXPECT_THAT(operations, HasSubstr("| " + name + " |")); }),
              9);
}

TEST_F(Metrics, LabelsComeFromSmallSetsWhateverClientsSend) {
    const std::set<std::string> allowed{"code",   "command", "kind", "le",     "method",  "program",
                                        "result", "route",   "step", "switch", "verdict", "version"};
    for (int i = 0; i < 50; ++i) {
        http::Request request;
        request.method = "GET";
        request.path = "/v1/compositions/c-" + std::to_string(i);
        (void)rig_.run(api_->router().dispatch(std::move(request)));
    }
    const Composition c = rig_.online("host0", 1);
    const std::string text = scrape();
    EXPECT_EQ(text.find(c.id.value), std::string::npos);
    for (const auto& [name, family] : families(text)) {
        for (const std::string& label : family.labels) EXPECT_TRUE(allowed.contains(label)) << name << label;
        EXPECT_LT(family.series.size(), 150U) << name;
    }
}

TEST_F(Metrics, StepsAreMeasuredByName) {
    const Composition c = rig_.online("host0", 1);
    rig_.released(c.id);
    const std::string text = scrape();
    for (const char* step : {"place", "bind", "online", "drain", "unbind", "erase"})
        EXPECT_THAT(text, HasSubstr("memtide_fm_step_duration_seconds_count{step=\"" + std::string(step) +
                                    "\"} 1\n"));
}

TEST_F(Metrics, RoundTripsAreMeasuredByCommandAndCountedBySwitch) {
    const std::string text = scrape();
    EXPECT_THAT(text, HasSubstr(R"(memtide_fmapi_commands_total{result="answered",switch="switch0"} 1)"));
    EXPECT_THAT(text, HasSubstr(R"(memtide_fmapi_commands_total{result="lost",switch="switch0"} 1)"));
    EXPECT_THAT(text, HasSubstr("memtide_fmapi_round_trip_duration_seconds_count{command=\""));
}

}  // namespace
}  // namespace memtide::fm
