#include "tiering-agent/app/agent_api.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/json/array.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/base/nearest.h"
#include "common/base/no_throw.h"
#include "common/json/write.h"
#include "common/log/log.h"
#include "common/metrics/process.h"
#include "tiering-agent/app/agent_metrics.h"
#include "tiering-agent/balance/inspector_json.h"
#include "tiering-agent/balance/status_json.h"
#include "tiering-agent/observe/generations.h"
#include "tiering-agent/observe/pressure.h"
#include "tiering-agent/observe/words.h"

namespace memtide::agent {
namespace {

namespace asio = boost::asio;

// The thread that balances is away for a look at one process, a plan, or a few seconds of moves at most.
constexpr std::chrono::seconds kPatience{20};

http::Response answer_of(const boost::json::object& object) {
    return http::json_response(200, memtide::json::write(object));
}

http::Response refusal(const Error& error) {
    switch (error.code) {
        case ErrorCode::kNotFound:
            return http::problem(404, "not-found", error.message);
        case ErrorCode::kInvalidArgument:
            return http::problem(400, "invalid-request", error.message);
        case ErrorCode::kUnavailable:
            return http::problem(404, "not-supported", error.message);
        case ErrorCode::kPermission:
            return http::problem(403, "not-allowed", error.message);
        default:
            return http::problem(500, "internal-error", error.message);
    }
}

http::Response busy() {
    return http::problem(503, "busy", "the agent is busy looking at pages or moving them; try again");
}

// RFC 3339, to the second.
std::string format_time(LiveConfig::Clock::time_point time) {
    const std::time_t second = LiveConfig::Clock::to_time_t(time);
    std::tm utc{};
    ::gmtime_r(&second, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                       utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::vector<std::string> lines_of(std::string_view text) {
    std::vector<std::string> lines;
    while (!text.empty()) lines.emplace_back(take_line(text));
    return lines;
}

boost::json::array to_array(const std::vector<std::string>& texts) {
    return boost::json::array(texts.begin(), texts.end());
}

boost::json::value number_or_null(std::optional<double> number) {
    return number ? boost::json::value(*number) : boost::json::value();
}

using Names = std::set<std::string, std::less<>>;

// A mistyped parameter must not be an answer to another question.
Result<> check_parameters(const http::Request& request, const Names& known) {
    if (request.repeated_parameter)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("the query parameter {} is given twice", *request.repeated_parameter));
    for (const auto& [name, value] : request.query) {
        if (known.contains(name)) continue;
        const std::string_view meant = nearest_name(name, known);
        const std::string hint = known.empty()   ? "; it takes none"
                                 : meant.empty() ? fmt::format("; it takes {}", fmt::join(known, ", "))
                                                 : fmt::format("; did you mean \"{}\"?", meant);
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("{} has no query parameter \"{}\"{}", request.path, name, hint));
    }
    return {};
}

Result<int> read_pid(std::string_view text) {
    const auto pid = whole_number<int>(text);
    if (pid && *pid > 0) return *pid;
    return fail(ErrorCode::kInvalidArgument, fmt::format("pid: \"{}\" is no process id", text));
}

Result<std::uint64_t> read_address(std::string_view text) {
    std::string_view digits = text;
    if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
    if (const auto address = whole_number<std::uint64_t>(digits, 16)) return *address;
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("address: \"{}\" is not hexadecimal, such as 0x7f0012345000", text));
}

}  // namespace

// Of a question, on its way from the balancing thread; lives until both sides are done with it.
struct AgentApi::Answer {
    explicit Answer(const asio::any_io_executor& executor) : arrived(executor) {}
    asio::steady_timer arrived;  // cancelled when it has
    std::optional<Result<boost::json::object>> value;
};

