#include "cxl-emul/rack/rack.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/fmapi/commands.h"
#include "common/log/log.h"
#include "cxl-emul/qemu/kvm_probe.h"
#include "cxl-emul/rack/rack_hotplug.h"
#include "cxl-emul/rack/rack_plan.h"
#include "cxl-emul/switch/media.h"
#include "cxl-emul/switch/switch.h"

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::steady_clock;

namespace {

asio::awaitable<void> pause(std::chrono::milliseconds time) {
    asio::steady_timer timer(co_await asio::this_coro::executor, time);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
}

// Runs one background command of a switch to its end, waiting for its turn when another one is under way.
asio::awaitable<Result<>> run_in_background(Switch& on, fmapi::Opcode opcode, fmapi::Payload payload) {
    constexpr auto kTurn = std::chrono::seconds(120);
    const auto deadline = steady_clock::now() + kTurn;
    for (;;) {
        auto answer = co_await on.execute(fmapi::make_request(opcode, 0, payload));
        if (answer.return_code == fmapi::ReturnCode::kBackgroundStarted) break;
        if (answer.return_code == fmapi::ReturnCode::kSuccess) co_return Result<>{};
        if (answer.return_code != fmapi::ReturnCode::kBusy || steady_clock::now() >= deadline) {
            co_return fail(fmapi::error_code_of(answer.return_code),
                           fmt::format("{} answers {}: {}", on.name().value, fmapi::to_string(opcode),
                                       fmapi::to_string(answer.return_code)));
        }
        co_await pause(std::chrono::milliseconds(50));
    }
    for (;;) {
        auto answer = co_await on.execute(fmapi::make_request(fmapi::Opcode::kBackgroundOperationStatus, 0));
        auto status = fmapi::decode<fmapi::BackgroundOperationStatusResponse>(answer.payload);
        if (!status) co_return std::unexpected(status.error());
        if (status->running()) {
            co_await pause(std::chrono::milliseconds(10));
            continue;
        }
        if (status->return_code == fmapi::ReturnCode::kSuccess) co_return Result<>{};
        co_return fail(fmapi::error_code_of(status->return_code),
                       fmt::format("{}: {} ended with {}", on.name().value, fmapi::to_string(opcode),
                                   fmapi::to_string(status->return_code)));
    }
}

Result<> write_file(const std::string& path, const std::string& content) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << content;
    out.close();
    if (!out) return fail_errno("write", path, errno);
    return {};
}

// Says in words what the switch would refuse with no more than Invalid Input.
Result<> check_free(const std::vector<VppbStatus>& vppbs, const VcsPlace& to, unsigned vppb,
                    const DevicePlace& from) {
    for (const auto& entry : vppbs) {
        if (entry.state == VppbStatus::State::kUnbound) continue;
        if (entry.vcs == to.vcs && entry.vppb == vppb) {
            const auto ld = entry.ld == kWholeDevice ? std::string() : fmt::format(":{}", entry.ld.value);
            return fail(ErrorCode::kConflict, fmt::format("vPPB {} of {} already has {}{}", vppb,
                                                          entry.host.value, entry.device.value, ld));
        }
        if (entry.port == from.port && entry.ld.value == from.ld) {
            return fail(ErrorCode::kConflict,
                        fmt::format("it is bound already, to vPPB {} of {}", entry.vppb, entry.host.value));
        }
    }
    return {};
}

bool is_unbound(const std::vector<VppbStatus>& vppbs, const VcsPlace& at, unsigned vppb) {
    return std::ranges::any_of(vppbs, [&](const VppbStatus& entry) {
        return entry.vcs == at.vcs && entry.vppb == vppb && entry.state == VppbStatus::State::kUnbound;
    });
}

