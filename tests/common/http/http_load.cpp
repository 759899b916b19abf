// memtide-http-load [SECONDS [CONNECTIONS]]: small requests a second over loopback against a server of one
// thread, from a generator of one thread. Prints one JSON line.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "common/http/client.h"
#include "common/http/server.h"

namespace {

namespace asio = boost::asio;
using namespace memtide;

asio::awaitable<http::Response> small(http::Request) {
    http::Response response = http::json_response(200, R"({"state":"Online"})");
    co_return response;
}

asio::awaitable<void> ask(http::Client& client, const std::atomic<bool>& stop, std::uint64_t& count) {
    while (!stop) {
        http::ClientRequest request;
        request.target = "/v1/compositions/c-7f3k2m9q1x";
        const auto response = co_await client.send(std::move(request));
        if (!response || response->status != 200) {
            std::fprintf(stderr, "failed: %s\n", response ? "status" : response.error().message.c_str());
            co_return;
        }
        ++count;
    }
}

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
    const int connections = argc > 2 ? std::atoi(argv[2]) : 16;
    http::Router router;
    router.add("GET", "/v1/compositions/{id}", small);
    asio::io_context server_context(1);
    http::Server server(server_context.get_executor(), router);
    if (!server.listen("127.0.0.1:0")) return 1;
    std::thread thread([&server_context] { server_context.run(); });

    asio::io_context context(1);
    std::vector<std::unique_ptr<http::Client>> clients;
    std::atomic<bool> stop = false;
    std::uint64_t count = 0;
    for (int i = 0; i < connections; ++i) {
        clients.push_back(std::make_unique<http::Client>(
            context.get_executor(), "http://127.0.0.1:" + std::to_string(server.port())));
        asio::co_spawn(context, ask(*clients.back(), stop, count), asio::detached);
    }
    const auto begin = std::chrono::steady_clock::now();
    context.run_for(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds)));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    stop = true;
    server_context.stop();
    thread.join();
    std::printf(R"({"bench":"http-load","figure":"requests per second","value":%.0f,"unit":"1/s"})"
                "\n",
                static_cast<double>(count) / took.count());
    return 0;
}
