#include "cli/commands/agent.h"

#include "cli/render/agent.h"
#include "common/daemon/exit_code.h"

namespace memtide::cli {

int show_agent_status(const ManagerClient& agent, Output& output) {
    const auto status = agent.get("/v1/status", is_agent_status);
    if (!status) {
        // The manager is not who was asked.
        Failure failure = status.error();
        if (failure.kind == ErrorCode::kUnavailable)
            failure = no_answer({failure.kind,
                                 "no tiering agent answers on this machine; does memtide-tiering-agent "
                                 "run, with `tiering` in its configuration? (--socket says where)"});
        return output.failure(failure);
    }
    if (output.json())
        output.value(*status);
    else
        output.text(render_agent_status(*status));
    return daemon::kExitOk;
}

}  // namespace memtide::cli
