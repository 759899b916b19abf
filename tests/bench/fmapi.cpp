// The FM API between the manager's client and the emulated switch, which is a process of its own.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/metrics/process.h"
#include "cxl-emul/switch/switch.h"
#include "fabric-manager/engine/read_switch.h"
#include "fabric-manager/fmapi/client.h"
#include "tests/bench/figure.h"
#include "tests/integration/temp_folder.h"

namespace memtide::bench {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr const char* kBench = "fmapi";
constexpr int kRuns = 5;
constexpr int kRoundTrips = 20'000;
constexpr int kCommands = 100'000;
constexpr std::size_t kInFlight = 16;
constexpr int kSwitches = 64;
constexpr int kPortsEach = 63;  // 8 hosts, 8 MLDs of 4 LDs, the others empty
constexpr int kHostsEach = 8;
constexpr int kMldsEach = 8;
constexpr double kMebibyte = 1024.0 * 1024.0;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// A switch with so many MLDs behind it, of so many LDs of 256 MiB.
std::string switch_yaml(const test::TempFolder& folder, int number, const std::string& listen, int ports,
                        int hosts, int mlds, int lds) {
    std::string text = fmt::format("  - name: switch{}\n    listen: [\"{}\"]\n    media: {}\n    ports:\n",
                                   number, listen, folder.path());
    for (int i = 0; i < ports; ++i) {
        if (i < hosts)
            text += fmt::format("      - {{id: {}, host: host{}-{}}}\n", i, number, i);
        else if (i < hosts + mlds)
            text += fmt::format("      - {{id: {}, device: mld{}-{}}}\n", i, number, i - hosts);
        else
            text += fmt::format("      - {{id: {}}}\n", i);
    }
    text += "    vcss:\n";
    for (int i = 0; i < hosts; ++i)
        text += fmt::format("      - {{id: {}, upstream_port: {}, vppbs: 8}}\n", i, i);
    text += "    devices:\n";
    for (int i = 0; i < mlds; ++i) {
        std::string sizes = "256MiB";
        for (int ld = 1; ld < lds; ++ld) sizes += ", 256MiB";
        text += fmt::format("      - {{name: mld{}-{}, kind: mld, serial: {:#x}, size: {}MiB, lds: [{}]}}\n",
                            number, i,
                            0x4d54000000000000ULL + (static_cast<std::uint64_t>(number) << 16U) +
                                (static_cast<std::uint64_t>(i) << 8U),
                            256 * lds, sizes);
    }
    return text;
}

// The emulated switches of a topology in a process of their own: this program with another argument.
class SwitchProcess {
  public:
    SwitchProcess(const test::TempFolder& folder, const std::string& name, const std::string& switches) {
        const std::string file = folder.file(name + ".yaml");
        std::ofstream(file) << "name: bench\nswitches:\n" << switches;
        int ends[2];
        if (::pipe(ends) != 0) throw std::runtime_error("pipe");
        pid_ = ::fork();
        if (pid_ == 0) {
            ::dup2(ends[1], STDOUT_FILENO);
            ::close(ends[0]);
            ::execl("/proc/self/exe", "bench_fmapi", "--switches", file.c_str(), nullptr);
            ::_exit(EXIT_FAILURE);
        }
        ::close(ends[1]);
        // It prints its first address when all of them listen.
        char byte = 0;
        while (::read(ends[0], &byte, 1) == 1 && byte != '\n') address_ += byte;
        ::close(ends[0]);
        if (pid_ < 0 || byte != '\n') throw std::runtime_error("the emulated switches do not start");
    }
    ~SwitchProcess() {
        ::kill(pid_, SIGTERM);
        ::waitpid(pid_, nullptr, 0);
    }
    SwitchProcess(const SwitchProcess&) = delete;
    SwitchProcess& operator=(const SwitchProcess&) = delete;
    [[nodiscard]] const std::string& address() const { return address_; }
    [[nodiscard]] int pid() const { return pid_; }

