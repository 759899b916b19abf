#include "cxl-emul/qemu/slot_power.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <fmt/format.h>

namespace memtide::emul {
namespace asio = boost::asio;
namespace json = boost::json;

namespace {
constexpr std::uint32_t kPcieCapability = 0x10;       // capability id (PCIe 6.0, 7.5.3.1)
constexpr std::uint32_t kCapabilitiesPointer = 0x34;  // in the type 1 header
constexpr std::uint32_t kSlotControl = 0x18;          // offset in the PCIe capability
constexpr std::uint32_t kPowerIndicatorMask = 0x300;
constexpr std::uint32_t kPowerIndicatorBlink = 0x200;
constexpr std::uint32_t kPowerIndicatorOff = 0x300;
constexpr std::uint32_t kPowerControllerOff = 0x400;

// The device with a given id in a list of query-pci, looked for below bridges too.
std::optional<std::uint32_t> find_port(const json::array& devices, const std::string& id) {
    for (const auto& entry : devices) {
        const auto& device = entry.as_object();
        if (device.contains("qdev_id") && device.at("qdev_id").as_string() == id) {
            return static_cast<std::uint32_t>(device.at("bus").as_int64() << 16 |
                                              device.at("slot").as_int64() << 11 |
                                              device.at("function").as_int64() << 8);
        }
        const auto* bridge = device.if_contains("pci_bridge");
        const auto* behind = bridge ? bridge->as_object().if_contains("devices") : nullptr;
        if (behind) {
            if (auto found = find_port(behind->as_array(), id)) return found;
        }
    }
    return std::nullopt;
}

asio::awaitable<Result<std::uint32_t>> locate(QmpClient& qmp, const std::string& port) {
    auto buses = co_await qmp.execute("query-pci");
    if (!buses) co_return std::unexpected(buses.error());
    try {
        for (const auto& bus : buses->as_array()) {
            if (auto found = find_port(bus.as_object().at("devices").as_array(), port)) co_return *found;
        }
    } catch (const std::exception& e) {
        co_return fail(ErrorCode::kProtocol, std::string("query-pci: ") + e.what());
    }
    co_return fail(ErrorCode::kNotFound, "QEMU has no port " + port + " on a PCI bus");
}

// "portl[0x0cfc] = 0x1234" -> 0x1234
Result<std::uint32_t> read_number(const std::string& text) {
    const auto at = text.find("= 0x");
    std::uint32_t value = 0;
    if (at == std::string::npos) return fail(ErrorCode::kProtocol, "unexpected monitor output: " + text);
    const char* first = text.data() + at + 4;
    if (std::from_chars(first, text.data() + text.size(), value, 16).ec != std::errc())
        return fail(ErrorCode::kProtocol, "unexpected monitor output: " + text);
    return value;
}

// Configuration space of one function through ports 0xcf8 and 0xcfc of a machine that is stopped.
class ConfigPorts {
  public:
    ConfigPorts(QmpClient& qmp, std::uint32_t function) : qmp_(qmp), function_(function) {}

    // `size` is the monitor's letter: b, h (2 bytes) or w (4 bytes).
    asio::awaitable<Result<std::uint32_t>> read(std::uint32_t reg, char size) {
        auto selected = co_await select(reg);
        if (!selected) co_return std::unexpected(selected.error());
        auto text = co_await qmp_.monitor(fmt::format("i /{} {:#x}", size, 0xcfc + (reg & 3)));
        if (!text) co_return std::unexpected(text.error());
        co_return read_number(*text);
    }
    asio::awaitable<Result<>> write(std::uint32_t reg, char size, std::uint32_t value) {
        auto selected = co_await select(reg);
        if (!selected) co_return std::unexpected(selected.error());
        auto text = co_await qmp_.monitor(fmt::format("o /{} {:#x} {:#x}", size, 0xcfc + (reg & 3), value));
        if (!text) co_return std::unexpected(text.error());
        co_return Result<>{};
    }
    // Offset of Slot Control.
    asio::awaitable<Result<std::uint32_t>> slot_control() {
        auto at = co_await read(kCapabilitiesPointer, 'b');
        for (int steps = 0; at && *at != 0 && steps < 48; ++steps) {
            auto entry = co_await read(*at & 0xfc, 'h');
            if (!entry) co_return entry;
            if ((*entry & 0xff) == kPcieCapability) co_return *at + kSlotControl;
            at = *entry >> 8;
        }
        if (!at) co_return at;
        co_return fail(ErrorCode::kProtocol, "the port has no PCI Express capability");
    }

