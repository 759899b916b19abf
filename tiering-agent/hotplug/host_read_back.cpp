// Reading a region back before it becomes system RAM.
//
// dax_cxl's devices are of the kind that the kmem driver takes as soon as they appear, and the kernel may put
// their memory online in the same moment. So while a region that has to be read back is enabled, the dax bus
// is told not to look for drivers (drivers_autoprobe); that this is held is noted in the records first, so
// that an agent that was killed meanwhile puts it back. Then the device goes to device_dax under its name
// (new_id), is mapped and read, and is nobody's again. Binding it to kmem is the next step of the plan.
#include <random>

#include <fmt/format.h>

#include "common/log/log.h"
#include "tiering-agent/hotplug/host.h"
#include "tiering-agent/hotplug/read_back.h"

namespace memtide::agent {
namespace {

const std::string kAutoprobe = "sys/bus/dax/drivers_autoprobe";
const std::string kDeviceDax = std::string(kDaxDrivers) + "device_dax";

std::string driver_of(const Files& files, const std::string& dax) {
    return files.link_target(fmt::format("{}{}/driver", kDaxDevices, dax)).value_or("");
}

Interleave interleave_of(const Files& files, const std::string& region) {
    const std::string path = "sys/bus/cxl/devices/" + region;
    Interleave interleave;
    if (const auto ways = files.read_number(path + "/interleave_ways"); ways && *ways != 0)
        interleave.ways = static_cast<unsigned>(*ways);
    if (const auto bytes = files.read_number(path + "/interleave_granularity"); bytes && *bytes != 0)
        interleave.granularity = static_cast<unsigned>(*bytes);
    return interleave;
}

}  // namespace

Result<> forget_dax_name(Files& files, const std::string& driver, const std::string& dax) {
    const std::string path = fmt::format("{}{}/remove_id", kDaxDrivers, driver);
    if (!files.exists(path)) return {};
    return files.write(path, dax);
}

// Puts back what an agent that was killed could not.
void SysfsHost::let_autoprobe_go() {
    if (!parts_.records.holds_autoprobe()) return;
    Result<> done = parts_.files.write(kAutoprobe, "1");
    if (done) done = parts_.records.note_autoprobe(false);
    if (!done)
        log::warning("new dax devices of this host get no driver by themselves; tried again",
                     {{"file", kAutoprobe}, {"reason", done.error()}});
}

// A step that makes a dax device, without any driver taking that; like any other step when nothing is to be
// read back.
Result<> SysfsHost::perform_quietly(const Action& action, const std::function<Result<>()>& step) {
    Files& files = parts_.files;
    if (!action.verify) return step();
    // Drivers that come later would look for devices of theirs, autoprobe or not. What is missing shows
    // later.
    for (const char* module : {"dax_cxl", "device_dax", "kmem"}) (void)parts_.modules.load(module);
    // Off already: whoever did that wants it so.
    if (files.read(kAutoprobe).value_or("0") != "1") return step();
    if (auto noted = parts_.records.note_autoprobe(true); !noted) return noted;
    if (auto held = files.write(kAutoprobe, "0"); !held) return held;
    Result<> done = step();
    let_autoprobe_go();
    return done;
}

Result<> SysfsHost::enter_device_dax(const std::string& dax) {
    Files& files = parts_.files;
    const std::string driver = driver_of(files, dax);
    if (driver == "device_dax") return {};
    if (!driver.empty())
        return fail(ErrorCode::kConflict, fmt::format("{} was taken by the driver {}", dax, driver));
    if (auto named = files.write(kDeviceDax + "/new_id", dax); !named) return named;
    if (driver_of(files, dax) == "device_dax") return {};
    return files.write(kDeviceDax + "/bind", dax);
}

Result<ReadBack> SysfsHost::read_samples(const Action& action) {
    Files& files = parts_.files;
    const auto size = files.read_number(fmt::format("{}{}/size", kDaxDevices, action.dax));
    if (!size) return std::unexpected(size.error());
    if (auto entered = enter_device_dax(action.dax); !entered) return std::unexpected(entered.error());
    ReadBackJob job{.device = files.absolute("dev/" + action.dax),
                    .size = {*size},
                    .interleave = interleave_of(files, action.region),
                    .pattern = action.verify->pattern,
                    .offsets = {}};
    // Another seed each time: what is left in a corner is found sooner or later, and cannot be arranged for.
    std::random_device device;
    const std::uint64_t seed = std::uint64_t{device()} << 32 | device();
    job.offsets = sample_offsets(job.size, std::uint64_t{action.verify->samples} * job.interleave.ways, seed);
    return read_back(job, [this] { return parts_.interruption.requested(); });
}

ActionResult SysfsHost::read_back_region(const Action& action) {
    const auto failed = [](const Error& error) {
        return ActionResult{.error = Finding{"read-back-failed", error.message}};
    };
    const Result<ReadBack> found = read_samples(action);
    // Nobody's again, whatever came of it: what is not erased is nobody's business on this host.
    if (driver_of(parts_.files, action.dax) == "device_dax")
        if (auto left = parts_.files.write(kDeviceDax + "/unbind", action.dax); !left)
            return failed(left.error());
    if (auto forgotten = forget_dax_name(parts_.files, "device_dax", action.dax); !forgotten)
        return failed(forgotten.error());
    if (!found) return failed(found.error());
    RegionRecord record{.region = action.region,
                        .serials = action.serials,
                        .range = action.range,
                        .read_back = *found,
                        .blocks = {}};
    if (found->dirty != 0)
        log::error("memory that was not erased", {{"region", action.region}, {"reason", describe(record)}});
    if (auto kept = parts_.records.put(std::move(record)); !kept) return failed(kept.error());
    return {};
}

}  // namespace memtide::agent
