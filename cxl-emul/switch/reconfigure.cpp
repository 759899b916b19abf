#include "cxl-emul/switch/reconfigure.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::emul {
namespace {

// FFh stands for "all" on the wire.
constexpr std::uint8_t kNoVcs = 0xff;

Result<Vcs*> find(SwitchModel& model, std::uint8_t id) {
    const auto index = model.find_vcs(id);
    if (!index) return fail(ErrorCode::kNotFound, fmt::format("there is no VCS {}", id));
    return &model.vcss[*index];
}

// Whether nothing is bound to the vPPBs from `first` on.
Result<> must_be_free(const Vcs& vcs, std::size_t first) {
    for (std::size_t vppb = first; vppb < vcs.vppbs.size(); ++vppb)
        if (!vcs.vppbs[vppb].is_free())
            return fail(ErrorCode::kConflict,
                        fmt::format("vPPB {} of VCS {} is bound; unbind it first", vppb, vcs.config.id));
    return {};
}

Result<> change(SwitchModel& model, const AddVcs& add) {
    const VcsConfig& wanted = add.vcs;
    if (wanted.id == kNoVcs || wanted.vppbs == 0)
        return fail(ErrorCode::kInvalidArgument, "a VCS has an id below 255 and at least one vPPB");
    if (model.find_vcs(wanted.id))
        return fail(ErrorCode::kAlreadyExists, fmt::format("VCS {} is there already", wanted.id));
    const auto port = model.find_port(wanted.upstream_port);
    if (!port || !model.ports[*port].config.host)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("port {} is not an upstream port", wanted.upstream_port));
    for (const Vcs& vcs : model.vcss)
        if (vcs.exists && vcs.config.upstream_port == wanted.upstream_port)
            return fail(ErrorCode::kAlreadyExists,
                        fmt::format("VCS {} has upstream port {}", vcs.config.id, wanted.upstream_port));
    // Operations know a VCS by its place in the list: places of removed ones are taken, none is moved.
    const auto place = std::ranges::find(model.vcss, false, &Vcs::exists);
    Vcs& vcs = place == model.vcss.end() ? model.vcss.emplace_back() : *place;
    vcs = {wanted, std::vector<VirtualBridge>(wanted.vppbs)};
    return {};
}

Result<> change(SwitchModel& model, const RemoveVcs& remove) {
    const auto vcs = find(model, remove.id);
    if (!vcs) return std::unexpected(vcs.error());
    if (auto is_free = must_be_free(**vcs, 0); !is_free) return is_free;
    (*vcs)->vppbs.clear();
    (*vcs)->exists = false;
    return {};
}

Result<> change(SwitchModel& model, const EnableVcs& enable) {
    const auto vcs = find(model, enable.id);
    if (!vcs) return std::unexpected(vcs.error());
    if (!enable.enabled)
        if (auto is_free = must_be_free(**vcs, 0); !is_free) return is_free;
    (*vcs)->enabled = enable.enabled;
    return {};
}

Result<> change(SwitchModel& model, const ResizeVcs& resize) {
    const auto vcs = find(model, resize.id);
    if (!vcs) return std::unexpected(vcs.error());
    if (resize.vppbs == 0)
        return fail(ErrorCode::kInvalidArgument, "a VCS has at least one vPPB; remove it to have none");
    if (auto is_free = must_be_free(**vcs, resize.vppbs); !is_free) return is_free;
    (*vcs)->vppbs.resize(resize.vppbs);
    (*vcs)->config.vppbs = resize.vppbs;
    return {};
}

}  // namespace

Result<> reconfigure(SwitchModel& model, const VcsChange& wanted) {
    return std::visit([&](const auto& one) { return change(model, one); }, wanted);
}

}  // namespace memtide::emul
