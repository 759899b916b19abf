// Tenants: what each may have, and what it has.
#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fabric-manager/rest/answer.h"
#include "fabric-manager/rest/context.h"
#include "fabric-manager/rest/handlers.h"
#include "fabric-manager/rest/to_json.h"

namespace memtide::fm {
namespace {

bool may_see(const http::Request& request, const TenantStatus& tenant) {
    const Principal& caller = caller_of(request);
    return !caller.is_tenant() || caller.tenant == tenant.name;
}

}  // namespace

Answer list_tenants(Context& context, http::Request request) {
    const auto page = paging(request);
    if (!page) co_return answer(page.error());
    ListAnswer list;
    std::optional<std::string> next;
    std::string last;
    for (const TenantStatus& tenant : context.manager.tenants()) {
        if (!may_see(request, tenant) || (!page->page.empty() && tenant.name <= page->page)) continue;
        if (list.size() == page->limit) {
            next = last;
            break;
        }
        list.add(to_json(tenant));
        last = tenant.name;
    }
    co_return list.finish(next);
}

Answer get_tenant(Context& context, http::Request request) {
    const std::string& name = request.path_parameters.at("tenant");
    for (const TenantStatus& tenant : context.manager.tenants())
        if (tenant.name == name && may_see(request, tenant)) co_return answer(200, to_json(tenant));
    co_return answer(
        Problem{std::string(problem::kNotFound), fmt::format("there is no tenant named {}", name)});
}

}  // namespace memtide::fm
