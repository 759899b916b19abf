#include "tests/integration/rest_client.h"

#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <fmt/format.h>

#include "common/http/client.h"

namespace memtide::test {

namespace json = boost::json;

std::string text(const json::value& object, std::string_view member) {
    const json::object* members = object.if_object();
    const json::value* value = members == nullptr ? nullptr : members->if_contains(member);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

std::string RestAnswer::code() const { return text(json, "code"); }

struct RestClient::Impl {
    Impl(std::string base_url, std::shared_ptr<http::Credentials> credentials)
        : client(context.get_executor(), std::move(base_url), std::move(credentials)) {}

    boost::asio::io_context context{1};
    http::Client client;

    template <typename Work>
    RestAnswer run(Work work) {
        auto future = boost::asio::co_spawn(context, std::move(work), boost::asio::use_future);
        context.restart();
        context.run();
        Result<http::ClientResponse> response = future.get();
        RestAnswer answer;
        if (!response) {
            answer.body = response.error().message;
            return answer;
        }
        answer.status = response->status;
        answer.headers = std::move(response->headers);
        answer.body = std::move(response->body);
        boost::system::error_code not_json;
        answer.json = json::parse(answer.body, not_json);
        return answer;
    }
};

RestClient::RestClient(std::string base_url, std::shared_ptr<http::Credentials> credentials)
    : impl_(std::make_unique<Impl>(std::move(base_url), std::move(credentials))) {}
RestClient::~RestClient() = default;

RestAnswer RestClient::call(const std::string& method, const std::string& target, std::string body,
                            http::Headers headers, std::chrono::milliseconds timeout) {
    http::ClientRequest request;
    request.method = method;
    request.target = target;
    request.headers = std::move(headers);
    request.body = std::move(body);
    request.timeout = timeout;
    return impl_->run(impl_->client.send(std::move(request)));
}

RestAnswer RestClient::send_json(const std::string& method, const std::string& target, std::string body,
                                 http::Headers headers) {
    headers["Content-Type"] = "application/json";
    return call(method, target, std::move(body), std::move(headers));
}

RestAnswer RestClient::compose(std::string_view host, std::string_view size, http::Headers headers) {
    json::object body;
    body["host"] = host;
    body["size"] = size;
    return send_json("POST", "/v1/compositions", json::serialize(body), std::move(headers));
}

json::value RestClient::wait(std::string_view id, std::string_view state, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < deadline) {
        const RestAnswer answer =
            call("GET", fmt::format("/v1/compositions/{}?wait={}&timeout=5s", id, state));
        const std::string now = text(answer.json, "state");
        if (answer.status == 200 && (now == state || now == "Released" || now == "Failed"))
            return answer.json;
        if (answer.status != 200) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return nullptr;
}

RestAnswer RestClient::stream(const std::string& target, http::Headers headers,
                              std::function<bool(std::string_view)> on_chunk) {
    http::ClientRequest request;
    request.target = target;
    request.headers = std::move(headers);
    return impl_->run(impl_->client.stream(std::move(request), std::move(on_chunk)));
}

const boost::json::value& only_part(const boost::json::value& composition) {
    const boost::json::array& parts = composition.at("parts").as_array();
    if (parts.size() != 1) throw std::runtime_error("the composition has not one part");
    return parts.front();
}

}  // namespace memtide::test