  private:
    std::string address_;
    pid_t pid_ = -1;
};

// A process that sends back whatever comes, as little as can be done over TCP: what a round trip costs on
// this machine without anybody who reads or writes a message.
class Echo {
  public:
    Echo() {
        const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        if (::bind(listener, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(listener, 1) != 0 ||
            ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) != 0)
            throw std::runtime_error("the echo process has no port");
        pid_ = ::fork();
        if (pid_ == 0) {
            const int peer = ::accept(listener, nullptr, nullptr);
            set_no_delay(peer);
            char buffer[kMessage];
            for (ssize_t got; (got = ::read(peer, buffer, sizeof buffer)) > 0;)
                if (::write(peer, buffer, static_cast<std::size_t>(got)) != got) break;
            ::_exit(EXIT_SUCCESS);
        }
        ::close(listener);
        socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
        if (pid_ < 0 || ::connect(socket_, reinterpret_cast<sockaddr*>(&at), size) != 0)
            throw std::runtime_error("the echo process does not answer");
        set_no_delay(socket_);
    }
    ~Echo() {
        ::close(socket_);
        ::waitpid(pid_, nullptr, 0);
    }
    Echo(const Echo&) = delete;
    Echo& operator=(const Echo&) = delete;

    // The median round trip in microseconds.
    [[nodiscard]] double round_trip() const {
        std::vector<double> times;
        char buffer[kMessage] = {};
        for (int i = 0; i < kRoundTrips; ++i) {
            const auto began = Clock::now();
            if (::write(socket_, buffer, sizeof buffer) != sizeof buffer ||
                ::recv(socket_, buffer, sizeof buffer, MSG_WAITALL) != sizeof buffer)
                throw std::runtime_error("the echo process is gone");
            times.push_back(seconds(Clock::now() - began) * 1e6);
        }
        std::ranges::nth_element(times, times.begin() + kRoundTrips / 2);
        return times[kRoundTrips / 2];
    }

  private:
    static constexpr std::size_t kMessage = 28;  // the answer to Background Operation Status, framed
    static void set_no_delay(int fd) {
        const int on = 1;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    int socket_ = -1;
    pid_t pid_ = -1;
};

}  // namespace

int serve(const char* file) {
    const auto topology = emul::load_topology(file);
    if (!topology) throw std::runtime_error(topology.error().message);
    asio::io_context io(1);
    std::vector<std::unique_ptr<emul::Switch>> switches;
    for (const emul::SwitchConfig& config : topology->switches) {
        auto opened = emul::Switch::open(io.get_executor(), *topology, config, emul::no_hotplug());
        if (!opened) throw std::runtime_error(opened.error().message);
        (*opened)->start();
        switches.push_back(*std::move(opened));
    }
    std::printf("%s\n", switches.front()->addresses().front().c_str());
    std::fflush(stdout);
    io.run();
    return EXIT_SUCCESS;
}

namespace {

std::unique_ptr<fm::FmApiClient> client_of(asio::io_context& io, const std::string& address,
                                           std::size_t in_flight) {
    fm::ClientOptions options;
    options.address = address;
    options.in_flight = in_flight;
    auto client = fm::make_fm_api_client(io.get_executor(), options);
    if (!client) throw std::runtime_error(client.error().message);
    return *std::move(client);
}

void run(asio::io_context& io, int& left) {
    while (left > 0) {
        if (io.stopped()) io.restart();
        io.run_one();
    }
}

// One command at a time; the median round trip in microseconds.
double round_trip(asio::io_context& io, fm::FmApiClient& client) {
    std::vector<double> times;
    int left = 1;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i < kRoundTrips; ++i) {
                const auto began = Clock::now();
                const auto answer = co_await client.background_status(fm::Target::the_switch());
                if (!answer) throw std::runtime_error(answer.error().message);
                times.push_back(seconds(Clock::now() - began) * 1e6);
            }
            --left;
        },
        [](const std::exception_ptr& error) {
            if (error) std::rethrow_exception(error);
        });
    run(io, left);
    std::ranges::nth_element(times, times.begin() + kRoundTrips / 2);
    return times[kRoundTrips / 2];
}

