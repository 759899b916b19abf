#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/json/object.hpp>

#include "common/http/credentials.h"

namespace memtide::test {

// Speaks the agent channel of one host as the tiering agent does, without a kernel behind it: long polls the
// desired state, and reports what its behaviour makes of it. Comes back when the manager was away.
//
// The executor must be run by one thread; the members may be called from any.
class FakeAgent {
  public:
    // What it reports for one composition of the desired state (a member of its "compositions"): the members
    // of ObservedComposition besides id and serial; nothing: it leaves the composition out.
    using Behaviour = std::function<std::optional<boost::json::object>(const boost::json::object& desired)>;

    // `base_url` as http::Client's.
    FakeAgent(boost::asio::any_io_executor executor, std::string base_url, std::string host,
              Behaviour behaviour = obedient(),
              std::shared_ptr<http::Credentials> credentials = http::Credentials::none());
    // It falls silent; its coroutines end with their polls, or with the executor.
    ~FakeAgent();
    FakeAgent(const FakeAgent&) = delete;
    FakeAgent& operator=(const FakeAgent&) = delete;

    // From now on; reports anew at once.
    void behave(Behaviour behaviour);

    // Does everything at once.
    static Behaviour obedient();
    // Sees the memory appear and never brings it online.
    static Behaviour idle();
    // Brings memory online, and cannot take it offline: a process holds it.
    static Behaviour held_by(int pid, std::string command);
    // Sees none of its memory any more.
    static Behaviour blind();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace memtide::test
