// How the program starts, and how it says why it does not.
#include <fmt/format.h>
#include <sys/stat.h>

#include "common/process/child.h"
#include "tests/integration/fabric_fixture.h"

namespace memtide::test {
namespace {

class Startup : public Fabric {
  protected:
    process::Output run(std::vector<std::string> arguments) {
        process::Command command;
        command.argv = {MEMTIDE_FABRIC_MANAGER};
        command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
        auto output = process::run(command, std::chrono::seconds(60));
        if (!output) throw std::runtime_error(output.error().message);
        return *output;
    }
    std::string config(const std::string& from = "", const std::string& to = "") {
        std::string yaml = manager_yaml(folder_, {});
        if (!from.empty()) yaml.replace(yaml.find(from), from.size(), to);
        const std::string file = folder_.file("other.yaml");
        write_file(file, yaml);
        return file;
    }
};

TEST_F(Startup, HelpAndVersionExitWithZero) {
    EXPECT_EQ(run({"--help"}).exit.code, 0);
    EXPECT_NE(run({"--help"}).standard_output.find("--check-config"), std::string::npos);
    const process::Output version = run({"--version"});
    EXPECT_EQ(version.exit.code, 0);
    EXPECT_TRUE(version.standard_output.starts_with("memtide-fabric-manager "));
}

TEST_F(Startup, BadUsageExitsWithTwo) {
    EXPECT_EQ(run({}).exit.code, 2);
    EXPECT_EQ(run({"--nonsense"}).exit.code, 2);
    EXPECT_EQ(run({"--config"}).exit.code, 2);
    EXPECT_EQ(run({"--config", "/nonexistent.yaml"}).exit.code, 2);
}

TEST_F(Startup, MistypedWordsAreNamedWithWhatWasMeant) {
    const auto said = [&](const std::vector<std::string>& arguments) {
        const process::Output output = run(arguments);
        EXPECT_EQ(output.exit.code, 2);
        return output.standard_error.substr(0, output.standard_error.find('\n'));
    };
    EXPECT_EQ(said({"--chek-config", "-c", config()}),
              "memtide-fabric-manager: unknown option \"--chek-config\"; did you mean \"--check-config\"?");
    EXPECT_EQ(said({"restor", "a"}),
              "memtide-fabric-manager: unknown command \"restor\"; did you mean \"restore\"?");
    EXPECT_EQ(said({"certs", "isue", "D"}),
              "memtide-fabric-manager: certs: unknown command \"isue\"; did you mean \"issue\"?");
    EXPECT_EQ(said({"token", "list", "--confg", "x"}),
              "memtide-fabric-manager: unknown option \"--confg\"; did you mean \"--config\"?");
    EXPECT_EQ(run({"restore", "--help"}).standard_output.find("/"), std::string::npos);  // no path
}

TEST_F(Startup, ABadConfigExitsWithTwoAndNamesThePlace) {
    const std::string file = config("timing: {}", "timing: {switch_pol: 5s}");
    for (const auto& extra : {std::vector<std::string>{}, {"--check-config"}}) {
        std::vector<std::string> arguments{"--config", file};
        arguments.insert(arguments.end(), extra.begin(), extra.end());
        const process::Output output = run(arguments);
        EXPECT_EQ(output.exit.code, 2);
        EXPECT_NE(output.standard_error.find(
                      file + ":8:10: unknown key \"switch_pol\"; did you mean \"switch_poll\"?"),
                  std::string::npos)
            << output.standard_error;
    }
}

TEST_F(Startup, AGoodConfigIsCheckedWithoutAnyEffect) {
    const process::Output output = run({"--check-config", "--config", config()});
    EXPECT_EQ(output.exit.code, 0) << output.standard_error;
    EXPECT_EQ(output.standard_output, config() + ": ok\n");
    EXPECT_EQ(read_file(folder_.file("state.db")), "");
}

TEST_F(Startup, FilesThatTheConfigNamesAreCheckedToo) {
    write_file(folder_.file("tokens"), "nonsense\n");
    ASSERT_EQ(::chmod(folder_.file("tokens").c_str(), 0600), 0);
    const std::string file =
        config("timing: {}",
               "timing: {}\ntls: {certificate: /none/server.pem, key: /none/server.key}\n"
               "authentication: {}");
    const process::Output output = run({"--check-config", "--config", file});
    EXPECT_EQ(output.exit.code, 2);
    EXPECT_EQ(output.standard_output, "");
    EXPECT_NE(output.standard_error.find("/none/server.pem"), std::string::npos) << output.standard_error;
    EXPECT_NE(output.standard_error.find("tokens: line 1"), std::string::npos) << output.standard_error;
}

TEST_F(Startup, AnAddressThatIsNotLoopbackIsRefusedWithTheReason) {
    const process::Output output = run({"--config", config("127.0.0.1:0", "0.0.0.0:0")});
    EXPECT_EQ(output.exit.code, 2);
    EXPECT_NE(output.standard_error.find("other.yaml:1:10: 0.0.0.0:0 is not a loopback address"),
              std::string::npos)
        << output.standard_error;
    EXPECT_NE(output.standard_error.find("\"tls\" and \"authentication\""), std::string::npos)
        << output.standard_error;
}

TEST_F(Startup, AMissingStateFolderIsNamed) {
    const process::Output output =
        run({"--config", config(folder_.file("state.db"), folder_.file("gone/state.db"))});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find(folder_.file("gone/state.db") + " does not exist"),
              std::string::npos)
        << output.standard_error;
}

TEST_F(Startup, AStateFileThatIsNoDatabaseIsNamedAndLeftAlone) {
    write_file(folder_.file("state.db"), std::string(8192, 'x'));
    const process::Output output = run({"--config", config()});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("not a database"), std::string::npos) << output.standard_error;
    EXPECT_EQ(read_file(folder_.file("state.db")), std::string(8192, 'x'));
}

TEST_F(Startup, APortInUseIsNamed) {
    run_manager();
    const std::string port = std::to_string(tcp_port(*manager_));
    std::string yaml = manager_yaml(folder_, {});
    yaml.replace(yaml.find("127.0.0.1:0"), 11, "127.0.0.1:" + port);
    yaml.replace(yaml.find(folder_.file("manager.sock")), folder_.file("manager.sock").size(),
                 folder_.file("second.sock"));
    yaml.replace(yaml.find(folder_.file("state.db")), folder_.file("state.db").size(),
                 folder_.file("second.db"));
    write_file(folder_.file("second.yaml"), yaml);
    const process::Output output = run({"--config", folder_.file("second.yaml")});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("127.0.0.1:" + port), std::string::npos) << output.standard_error;
    EXPECT_NE(output.standard_error.find("in use"), std::string::npos) << output.standard_error;
}

TEST_F(Startup, AStateFileThatAnotherManagerHasIsNotShared) {
    run_manager();
    std::string yaml = manager_yaml(folder_, {});
    yaml.replace(yaml.find(folder_.file("manager.sock")), folder_.file("manager.sock").size(),
                 folder_.file("second.sock"));
    write_file(folder_.file("second.yaml"), yaml);
    const process::Output output = run({"--config", folder_.file("second.yaml")});
    EXPECT_EQ(output.exit.code, 1);
    EXPECT_NE(output.standard_error.find("another fabric manager"), std::string::npos)
        << output.standard_error;
    EXPECT_EQ(rest_.get("/healthz").status, 200U);
}

}  // namespace
}  // namespace memtide::test