double commands_per_second(asio::io_context& io, fm::FmApiClient& client) {
    int asked = 0;
    int left = static_cast<int>(kInFlight);
    const auto began = Clock::now();
    for (std::size_t i = 0; i < kInFlight; ++i)
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                while (asked < kCommands) {
                    ++asked;
                    const auto answer = co_await client.background_status(fm::Target::the_switch());
                    if (!answer) throw std::runtime_error(answer.error().message);
                }
                --left;
            },
            [](const std::exception_ptr& error) {
                if (error) std::rethrow_exception(error);
            });
    run(io, left);
    return kCommands / seconds(Clock::now() - began);
}

// Everything that the manager reads of a switch, of all switches, over connections that are opened for it.
double inventory(const std::vector<std::string>& addresses) {
    asio::io_context io(1);
    const fm::Inventory nothing_known;
    int left = static_cast<int>(addresses.size());
    std::size_t ports = 0;
    std::vector<std::unique_ptr<fm::FmApiClient>> clients;
    for (const std::string& address : addresses) clients.push_back(client_of(io, address, 1));
    const auto began = Clock::now();
    for (std::size_t i = 0; i < clients.size(); ++i)
        asio::co_spawn(
            io,
            [&, i]() -> asio::awaitable<void> {
                fm::UnansweredHeads unanswered;
                const SwitchId id("switch" + std::to_string(i));
                const auto reading = co_await fm::read_switch(*clients[i], id, nothing_known, unanswered);
                if (!reading) throw std::runtime_error(reading.error().message);
                ports += reading->fabric.ports.size();
                if (reading->devices.size() != kMldsEach) throw std::runtime_error("a device is missing");
                --left;
            },
            [](const std::exception_ptr& error) {
                if (error) std::rethrow_exception(error);
            });
    run(io, left);
    const double took = seconds(Clock::now() - began);
    if (ports != static_cast<std::size_t>(kSwitches) * kPortsEach)
        throw std::runtime_error("ports are missing");
    return took;
}

void measure_one_switch(const test::TempFolder& folder) {
    const SwitchProcess one(folder, "one", switch_yaml(folder, 0, "tcp://127.0.0.1:0", 18, 2, 16, 16));
    print_figure(kBench, "idle_switch_256_lds_mb", "MB", {metrics::resident_bytes(one.pid()) / kMebibyte});
    std::vector<double> round_trips;
    std::vector<double> bare;
    std::vector<double> ratios;
    std::vector<double> rates;
    const Echo echo;
    for (int i = 0; i < kRuns; ++i) {
        bare.push_back(echo.round_trip());
        asio::io_context io(1);
        auto client = client_of(io, one.address(), 1);
        round_trips.push_back(round_trip(io, *client));
        ratios.push_back(round_trips.back() / bare.back());
        client = client_of(io, one.address(), kInFlight);
        rates.push_back(commands_per_second(io, *client));
    }
    print_figure(kBench, "round_trip_p50_us", "us", round_trips);
    print_figure(kBench, "bare_tcp_p50_us", "us", bare);
    print_figure(kBench, "round_trip_over_bare_tcp", "ratio", ratios);
    print_figure(kBench, "commands_per_second", "1/s", rates);
}

void measure_inventory(const test::TempFolder& folder) {
    std::string switches;
    std::vector<std::string> addresses;
    for (int i = 0; i < kSwitches; ++i) {
        addresses.push_back("unix://" + folder.file(fmt::format("s{}.sock", i)));
        switches += switch_yaml(folder, i, addresses.back(), kPortsEach, kHostsEach, kMldsEach, 4);
    }
    const SwitchProcess many(folder, "many", switches);
    std::vector<double> times;
    for (int i = 0; i < kRuns; ++i) times.push_back(inventory(addresses));
    print_figure(kBench, "inventory_4000_ports_s", "s", times);
}

}  // namespace

int measure() {
    const test::TempFolder folder;
    measure_one_switch(folder);
    measure_inventory(folder);
    return EXIT_SUCCESS;
}

}  // namespace memtide::bench

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--switches") return memtide::bench::serve(argv[2]);
    return memtide::bench::run_bench(&memtide::bench::measure);
}
