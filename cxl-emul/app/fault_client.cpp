#include "cxl-emul/app/fault_client.h"

#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "common/http/client.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {

std::string detail_of(const http::ClientResponse& response) {
    boost::system::error_code error;
    const json::value body = json::parse(response.body, error);
    const json::object* problem = error ? nullptr : body.if_object();
    const json::value* detail = problem == nullptr ? nullptr : problem->if_contains("detail");
    if (detail != nullptr && detail->is_string()) return std::string(detail->get_string());
    return "answered " + std::to_string(response.status);
}

}  // namespace

Result<std::string> call_control(const std::string& control, const std::string& method,
                                 const std::string& target, std::string body) {
    const std::string url = control.starts_with("unix:") ? control : "http://" + control;
    asio::io_context context(1);
    http::Client client(context.get_executor(), url);
    http::ClientRequest request;
    request.method = method;
    request.target = target;
    request.body = std::move(body);
    request.timeout = std::chrono::seconds(10);
    Result<http::ClientResponse> answer = fail(ErrorCode::kInternal, "no answer");
    asio::co_spawn(context, client.send(std::move(request)),
                   [&](const std::exception_ptr& error, Result<http::ClientResponse> got) {
                       if (!error) answer = std::move(got);
                   });
    context.run();
    if (!answer) return std::unexpected(std::move(answer.error()).with_context(control));
    if (answer->status < 300) return std::move(answer->body);
    return fail(answer->status == 404 ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument,
                detail_of(*answer));
}

}  // namespace memtide::emul
