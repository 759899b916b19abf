#include "cxl-emul/qemu/dynamic_capacity.h"

#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {

// Names of QEMU's qapi/cxl.json.
std::string_view to_string(QemuDcSelection selection) {
    switch (selection) {
        case QemuDcSelection::kFree:
            return "free";
        case QemuDcSelection::kContiguous:
            return "contiguous";
        case QemuDcSelection::kPrescriptive:
            return "prescriptive";
        case QemuDcSelection::kEnableSharedAccess:
            return "enable-shared-access";
    }
    return "";
}

std::string_view to_string(QemuDcRemoval removal) {
    return removal == QemuDcRemoval::kTagBased ? "tag-based" : "prescriptive";
}

// What both commands have.
json::object arguments_of(const std::string& device, std::uint16_t host, std::uint8_t region,
                          const std::string& tag, const std::vector<QemuDcExtent>& extents) {
    json::object arguments;
    arguments["path"] = "/machine/peripheral/" + device;
    arguments["host-id"] = host;
    arguments["region"] = region;
    if (!tag.empty()) arguments["tag"] = tag;
    json::array list;
    for (const QemuDcExtent& extent : extents) {
        json::object one;
        one["offset"] = extent.offset.value;
        one["len"] = extent.length.value;
        list.push_back(std::move(one));
    }
    arguments["extents"] = std::move(list);
    return arguments;
}

}  // namespace

asio::awaitable<Result<>> add_dynamic_capacity(QmpClient& qmp, QemuDcAdd request) {
    json::object arguments =
        arguments_of(request.device, request.host, request.region, request.tag, request.extents);
    arguments["selection-policy"] = to_string(request.selection);
    const auto answer = co_await qmp.execute("cxl-add-dynamic-capacity", std::move(arguments));
    if (!answer) co_return std::unexpected(answer.error());
    co_return Result<>{};
}

asio::awaitable<Result<>> release_dynamic_capacity(QmpClient& qmp, QemuDcRelease request) {
    json::object arguments =
        arguments_of(request.device, request.host, request.region, request.tag, request.extents);
    arguments["removal-policy"] = to_string(request.removal);
    arguments["forced-removal"] = request.forced;
    arguments["sanitize-on-release"] = request.sanitize;
    const auto answer = co_await qmp.execute("cxl-release-dynamic-capacity", std::move(arguments));
    if (!answer) co_return std::unexpected(answer.error());
    co_return Result<>{};
}

}  // namespace memtide::emul
