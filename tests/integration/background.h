#pragma once

#include <future>
#include <thread>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

namespace memtide::test {

// An io_context with one thread of its own: what runs on it needs no locks.
class Background {
  public:
    Background() : guard_(boost::asio::make_work_guard(context_)), thread_([this] { context_.run(); }) {}
    ~Background() { stop(); }
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

    [[nodiscard]] boost::asio::any_io_executor executor() { return context_.get_executor(); }

    // Runs the coroutine there and waits for what it returns. Not from the thread itself.
    template <typename T>
    T run(boost::asio::awaitable<T> work) {
        return boost::asio::co_spawn(context_, std::move(work), boost::asio::use_future).get();
    }
    // Calls the function there and waits for what it returns.
    template <typename F>
    auto call(F function) {
        return run([](F f) -> boost::asio::awaitable<decltype(f())> { co_return f(); }(std::move(function)));
    }

    // Ends the thread; what still waits is never resumed.
    void stop() {
        context_.stop();
        if (thread_.joinable()) thread_.join();
    }

  private:
    boost::asio::io_context context_{1};
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
    std::thread thread_;
};

}  // namespace memtide::test