  private:
    asio::awaitable<Result<>> select(std::uint32_t reg) {
        auto text =
            co_await qmp_.monitor(fmt::format("o /w 0xcf8 {:#x}", 0x80000000U | function_ | (reg & 0xfc)));
        if (!text) co_return std::unexpected(text.error());
        co_return Result<>{};
    }
    QmpClient& qmp_;
    std::uint32_t function_;
};

enum class Access { kRead, kPull };

asio::awaitable<Result<std::uint32_t>> access_stopped(QmpClient& qmp, std::uint32_t function, Access access) {
    auto address = co_await qmp.monitor("i /w 0xcf8");  // what the guest had selected last
    if (!address) co_return std::unexpected(address.error());
    auto selected = read_number(*address);
    if (!selected) co_return selected;
    ConfigPorts ports(qmp, function);
    auto reg = co_await ports.slot_control();
    auto value = reg;
    if (reg) value = co_await ports.read(*reg, 'h');
    if (value && access == Access::kPull) {
        auto written = co_await ports.write(*reg, 'h', *value | kPowerControllerOff | kPowerIndicatorOff);
        if (!written) value = std::unexpected(written.error());
    }
    auto restored = co_await qmp.monitor(fmt::format("o /w 0xcf8 {:#x}", *selected));
    if (value && !restored) co_return std::unexpected(restored.error());
    co_return value;
}

// Stops the machine, uses Slot Control, and lets the machine go on if it was running. Gives the value read.
asio::awaitable<Result<std::uint32_t>> slot_control(QmpClient& qmp, const std::string& port, Access access) {
    auto function = co_await locate(qmp, port);
    if (!function) co_return function;
    auto status = co_await qmp.execute("query-status");
    if (!status) co_return std::unexpected(status.error());
    const auto* running = status->is_object() ? status->get_object().if_contains("running") : nullptr;
    const bool was_running = running && running->is_bool() && running->get_bool();
    if (was_running) {
        auto stopped = co_await qmp.execute("stop");
        if (!stopped) co_return std::unexpected(stopped.error());
    }
    auto value = co_await access_stopped(qmp, *function, access);
    if (was_running) {
        auto resumed = co_await qmp.execute("cont");
        if (value && !resumed) co_return std::unexpected(resumed.error());
    }
    co_return value;
}
}  // namespace

asio::awaitable<Result<PowerIndicator>> power_indicator(QmpClient& qmp, std::string port) {
    auto value = co_await slot_control(qmp, port, Access::kRead);
    if (!value) co_return std::unexpected(value.error());
    const auto indicator = *value & kPowerIndicatorMask;
    if (indicator == kPowerIndicatorOff) co_return PowerIndicator::kOff;
    co_return indicator == kPowerIndicatorBlink ? PowerIndicator::kBlinking : PowerIndicator::kOn;
}

asio::awaitable<Result<>> pull_card(QmpClient& qmp, std::string port) {
    auto value = co_await slot_control(qmp, port, Access::kPull);
    if (!value) co_return std::unexpected(value.error());
    co_return Result<>{};
}

asio::awaitable<Result<bool>> device_exists(QmpClient& qmp, std::string id) {
    json::object where;
    where["path"] = "/machine/peripheral";
    auto list = co_await qmp.execute("qom-list", std::move(where));
    if (!list) co_return std::unexpected(list.error());
    if (!list->is_array()) co_return fail(ErrorCode::kProtocol, "qom-list: no list back");
    for (const auto& entry : list->get_array()) {
        const auto* name = entry.is_object() ? entry.get_object().if_contains("name") : nullptr;
        if (name && name->is_string() && name->get_string() == id) co_return true;
    }
    co_return false;
}

}  // namespace memtide::emul