// Tells what an unbind waits for, whenever that changes, until it has ended.
asio::awaitable<void> tell_waiting(std::shared_ptr<RackHotplug> hotplug, HotplugSlot slot,
                                   std::function<void(const std::string&)> waiting,
                                   std::shared_ptr<bool> ended) {
    std::string last;
    while (!*ended) {
        auto now = hotplug->waits_for(slot);
        if (!now.empty() && now != last) waiting(now);
        last = std::move(now);
        co_await pause(std::chrono::milliseconds(200));
    }
}

const char* name_of(VppbStatus::State state) {
    switch (state) {
        case VppbStatus::State::kUnbound:
            return "unbound";
        case VppbStatus::State::kBinding:
            return "binding";
        case VppbStatus::State::kBound:
            return "bound";
        case VppbStatus::State::kUnbinding:
            return "unbinding";
    }
    return "unbound";
}

json::object vppb_json(const VppbStatus& vppb) {
    json::object out;
    out["vcs"] = vppb.vcs;
    out["vppb"] = vppb.vppb;
    out["host"] = vppb.host.value;
    out["state"] = name_of(vppb.state);
    if (vppb.state == VppbStatus::State::kUnbound) return out;
    out["device"] = vppb.device.value;
    if (vppb.ld != kWholeDevice) out["ld"] = vppb.ld.value;
    out["serial"] = format_serial(vppb.serial);
    out["size"] = vppb.size.value;
    return out;
}

}  // namespace

struct Rack::State {
    asio::any_io_executor executor;
    RackOptions options;
    std::string folder;
    std::shared_ptr<RackHotplug> hotplug = std::make_shared<RackHotplug>();
    std::vector<std::unique_ptr<Switch>> switches;
    std::vector<std::unique_ptr<MediaFile>> direct_media;  // of devices without a switch; held for its lock
    std::vector<std::shared_ptr<RackHost>> hosts;
    AcceleratorChoice accelerator;
    std::string failure;
    bool booted = false;
    bool stopping = false;
    std::set<std::string> being_cleaned;

    Switch* find_switch(const SwitchId& name) {
        for (const auto& sw : switches) {
            if (sw->name() == name) return sw.get();
        }
        return nullptr;
    }
    [[nodiscard]] std::string image_of(const std::string& kernel) const {
        return folder + "/initramfs" + (kernel.empty() ? "" : "-" + kernel);
    }
    Result<> prepare_images();
    asio::awaitable<Result<>> create_hosts(Rack& rack);
};

Rack::Rack(asio::any_io_executor executor, RackOptions options, std::string folder)
    : state_(std::make_shared<State>()), changed_([] {}) {
    state_->executor = std::move(executor);
    state_->options = std::move(options);
    state_->folder = std::move(folder);
}

Rack::~Rack() { state_->hotplug->clear(); }

Result<> Rack::open_switches() {
    const Topology& topology = state_->options.topology;
    std::shared_ptr<fmapi::SessionCapture> capture;
    if (!state_->options.pcap.empty()) {
        auto file = fmapi::SessionCapture::open(state_->options.pcap);
        if (!file) return std::unexpected(std::move(file.error()).with_context("--pcap"));
        capture = *std::move(file);
    }
    const auto shared = open_shared_devices(topology, topology.switches);
    if (!shared) return std::unexpected(shared.error());
    for (const auto& config : topology.switches) {
        auto opened = Switch::open(state_->executor, topology, config, state_->hotplug, {}, *shared);
        if (!opened) return std::unexpected(opened.error());
        if (capture) (*opened)->capture(capture->of_switch(config.name.value));
        state_->switches.push_back(std::move(*opened));
    }
    for (const auto& host : state_->options.topology.hosts) {
        for (const auto& device : host.devices) {
            auto media = MediaFile::open(state_->options.topology.media_file(host, device), device.size);
            if (!media)
                return std::unexpected(std::move(media.error()).with_context("host " + host.name.value));
            state_->direct_media.push_back(std::move(*media));
        }
    }
    for (const auto& device : topology.multi_headed) {
        if (shared->contains(device.name)) continue;
        auto media = MediaFile::open(topology.media_file(device), device.size);
        if (!media)
            return std::unexpected(std::move(media.error()).with_context("device " + device.name.value));
        state_->direct_media.push_back(std::move(*media));
    }
    return {};
}

