#include <algorithm>

#include "cxl-emul/switch/command_table.h"
#include "cxl-emul/switch/link_values.h"

// Multi-headed device command set (CXL 3.1, 7.6.7.5). Every head answers the same: the port number of head n
// is n here.
namespace memtide::emul {

using fmapi::ReturnCode;

Outcome multi_headed_info(const DeviceContext& context, const fmapi::GetMultiHeadedInfoRequest& request) {
    const DeviceConfig& config = context.device().config;
    if (request.limit == 0 || request.first_ld >= config.ld_heads.size())
        return refuse(ReturnCode::kInvalidInput);
    fmapi::GetMultiHeadedInfoResponse response;
    response.total_lds = static_cast<std::uint8_t>(config.ld_heads.size());
    response.heads = static_cast<std::uint8_t>(config.heads);
    response.first_ld = request.first_ld;
    const std::size_t listed =
        std::min<std::size_t>(config.ld_heads.size() - request.first_ld, request.limit);
    const auto begin = config.ld_heads.begin() + request.first_ld;
    response.ld_map.assign(begin, begin + static_cast<std::ptrdiff_t>(listed));
    return done(response);
}

Outcome head_info(const DeviceContext& context, const fmapi::GetHeadInfoRequest& request) {
    const unsigned heads = context.device().config.heads;
    if (request.heads == 0 || unsigned{request.first_head} + request.heads > heads)
        return refuse(ReturnCode::kInvalidInput);
    fmapi::GetHeadInfoResponse response;
    for (unsigned i = 0; i < request.heads; ++i)
        response.heads.push_back({.port_number = static_cast<std::uint8_t>(request.first_head + i),
                                  .max_link_width = kLanes,
                                  .negotiated_link_width = kLanes,
                                  .supported_link_speeds = kSpeedsUpTo32GTs,
                                  .max_link_speed = k32GTs,
                                  .current_link_speed = k32GTs,
                                  .ltssm_state = kLtssmL0});
    return done(response);
}

}  // namespace memtide::emul
