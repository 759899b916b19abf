// What the process says about itself.
#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/openapi.h"

namespace memtide::fm {

Answer get_openapi(Context&, http::Request) {
    co_return http::json_response(200, std::string(openapi_document()));
}

Answer get_metrics(Context& context, http::Request) {
    http::Response response;
    response.headers["Content-Type"] = "text/plain; version=0.0.4; charset=utf-8";
    response.body = context.metrics.render();
    co_return response;
}

// Answers as long as the event loop turns.
Answer get_health(Context&, http::Request) {
    boost::json::object body;
    body["status"] = "ok";
    co_return answer(200, body);
}

// Whoever may not see the fabric is not told what is wrong with it.
Answer get_readiness(Context& context, http::Request request) {
    Readiness readiness = context.manager.readiness();
    if (context.options.gate != nullptr)
        for (std::string& trouble : context.options.gate->troubles())
            readiness.reasons.push_back(std::move(trouble));
    boost::json::array reasons;
    if (caller_of(request).has(Privilege::kReadFabric))
        for (const std::string& reason : readiness.reasons) reasons.emplace_back(reason);
    boost::json::object body;
    body["ready"] = readiness.ready;
    body["reasons"] = std::move(reasons);
    co_return answer(readiness.ready ? 200 : 503, body);
}

}  // namespace memtide::fm
