// What a client may send to the server: in pieces of any size, pipelined, to a router with routes of every
// kind.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "common/http/encode.h"
#include "common/http/request_parser.h"
#include "common/http/router.h"

namespace {

using namespace memtide::http;

constexpr std::size_t kHeaderLimit = 2048;
constexpr std::size_t kBodyLimit = 4096;

void require(bool condition) {
    if (!condition) std::abort();
}

boost::asio::awaitable<Response> answer(Request request) {
    Response response = problem(422, "invalid-request", request.path + request.body);
    for (const auto& [name, value] : request.headers) response.headers.insert_or_assign(name, value);
    for (const auto& [name, value] : request.query) response.headers.insert_or_assign(name, value);
    for (const auto& [name, value] : request.path_parameters)
        response.headers.insert_or_assign("X-" + name, value);
    co_return response;
}

Router make_router() {
    Router router;
    for (const char* method : {"GET", "POST", "DELETE"}) router.add(method, "/v1/compositions", answer);
    router.add("PUT", "/v1/hosts/{host}/observed", answer);
    router.add("GET", "/{a}/{b}", answer);
    return router;
}

void dispatch(Request request, bool keep_alive) {
    static const Router router = make_router();
    require(request.body.size() <= kBodyLimit);
    require(request.path == "*" || request.path.starts_with('/'));
    require(request.path.find('\0') == std::string::npos);
    const bool head = request.method == "HEAD";
    boost::asio::io_context context;
    boost::asio::co_spawn(context, router.dispatch(std::move(request)),
                          [&](const std::exception_ptr& error, const Response& response) {
                              require(!error);
                              // Nothing in a header may end the header early.
                              const std::string text = encode_head(response, Framing::kLength, keep_alive);
                              require(text.find("\r\n\r\n") == text.size() - 4);
                              (void)encode(response, head, keep_alive);
                          });
    context.run();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const std::size_t step = data[0] == 0 ? size : data[0];
    const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
    std::string buffer;
    RequestParser parser(kHeaderLimit, kBodyLimit);
    for (std::size_t at = 0; at < all.size(); at += step) {
        buffer.append(all.substr(at, step));
        for (;;) {
            std::string_view bytes = buffer;
            const auto state = parser.feed(bytes);
            require(bytes.size() <= buffer.size());
            buffer.erase(0, buffer.size() - bytes.size());
            if (state == RequestParser::State::kFailed) {
                require(parser.refusal().status >= 400);
                return 0;
            }
            if (state != RequestParser::State::kComplete) {
                require(buffer.size() <= kHeaderLimit);
                break;
            }
            const bool keep_alive = parser.keep_alive();
            (void)parser.may_chunk();
            dispatch(parser.take(), keep_alive);
            if (!keep_alive) return 0;
            parser = RequestParser(kHeaderLimit, kBodyLimit);
            if (buffer.empty()) break;
        }
    }
    return 0;
}
