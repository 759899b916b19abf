#include "tiering-agent/hotplug/modules.h"

#include <libkmod.h>

namespace memtide::agent {
namespace {

class KmodLoader final : public ModuleLoader {
  public:
    Result<> load(const std::string& name) override {
        const std::unique_ptr<kmod_ctx, decltype(&kmod_unref)> context(kmod_new(nullptr, nullptr),
                                                                       &kmod_unref);
        if (!context) return fail(ErrorCode::kIo, "libkmod cannot start");
        kmod_list* found = nullptr;
        if (const int error = kmod_module_new_from_lookup(context.get(), name.c_str(), &found); error < 0)
            return fail_errno("look up kernel module", name, -error);
        const std::unique_ptr<kmod_list, void (*)(kmod_list*)> list(
            found, [](kmod_list* l) { kmod_module_unref_list(l); });
        if (!list) return fail(ErrorCode::kNotFound, "there is no kernel module " + name);
        kmod_list* entry = nullptr;
        kmod_list_foreach(entry, list.get()) {
            kmod_module* const module = kmod_module_get_module(entry);
            const int error = kmod_module_probe_insert_module(module, KMOD_PROBE_APPLY_BLACKLIST, nullptr,
                                                              nullptr, nullptr, nullptr);
            kmod_module_unref(module);
            if (error < 0) return fail_errno("load kernel module", name, -error);
            if (error > 0) return fail(ErrorCode::kPermission, "kernel module " + name + " is blacklisted");
        }
        return {};
    }
};

class DisabledLoader final : public ModuleLoader {
  public:
    Result<> load(const std::string& name) override {
        return fail(ErrorCode::kPermission,
                    "kernel module " + name + " is not loaded, and loading is switched off");
    }
};

}  // namespace

const std::vector<std::string>& cxl_modules() {
    static const std::vector<std::string> kNames{"cxl_acpi", "cxl_pci",    "cxl_mem",
                                                 "dax_cxl",  "device_dax", "kmem"};
    return kNames;
}

std::unique_ptr<ModuleLoader> make_kmod_loader() { return std::make_unique<KmodLoader>(); }
std::unique_ptr<ModuleLoader> make_disabled_loader() { return std::make_unique<DisabledLoader>(); }

}  // namespace memtide::agent