AgentApi::AgentApi(asio::any_io_executor executor, Files& files, Balancer& balancer, LiveConfig& config)
    : executor_(std::move(executor)), files_(files), balancer_(balancer), config_(config) {
    metrics::add_process_metrics(registry_, "memtide-tiering-agent", MEMTIDE_VERSION);
    const auto add_now = [this](const char* path, auto answer) {
        router_.add("GET", path, [this, answer](http::Request request) -> asio::awaitable<http::Response> {
            const auto good = check_parameters(request, {});
            co_return good ? (this->*answer)() : refusal(good.error());
        });
    };
    const auto add_question = [this](const char* path, auto question) {
        router_.add("GET", path, [this, question](http::Request request) -> asio::awaitable<http::Response> {
            const auto good = check_parameters(request, {});
            if (!good) co_return refusal(good.error());
            Question asked = question;
            co_return co_await ask(std::move(asked));
        });
    };
    for (const auto& [method, begin] : {std::pair{"GET", false}, {"POST", true}})
        router_.add(method, "/v1/generations",
                    [this, begin](http::Request request) -> asio::awaitable<http::Response> {
                        const auto good = check_parameters(request, {});
                        co_return good ? generations(begin) : refusal(good.error());
                    });
    add_now("/v1/status", &AgentApi::status);
    add_now("/metrics", &AgentApi::metrics);
    add_question("/v1/wss", [](const Inspector& inspector) -> Result<boost::json::object> {
        return to_json(inspector.working_sets());
    });
    add_question("/v1/plan", [](const Inspector& inspector) -> Result<boost::json::object> {
        return to_json(inspector.plan());
    });
    router_.add("GET", "/v1/explain", [this](http::Request request) { return explain(std::move(request)); });
    router_.add("GET", "/v1/heat", [this](http::Request request) { return heat(std::move(request)); });
    router_.add("POST", "/v1/reload",
                [this](http::Request request) { return reload_for(std::move(request)); });
}

http::Response AgentApi::status() const {
    const BalanceStatus now = balancer_.status();
    boost::json::object object = to_json(now);
    object["pressure"] = number_or_null(read_memory_pressure(files_));
    // The one that waits most of the cgroups of a target.
    auto& targets = object["targets"].as_array();
    for (std::size_t i = 0; i < now.targets.size(); ++i) {
        std::optional<double> most;
        for (const std::string& cgroup : now.targets[i].cgroups)
            if (const auto pressure = read_memory_pressure(files_, cgroup))
                most = std::max(most.value_or(0), *pressure);
        targets[i].as_object()["pressure"] = number_or_null(most);
    }
    boost::json::object config{{"file", config_.file()},
                               {"loaded_at", format_time(config_.loaded_at())},
                               {"needs_restart", to_array(config_.keys_for_restart())},
                               {"last_error", nullptr}};
    if (const auto& failure = config_.failure())
        config["last_error"] = {{"at", format_time(failure->at)},
                                {"mistakes", to_array(lines_of(failure->why))}};
    object["config"] = std::move(config);
    return answer_of(object);
}

http::Response AgentApi::metrics() {
    set_metrics(registry_, balancer_.status());
    registry_
        .gauge("memtide_tiering_config_loaded_time_seconds", "When the configuration in service was read")
        .set(std::chrono::duration<double>(config_.loaded_at().time_since_epoch()).count());
    registry_
        .gauge("memtide_tiering_config_bad", "1 while the configuration file has mistakes since a reload")
        .set(config_.failure() ? 1 : 0);
    http::Response response;
    response.headers["Content-Type"] = "text/plain; version=0.0.4; charset=utf-8";
    response.body = registry_.render();
    return response;
}

// Of the cgroups of all targets; after a new one has begun for each, or as they are.
http::Response AgentApi::generations(bool begin) {
    std::set<std::string> cgroups;
    for (const auto& target : balancer_.status().targets)
        cgroups.insert(target.cgroups.begin(), target.cgroups.end());
    auto found = read_generations(files_, cgroups);
    if (found && begin) {
        if (const auto begun = begin_generations(files_, *found); !begun) return refusal(begun.error());
        found = read_generations(files_, cgroups);
    }
    if (!found) return refusal(found.error());
    boost::json::array rows;
    for (const CgroupGenerations& cgroup : *found)
        for (const NodeGenerations& node : cgroup.nodes)
            for (const Generation& one : node.generations)
                rows.push_back({{"cgroup", cgroup.cgroup},
                                {"node", node.node},
                                {"age_ms", one.age.count()},
                                {"anonymous", size_of_pages(one.anonymous_pages).value},
                                {"file", size_of_pages(one.file_pages).value}});
    return answer_of({{"generations", std::move(rows)}});
}

