#include <array>
#include <cstdarg>
#include <cstdio>

#include <fmt/format.h>

extern "C" {
#include <cxl/libcxl.h>
}

#include "common/log/log.h"
#include "tiering-agent/hotplug/cxl_bus.h"

namespace memtide::agent {
namespace {

struct ContextDeleter {
    void operator()(cxl_ctx* context) const { cxl_unref(context); }
};
using Context = std::unique_ptr<cxl_ctx, ContextDeleter>;

constexpr unsigned long long kUnknown = ~0ULL;  // libcxl's answer when an attribute cannot be read

// libcxl talks to standard error about what is half gone; that is normal here while devices come and go.
void forward_log(cxl_ctx*, int, const char*, int, const char*, const char* format, va_list arguments) {
    std::array<char, 256> text{};
    if (vsnprintf(text.data(), text.size(), format, arguments) > 0)
        log::debug("libcxl", {{"says", text.data()}});
}

// A context caches what it saw, so each look takes a fresh one.
Result<Context> open_context() {
    cxl_ctx* context = nullptr;
    if (const int error = cxl_new(&context); error != 0) {
        auto failure = fail_errno("open", "libcxl", -error);
        failure.error().code = ErrorCode::kUnavailable;
        return failure;
    }
    cxl_set_log_fn(context, &forward_log);
    return Context(context);
}

std::vector<Window> ram_windows_over(cxl_memdev* memdev, cxl_bus* bus) {
    std::vector<Window> windows;
    cxl_decoder* decoder = nullptr;
    cxl_decoder_foreach(cxl_bus_get_port(bus), decoder) {
        cxl_target* const target = cxl_decoder_get_target_by_memdev(decoder, memdev);
        if (!cxl_decoder_is_volatile_capable(decoder) || target == nullptr) continue;
        const auto size = cxl_decoder_get_size(decoder);
        const auto free = cxl_decoder_get_max_available_extent(decoder);
        windows.push_back({.name = cxl_decoder_get_devname(decoder),
                           .size = {size == kUnknown ? 0 : size},
                           .largest_free = {free == kUnknown ? size : free},
                           .ways = cxl_decoder_get_interleave_ways(decoder),
                           .granularity = cxl_decoder_get_interleave_granularity(decoder),
                           .position = static_cast<unsigned>(cxl_target_get_position(target))});
    }
    return windows;
}

void add_endpoint(cxl_memdev* memdev, Memdev& seen) {
    cxl_endpoint* const endpoint = cxl_memdev_get_endpoint(memdev);
    if (endpoint == nullptr || cxl_endpoint_is_enabled(endpoint) != 1) return;
    seen.has_endpoint = true;
    cxl_decoder* decoder = nullptr;
    cxl_decoder_foreach(cxl_endpoint_get_port(endpoint), decoder) {
        if (cxl_decoder_get_region(decoder) != nullptr) continue;
        seen.free_decoder = cxl_decoder_get_devname(decoder);
        break;
    }
    if (cxl_bus* const bus = cxl_endpoint_get_bus(endpoint); bus != nullptr)
        seen.ram_windows = ram_windows_over(memdev, bus);
}

Region region_of(cxl_region* region, cxl_decoder* window) {
    Region seen{.name = cxl_region_get_devname(region), .window = cxl_decoder_get_devname(window)};
    const auto start = cxl_region_get_resource(region);
    const auto size = cxl_region_get_size(region);
    if (start != kUnknown && size != kUnknown && size != 0) seen.range = {start, size};
    seen.committed = cxl_region_decode_is_committed(region) == 1;
    seen.enabled = cxl_region_is_enabled(region) == 1;
    cxl_memdev_mapping* mapping = nullptr;
    cxl_mapping_foreach(region, mapping) {
        cxl_decoder* const decoder = cxl_mapping_get_decoder(mapping);
        if (decoder == nullptr) continue;
        cxl_memdev* const memdev = cxl_decoder_get_memdev(decoder);
        seen.targets.push_back({.decoder = cxl_decoder_get_devname(decoder),
                                .memdev = memdev == nullptr ? "" : cxl_memdev_get_devname(memdev)});
    }
    return seen;
}

class LibcxlBus final : public CxlBus {
  public:
    explicit LibcxlBus(Files& files) : files_(files) {}

    Result<CxlView> enumerate() override {
        auto context = open_context();
        if (!context) return std::unexpected(std::move(context.error()));
        CxlView view;
        cxl_memdev* memdev = nullptr;
        cxl_memdev_foreach(context->get(), memdev) {
            Memdev seen{.name = cxl_memdev_get_devname(memdev),
                        .serial = {cxl_memdev_get_serial(memdev)},
                        .ram_size = {cxl_memdev_get_ram_size(memdev)}};
            if (seen.ram_size.value == kUnknown) seen.ram_size = {};
            add_endpoint(memdev, seen);
            view.memdevs.push_back(std::move(seen));
        }
        cxl_bus* bus = nullptr;
        cxl_bus_foreach(context->get(), bus) {
            cxl_decoder* window = nullptr;
            cxl_decoder_foreach(cxl_bus_get_port(bus), window) {
                cxl_region* region = nullptr;
                cxl_region_foreach(window, region) view.regions.push_back(region_of(region, window));
            }
        }
        return view;
    }

    Result<std::string> next_region(const std::string& window) override {
        return files_.read("sys/bus/cxl/devices/" + window + "/create_ram_region");
    }

    Result<> create_ram_region(const std::string& window, const std::string& name) override {
#ifdef MEMTIDE_HAVE_CXL_CREATE_RAM_REGION
        auto context = open_context();
        if (!context) return std::unexpected(std::move(context.error()));
        cxl_bus* bus = nullptr;
        cxl_bus_foreach(context->get(), bus) {
            cxl_decoder* decoder = nullptr;
            cxl_decoder_foreach(cxl_bus_get_port(bus), decoder) {
                if (window != cxl_decoder_get_devname(decoder)) continue;
                cxl_region* const region = cxl_decoder_create_ram_region(decoder);
                if (region == nullptr)
                    return fail(ErrorCode::kIo, "libcxl cannot create a ram region in " + window);
                const std::string made = cxl_region_get_devname(region);
                if (made == name) return {};
                cxl_region_delete(region);
                return fail(ErrorCode::kConflict, fmt::format("the region became {}, not {}", made, name));
            }
        }
        return fail(ErrorCode::kNotFound, "no CXL window " + window);
#else
        return files_.write("sys/bus/cxl/devices/" + window + "/create_ram_region", name);
#endif
    }

  private:
    Files& files_;
};

}  // namespace

std::unique_ptr<CxlBus> make_libcxl_bus(Files& files) { return std::make_unique<LibcxlBus>(files); }

}  // namespace memtide::agent