Result<> Rack::State::prepare_images() {
    GuestImageOptions image_options;
    image_options.helper = options.program;
    image_options.program_path = options.program.substr(0, options.program.rfind('/'));
    if (!options.manager.empty()) image_options.manager_url = options.manager_url;
    for (const auto& [kernel, material] : options.materials) {
        auto image = build_guest_image(material, image_options);
        if (!image) return std::unexpected(image.error());
        if (auto written = write_file(image_of(kernel), *image); !written) return written;
    }
    return {};
}

asio::awaitable<Result<>> Rack::State::create_hosts(Rack& rack) {
    RackSettings settings;
    settings.program = options.program;
    settings.kernel_arguments = options.kernel_arguments;
    settings.manager = options.manager;
    settings.accelerator = accelerator.accelerator;
    for (const auto& config : options.topology.hosts) {
        const auto host_folder = fmt::format("{}/hosts/{}", folder, config.name.value);
        settings.kernel = options.materials.at(config.kernel).kernel;
        settings.initramfs = image_of(config.kernel);
        auto plan = plan_host(options.topology, config, settings, host_folder);
        if (!plan) co_return std::unexpected(plan.error());
        auto agent = options.agent;
        if (!agent.empty()) {
            for (std::string& word : agent)
                if (const auto at = word.find(kHostInAgentCommand); at != std::string::npos)
                    word.replace(at, kHostInAgentCommand.size(), config.name.value);
            agent.emplace_back("--host");
            agent.push_back(config.name.value);
        }
        auto host =
            std::make_shared<RackHost>(executor, std::move(*plan), host_folder, std::move(agent),
                                       [&rack, name = config.name.value] { rack.host_changed(name); });
        hosts.push_back(host);
        hotplug->add(host);
    }
    for (const auto& host : hosts) {
        auto started = co_await host->start();
        if (!started) co_return started;
    }
    co_return Result<>{};
}

asio::awaitable<void> Rack::boot() {
    auto state = state_;
    for (const auto& sw : state->switches) sw->start();
    auto done = state->prepare_images();
    if (done && state->options.kvm_allowed) {
        const auto& [kernel, material] = *state->options.materials.begin();
        const auto cache = material.folder.substr(0, material.folder.rfind('/'));
        const auto probe = (::access(cache.c_str(), W_OK) == 0 ? cache : state->folder) + "/kvm-probe";
        state->accelerator = co_await choose_accelerator(state->executor, material.kernel,
                                                         state->image_of(kernel), probe, state->folder);
    } else {
        state->accelerator.reason = "KVM was not wanted";
    }
    log::info("accelerator",
              {{"chosen", to_string(state->accelerator.accelerator)}, {"reason", state->accelerator.reason}});
    if (done && !state->stopping) done = co_await state->create_hosts(*this);
    if (!done) {
        state->failure = done.error().message;
        log::error("rack did not start", {{"error", done.error()}});
    }
    state->booted = true;
    changed_();
}

asio::awaitable<void> Rack::stop() {
    auto state = state_;
    state->stopping = true;
    // All at once: each waits for its guest's power-off.
    std::size_t left = state->hosts.size();
    for (const auto& host : state->hosts) {
        asio::co_spawn(state->executor, host->stop(), [&left](const std::exception_ptr&) { --left; });
    }
    while (left > 0) co_await pause(std::chrono::milliseconds(10));
    for (const auto& sw : state->switches) sw->stop();
    state->hotplug->clear();
}

Result<std::shared_ptr<RackHost>> Rack::host(const std::string& name) const {
    for (const auto& host : state_->hosts) {
        if (host->name() == name) return host;
    }
    if (state_->options.topology.find_host(HostId(name)))
        return fail(ErrorCode::kUnavailable, "host " + name + " has not been started yet");
    return std::unexpected(no_such_host(state_->options.topology, name));
}