asio::awaitable<http::Response> AgentApi::ask(Question question) {
    const auto answer = std::make_shared<Answer>(executor_);
    answer->arrived.expires_after(kPatience);
    auto put = [this, answer, asked = std::move(question)] {
        auto value = std::make_shared<Result<boost::json::object>>(asked(Inspector(balancer_)));
        asio::post(executor_, [answer, value] {
            answer->value = std::move(*value);
            answer->arrived.cancel();
        });
    };
    const bool is_asked = balancer_.questions().ask(std::move(put));
    if (!is_asked) co_return busy();
    co_await answer->arrived.async_wait(kNoThrow);
    if (!answer->value) co_return busy();
    const Result<boost::json::object>& value = *answer->value;
    if (!value) co_return refusal(value.error());
    co_return answer_of(*value);
}

Result<LiveConfig::Change> AgentApi::reload(std::string_view whose, std::function<void()> applied) {
    auto change = config_.reload();
    if (!change) {
        for (const std::string& line : lines_of(change.error().message))
            log::error("the configuration cannot be used; the one of before stays",
                       {{"wanted_by", whose}, {"error", line}});
        return change;
    }
    log::info("the configuration was read again",
              {{"wanted_by", whose},
               {"changed", fmt::format("{}", fmt::join(change->keys, ","))},
               {"needs_restart", fmt::format("{}", fmt::join(change->keys_for_restart, ","))}});
    balancer_.set_config(config_.config().tiering, std::move(applied));
    return change;
}

asio::awaitable<http::Response> AgentApi::reload_for(http::Request request) {
    const auto good = check_parameters(request, {});
    if (!good) co_return refusal(good.error());
    const auto answer = std::make_shared<Answer>(executor_);
    answer->arrived.expires_after(kPatience);
    std::function<void()> applied = [executor = executor_, answer] {
        asio::post(executor, [answer] {
            answer->value.emplace();
            answer->arrived.cancel();
        });
    };
    const auto change = reload(request.peer, std::move(applied));
    if (!change && change.error().code == ErrorCode::kConflict)
        co_return http::problem(409, "no-config-file", change.error().message);
    if (!change) {
        const boost::json::object more{{"mistakes", to_array(lines_of(change.error().message))}};
        co_return http::problem(422, "invalid-config", change.error().message, more);
    }
    co_await answer->arrived.async_wait(kNoThrow);
    boost::json::object object{{"file", config_.file()},
                               {"mode", to_string(config_.config().tiering.mode)},
                               {"loaded_at", format_time(config_.loaded_at())},
                               {"changed", to_array(change->keys)},
                               {"needs_restart", to_array(change->keys_for_restart)},
                               {"in_service", answer->value.has_value()}};
    co_return answer_of(object);
}

asio::awaitable<http::Response> AgentApi::explain(http::Request request) {
    const auto good = check_parameters(request, {"pid", "address"});
    if (!good) co_return refusal(good.error());
    const auto pid = read_pid(request.query_value("pid").value_or(""));
    if (!pid) co_return refusal(pid.error());
    const auto address = read_address(request.query_value("address").value_or(""));
    if (!address) co_return refusal(address.error());
    Question question = [pid = *pid,
                         address = *address](const Inspector& inspector) -> Result<boost::json::object> {
        const auto explanation = inspector.explain(pid, address);
        if (!explanation) return std::unexpected(explanation.error());
        return to_json(*explanation);
    };
    co_return co_await ask(std::move(question));
}

asio::awaitable<http::Response> AgentApi::heat(http::Request request) {
    const auto good = check_parameters(request, {"pid", "target"});
    if (!good) co_return refusal(good.error());
    std::optional<int> wanted;
    if (const auto text = request.query_value("pid")) {
        const auto pid = read_pid(*text);
        if (!pid) co_return refusal(pid.error());
        wanted = *pid;
    }
    std::optional<std::string> target;
    if (const auto text = request.query_value("target")) target = std::string(*text);
    Question question = [wanted, target](const Inspector& inspector) -> Result<boost::json::object> {
        const auto picture = inspector.heat(wanted, target);
        if (!picture) return std::unexpected(picture.error());
        return to_json(*picture);
    };
    co_return co_await ask(std::move(question));
}

}  // namespace memtide::agent
