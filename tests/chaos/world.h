#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

#include "tests/integration/daemons.h"
#include "tests/integration/rest_client.h"
#include "tests/integration/secured.h"
#include "tests/integration/temp_folder.h"

namespace memtide::test {

inline constexpr int kChaosDevices = 2;  // behind each switch

struct ChaosOptions {
    std::uint64_t seed = 1;
    std::chrono::seconds time{40};
    int hosts = 24;
    int switches = 3;
    std::string kind = "mld";  // of devices, or "dcd"
    bool secured = false;      // TLS, agents known by their certificates, clients by a token
};

// What a client was told it has, and what it did with it.
struct Acknowledged {
    std::string host;
    bool release_acknowledged = false;
    bool forced = false;
};

// A request whose answer never came: it may or may not have been carried out.
struct Unanswered {
    std::string key;
    std::string host;
    std::string body;
};

// The real manager and the emulated fleet, and what their clients know. Blocking; one thread.
class World {
  public:
    explicit World(const ChaosOptions& options);

    // --- Clients ---
    // `more`: further members of the request, as JSON.
    void compose(std::string host, int granules, const std::string& more);
    void change(const std::string& id, const std::string& body);
    void release(const std::string& id, bool force);
    // Asks again what was not answered.
    void repeat_unanswered();
    RestAnswer ask(const std::string& method, const std::string& target);
    RestAnswer ask_json(const std::string& method, const std::string& target, const std::string& body);

    // --- Disasters ---
    // PUT, or DELETE, of a resource of the fleet's control interface.
    void control(const std::string& method, const std::string& target);
    boost::json::value fleet(const std::string& target);
    void kill_manager();
    void restart_manager_politely();
    void start_manager();
    // Of a world that is secured: files are replaced under the running daemons. `revokes`: the host's old
    // certificate is refused first, and for some time there is none.
    void renew_server_certificate() { secured_->renew_server(); }
    void renew_agent_certificate(const std::string& host, bool revokes);
    [[nodiscard]] const Secured* secured() const { return secured_.get(); }
    [[nodiscard]] bool manager_runs() { return manager_ && manager_->child().running(); }

    // All that is listed, over all pages.
    std::vector<boost::json::value> compositions();
    // Every event that is kept, by id.
    std::vector<boost::json::value> events();

    void wrong(std::string what);
    [[nodiscard]] const std::vector<std::string>& mistakes() const { return mistakes_; }
    [[nodiscard]] const std::map<std::string, Acknowledged>& acknowledged() const { return acknowledged_; }
    // Ids that may not have ended, as far as the clients know.
    std::vector<std::string> living() const;
    void ended(const std::string& id) { ended_.insert(id); }
    [[nodiscard]] const ChaosOptions& options() const { return options_; }
    [[nodiscard]] std::uint64_t capacity() const;
    [[nodiscard]] int manager_starts() const { return manager_starts_; }
    // What the daemons printed last, for whoever looks into a failure.
    std::string logs() const;

  private:
    bool try_compose(const Unanswered& request);

    ChaosOptions options_;
    TempFolder folder_;
    std::unique_ptr<Secured> secured_;  // null: it is not
    std::optional<Daemon> fleet_;
    std::optional<Daemon> manager_;
    RestClient rest_;
    RestClient control_;
    std::map<std::string, Acknowledged> acknowledged_;
    std::set<std::string> ended_;
    std::vector<Unanswered> unanswered_;
    std::vector<std::string> mistakes_;
    int keys_ = 0;
    int manager_starts_ = 0;
};

}  // namespace memtide::test