std::vector<Switch*> Rack::switches() const {
    std::vector<Switch*> all;
    for (const auto& sw : state_->switches) all.push_back(sw.get());
    return all;
}

const Topology& Rack::topology() const { return state_->options.topology; }

bool Rack::ready() const {
    if (!state_->booted || !state_->failure.empty()) return false;
    for (const auto& host : state_->hosts) {
        if (host->qemu().state() != HostState::kReady) return false;
    }
    return true;
}

std::string Rack::failure() const {
    if (!state_->failure.empty()) return state_->failure;
    if (!state_->booted) return {};  // a host that is not started yet is no failure
    for (const auto& host : state_->hosts) {
        if (auto why = host->failure(); !why.empty()) return fmt::format("host {} is {}", host->name(), why);
    }
    return {};
}

void Rack::host_changed(const std::string& name) {
    auto found = host(name);
    if (found && !state_->stopping) {
        const auto state = (*found)->qemu().state();
        for (const auto& sw : state_->switches) sw->set_host_link(HostId(name), state != HostState::kStopped);
        if (state == HostState::kStopped && state_->being_cleaned.insert(name).second)
            asio::co_spawn(state_->executor, clean_bindings(name), asio::detached);
    }
    changed_();
}

// A host without QEMU has no devices: its vPPBs are unbound, so that its LDs can go to others.
asio::awaitable<void> Rack::clean_bindings(std::string host) {
    auto state = state_;
    for (const auto& sw : state->switches) {
        const auto vppbs = co_await sw->vppbs();
        for (const auto& vppb : vppbs) {
            if (vppb.host.value != host || vppb.state == VppbStatus::State::kUnbound) continue;
            fmapi::UnbindVppbRequest unbind;
            unbind.vcs = vppb.vcs;
            unbind.vppb = vppb.vppb;
            unbind.option = fmapi::UnbindOption::kSurpriseHotRemove;
            auto done = co_await run_in_background(*sw, fmapi::Opcode::kUnbindVppb, fmapi::encode(unbind));
            if (state->stopping) co_return;
            if (done) {
                log::info("unbound from a host that is gone", {{"host", host}, {"vppb", vppb.vppb}});
            } else {
                log::warning("cannot unbind from a host that is gone",
                             {{"host", host}, {"vppb", vppb.vppb}, {"error", done.error()}});
            }
        }
    }
    state->being_cleaned.erase(host);
}

asio::awaitable<Result<json::object>> Rack::bind(std::string host, unsigned vppb, std::string device) {
    auto state = state_;
    if (!state->options.topology.find_host(HostId(host)))
        co_return std::unexpected(no_such_host(state->options.topology, host));
    auto from = find_device(state->options.topology, device, host);
    if (!from) co_return std::unexpected(from.error());
    auto to = find_vcs(state->options.topology, host, from->in);
    if (!to) co_return std::unexpected(to.error());
    if (vppb >= to->vppbs) {
        co_return fail(ErrorCode::kInvalidArgument, fmt::format("host {} has vPPBs 0 to {} in {}", host,
                                                                to->vppbs - 1, to->in->name.value));
    }
    auto* on = state->find_switch(from->in->name);
    const auto before = co_await on->vppbs();
    if (auto free = check_free(before, *to, vppb, *from); !free) co_return std::unexpected(free.error());
    fmapi::BindVppbRequest request;
    request.vcs = to->vcs;
    request.vppb = static_cast<std::uint8_t>(vppb);
    request.port = from->port;
    request.ld = from->ld;
    auto done = co_await run_in_background(*on, fmapi::Opcode::kBindVppb, fmapi::encode(request));
    if (!done) {
        const auto why = state->hotplug->last_error(on->name().value, request.vcs, request.vppb);
        if (!why.empty()) done.error().message = why;  // says more than the return code that it became
        co_return std::unexpected(done.error());
    }
    const auto vppbs = co_await on->vppbs();
    for (const auto& entry : vppbs) {
        if (entry.vcs == request.vcs && entry.vppb == request.vppb) co_return vppb_json(entry);
    }
    co_return json::object();
}

