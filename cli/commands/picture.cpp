#include "cli/commands/picture.h"

#include "cli/client/resources.h"
#include "cli/commands/rack.h"
#include "cli/render/fabric_picture.h"
#include "common/daemon/exit_code.h"
#include "common/diagram/svg.h"

namespace memtide::cli {

int draw_topology(const ManagerClient& manager, Output& output) {
    const auto answer = manager.get("/v1/topology", is_topology);
    if (!answer) return output.failure(answer.error());
    output.text(diagram::to_svg(picture_of_topology(*answer)));
    return daemon::kExitOk;
}

int draw_topology_file(const Output& output, const std::string& file) {
    return become_emulator(output, {"draw", file});
}

}  // namespace memtide::cli
