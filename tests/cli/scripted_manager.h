#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "common/http/server.h"
#include "common/process/child.h"

namespace memtide::cli {

namespace asio = boost::asio;

// Answers every request with what `answer` makes of it, and remembers the requests.
class ScriptedManager {
  public:
    using Answer = std::function<http::Response(const http::Request&)>;

    // `address`: as http::Server::listen().
    explicit ScriptedManager(Answer answer, const std::string& address = "127.0.0.1:0")
        : answer_(std::move(answer)) {
        for (const char* method : {"GET", "POST", "DELETE"})
            for (const char* pattern : {"/v1/{a}", "/v1/{a}/{b}", "/v1/{a}/{b}/{c}"})
                router_.add(method, pattern,
                            [this](http::Request request) { return handle(std::move(request)); });
        server_ = std::make_unique<http::Server>(context_.get_executor(), router_);
        EXPECT_TRUE(server_->listen(address));
        url_ = "http://127.0.0.1:" + std::to_string(server_->port());
        thread_ = std::thread([this] { context_.run(); });
    }
    ~ScriptedManager() {
        context_.stop();
        thread_.join();
    }
    ScriptedManager(const ScriptedManager&) = delete;
    ScriptedManager& operator=(const ScriptedManager&) = delete;

    [[nodiscard]] const std::string& url() const { return url_; }
    std::vector<http::Request> requests() {
        const std::lock_guard lock(mutex_);
        return requests_;
    }

  private:
    asio::awaitable<http::Response> handle(http::Request request) {
        http::Response response = answer_(request);
        const std::lock_guard lock(mutex_);
        requests_.push_back(std::move(request));
        co_return response;
    }

    Answer answer_;
    std::mutex mutex_;
    std::vector<http::Request> requests_;
    asio::io_context context_{1};
    asio::executor_work_guard<asio::io_context::executor_type> guard_{context_.get_executor()};
    http::Router router_;
    std::unique_ptr<http::Server> server_;
    std::string url_;
    std::thread thread_;
};

// The real program; `url` is where it looks for its manager.
inline process::Command memtide_command(const std::string& url, const std::vector<std::string>& arguments) {
    process::Command command;
    command.argv = {MEMTIDE_CLI};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.environment["MEMTIDE_URL"] = url;
    return command;
}

inline process::Output finish(process::Command command) {
    auto output = process::run(std::move(command), std::chrono::seconds(60));
    EXPECT_TRUE(output) << output.error().message;
    return output ? *output : process::Output{};
}

inline process::Output memtide(const std::string& url, const std::vector<std::string>& arguments) {
    return finish(memtide_command(url, arguments));
}

// `"$@"` in the line is the program with these arguments.
inline process::Output memtide_in_shell(const std::string& url, const std::vector<std::string>& arguments,
                                        const std::string& line) {
    process::Command command = memtide_command(url, arguments);
    command.argv.insert(command.argv.begin(), {"/bin/sh", "-c", line, "sh"});
    return finish(std::move(command));
}

inline std::string composition(const std::string& state, const std::string& more = "") {
    return R"({"id": "c-1", "host": "host0", "size": 268435456, "state": ")" + state + "\"" + more + "}";
}

}  // namespace memtide::cli