asio::awaitable<Result<json::object>> Rack::unbind(std::string host, std::string switch_name, unsigned vppb,
                                                   fmapi::UnbindOption option, Waiting waiting) {
    auto state = state_;
    const auto* in =
        switch_name.empty() ? nullptr : state->options.topology.find_switch(SwitchId(switch_name));
    if (!switch_name.empty() && !in) co_return fail(ErrorCode::kNotFound, "no switch named " + switch_name);
    auto at = find_vcs(state->options.topology, host, in);
    if (!at) co_return std::unexpected(at.error());
    if (vppb >= at->vppbs) {
        co_return fail(ErrorCode::kInvalidArgument, fmt::format("host {} has vPPBs 0 to {} in {}", host,
                                                                at->vppbs - 1, at->in->name.value));
    }
    auto* on = state->find_switch(at->in->name);
    const auto before = co_await on->vppbs();
    if (is_unbound(before, *at, vppb))
        co_return fail(ErrorCode::kConflict, fmt::format("nothing is bound at vPPB {} of {}", vppb, host));
    fmapi::UnbindVppbRequest request;
    request.vcs = at->vcs;
    request.vppb = static_cast<std::uint8_t>(vppb);
    request.option = option;
    const auto ended = std::make_shared<bool>(false);
    HotplugSlot slot{
        .switch_name = at->in->name, .host = HostId(host), .vcs = request.vcs, .vppb = request.vppb};
    asio::co_spawn(state->executor, tell_waiting(state->hotplug, std::move(slot), std::move(waiting), ended),
                   asio::detached);
    auto done = co_await run_in_background(*on, fmapi::Opcode::kUnbindVppb, fmapi::encode(request));
    *ended = true;
    if (!done) {
        const auto why = state->hotplug->last_error(on->name().value, request.vcs, request.vppb);
        if (!why.empty()) done.error().message = why;  // says more than the return code that it became
        co_return std::unexpected(done.error());
    }
    co_return json::object();
}

asio::awaitable<json::object> Rack::status() {
    auto state = state_;
    json::object out;
    out["name"] = state->options.topology.name;
    out["topology"] = state->options.topology_path;
    out["pid"] = ::getpid();
    out["run_folder"] = state->folder;
    out["ready"] = ready();
    out["failure"] = failure();
    out["accelerator"] = to_string(state->accelerator.accelerator);
    out["accelerator_reason"] = state->accelerator.reason;
    out["manager"] = state->options.manager;
    json::array switches;
    for (const auto& sw : state->switches) {
        json::object entry;
        entry["name"] = sw->name().value;
        json::array listen;
        for (const auto& address : sw->addresses()) listen.emplace_back(address);
        entry["listen"] = std::move(listen);
        const auto bridges = co_await sw->vppbs();
        json::array vppbs;
        for (const auto& vppb : bridges) vppbs.push_back(vppb_json(vppb));
        entry["vppbs"] = std::move(vppbs);
        switches.push_back(std::move(entry));
    }
    out["switches"] = std::move(switches);
    json::array hosts;
    for (const auto& host : state->hosts) hosts.push_back(host->status());
    out["hosts"] = std::move(hosts);
    json::array networks;
    for (const auto& network : state->options.topology.networks) {
        json::array ends;
        for (const auto& host : network.hosts) ends.emplace_back(host.value);
        networks.push_back(json::object{{"name", network.name}, {"hosts", std::move(ends)}});
    }
    out["networks"] = std::move(networks);
    co_return out;
}

}  // namespace memtide::emul
