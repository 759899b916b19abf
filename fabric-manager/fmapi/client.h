#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "common/base/error.h"
#include "common/fmapi/capture/session_capture.h"
#include "common/fmapi/commands.h"
#include "fabric-manager/fmapi/listening_transport.h"

namespace memtide::fm {

// Where a command goes: the switch itself, the device behind one of its ports (an SLD, or the FM-owned LD of
// an MLD), or one LD of that MLD. The last two travel in Tunnel Management Commands.
struct Target {
    std::optional<std::uint8_t> port;
    std::optional<std::uint8_t> ld;  // only with a port

    static Target the_switch() { return {}; }
    static Target device(std::uint8_t port) { return {.port = port, .ld = std::nullopt}; }
    static Target logical_device(std::uint8_t port, std::uint8_t ld) { return {.port = port, .ld = ld}; }

    friend bool operator==(const Target&, const Target&) = default;
};
// "switch", "device at port 2", "LD 1 at port 2".
std::string to_string(const Target& target);

// How a command that may take long was answered.
enum class Completion {
    kDone,          // return code Success: it is over
    kInBackground,  // it has begun; background_status() says how it goes
};

struct DialectInUse {
    std::string name;           // see common/fmapi/dialect.h
    bool detected = false;      // from the switch's own answers, not by configuration
    std::size_t in_flight = 1;  // commands that are sent before the first is answered
};

template <typename T>
using Call = boost::asio::awaitable<Result<T>>;

// What the fabric manager asks of one switch and the devices behind it. The engine is tested with a fake.
//
// Every call ends: with an answer, or within the command timeout (plus that of connecting when it has to, and
// a few seconds when the switch's dialect has to be found out). A command that may be repeated (its Traits)
// and whose connection broke is sent once more over a new one.
// Errors name the command and the target:
//   * kUnavailable: cannot connect, or the connection broke; whether the command was carried out is not known
//   * kTimeout: no answer in time; whether the command was carried out is not known
//   * kProtocol: an answer that makes no sense; the connection is dropped when the stream itself is broken
//   * kConflict: return code Busy or Retry Required: nothing was done, try again later
//   * kInvalidArgument, kExhausted, kIo, ...: other return codes, see fmapi::error_code_of
//   * kCancelled: the calling coroutine was cancelled
// Not thread safe: call from coroutines on the executor (or strand) the client was made with. Calls may
// overlap; they are sent in the order they were made, each as soon as the switch takes one more.
class FmApiClient {
  public:
    virtual ~FmApiClient() = default;

    // Any component.
    virtual Call<fmapi::IdentifyResponse> identify(Target target) = 0;
    virtual Call<fmapi::BackgroundOperationStatusResponse> background_status(Target target) = 0;
    virtual Call<void> abort_background(Target target) = 0;

    // The switch.
    virtual Call<fmapi::IdentifySwitchDeviceResponse> identify_switch() = 0;
    // State of the ports with these ids, in that order.
    virtual Call<std::vector<fmapi::PhysicalPort>> physical_ports(std::vector<std::uint8_t> ids) = 0;
    virtual Call<void> port_control(std::uint8_t port, fmapi::PortOperation operation) = 0;
    // One dword of the configuration space of the bridge at `port`; `offset` in bytes, a multiple of 4.
    virtual Call<std::uint32_t> read_port_config(std::uint8_t port, std::uint16_t offset) = 0;
    // The VCSs with these ids, in that order, each with all its vPPBs.
    virtual Call<std::vector<fmapi::VirtualSwitch>> virtual_switches(std::vector<std::uint8_t> ids) = 0;
    // With `connection` it is sent over that connection (see connections()) or not at all: kUnavailable when
    // it is gone, which means that the switch may have been restarted since.
    virtual Call<Completion> bind(fmapi::BindVppbRequest request,
                                  std::optional<std::uint64_t> connection = std::nullopt) = 0;
    virtual Call<Completion> unbind(fmapi::UnbindVppbRequest request) = 0;

    // Events of the switch. The oldest records of one log; the answer says when there are more.
    virtual Call<fmapi::GetEventRecordsResponse> event_records(fmapi::EventLog log) = 0;
    // Removes records that were read: the log's oldest, in their order; at most 255.
    virtual Call<void> clear_event_records(fmapi::EventLog log, std::vector<std::uint16_t> handles) = 0;
    // Asks the switch to notify of records in its four logs, over this connection.
    virtual Call<void> request_notifications() = 0;
    // `handler` is called on the executor when the switch says that it has event records, and when a
    // connection turns out to be gone while nothing is asked. Before the first command, and once.
    virtual void on_notification(std::function<void()> handler) = 0;

    // The MLD behind a port.
    virtual Call<fmapi::GetLdInfoResponse> ld_info(std::uint8_t port) = 0;
    // Allocations of all its LDs, whatever the device needs to be asked for that.
    virtual Call<fmapi::GetLdAllocationsResponse> ld_allocations(std::uint8_t port) = 0;
    // Answers what the device allocated, which may differ from what was asked.
    virtual Call<std::vector<fmapi::LdAllocation>> set_ld_allocations(
        std::uint8_t port, std::uint8_t first_ld, std::vector<fmapi::LdAllocation> allocations) = 0;

    // The device behind a port as one with several heads. kInvalidArgument (Unsupported) from a device that
    // has one only. The whole LD map, whatever the device needs to be asked for that.
    virtual Call<fmapi::GetMultiHeadedInfoResponse> multi_headed_info(std::uint8_t port) = 0;
    // Its first `heads` heads.
    virtual Call<fmapi::GetHeadInfoResponse> head_info(std::uint8_t port, std::uint8_t heads) = 0;

    // The dynamic capacity device behind a port (CXL 3.1, 7.6.7.6). kInvalidArgument (Unsupported) from
    // others, and for dc_tags() from those that do not tell.
    virtual Call<fmapi::GetDcdInfoResponse> dcd_info(std::uint8_t port) = 0;
    // All regions of a host.
    virtual Call<std::vector<fmapi::DcRegionConfiguration>> dc_regions(std::uint8_t port,
                                                                       std::uint16_t host) = 0;
    // What a host has accepted, of one moment. kConflict when it changes faster than it can be read.
    virtual Call<std::vector<fmapi::DcExtent>> dc_extents(std::uint8_t port, std::uint16_t host) = 0;
    virtual Call<std::vector<fmapi::DcTagInformation>> dc_tags(std::uint8_t port) = 0;
    // Not repeated when the connection broke: who asks has to look what was done.
    virtual Call<void> add_dynamic_capacity(std::uint8_t port,
                                            fmapi::InitiateDynamicCapacityAddRequest request) = 0;
    virtual Call<void> release_dynamic_capacity(std::uint8_t port,
                                                fmapi::InitiateDynamicCapacityReleaseRequest request) = 0;

    // A memory device: an SLD or an LD.
    virtual Call<fmapi::IdentifyMemoryDeviceResponse> identify_memory_device(Target target) = 0;
    // An SLD, an LD, or the device as a whole.
    virtual Call<fmapi::GetHealthInfoResponse> health_info(Target target) = 0;
    // Overwrites all of its memory.
    virtual Call<Completion> sanitize(Target target) = 0;

    // How many connections have been opened so far; the number of the present one.
    [[nodiscard]] virtual std::uint64_t connections() const = 0;
    // How the switch is spoken to; its name is empty until that is known.
    [[nodiscard]] virtual DialectInUse dialect() const { return {}; }
    // Drops the connection; the next call opens a new one. Commands in flight end with kCancelled.
    virtual void close() = 0;
};

// Told of every command that was sent: how long its round trip took, and whether it was answered at all.
using RoundTripObserver =
    std::function<void(fmapi::Opcode opcode, std::chrono::nanoseconds took, bool answered)>;

struct ClientOptions {
    std::string address;  // as parse_switch_address() reads it; of a switch that connects, for messages only
    std::optional<SwitchListener> listen = {};  // the switch connects to the manager, here
    std::chrono::milliseconds connect_timeout{2000};
    std::chrono::milliseconds command_timeout{2000};
    // Endpoint ids for the MCTP header; 0 suits a point-to-point stream.
    std::uint8_t own_endpoint = 0;
    std::uint8_t switch_endpoint = 0;
    bool assign_endpoint = false;  // the switch is told its id at the start of a connection
    // A name of common/fmapi/dialect.h; any other text: found out at each connection.
    std::string dialect = "spec";
    std::optional<std::size_t> in_flight = {};  // 1 to 64; otherwise the dialect's
    unsigned repetitions = 1;                   // of a repeatable command whose connection broke
    RoundTripObserver observer = {};
    fmapi::SwitchCapture capture = {};  // of its connections
};
inline constexpr std::string_view kDetectDialect = "detect";
inline constexpr std::size_t kMostInFlight = 64;

// A client that connects when it is first used, and again whenever it has to. Fails with kInvalidArgument on
// an address it cannot read, with kAlreadyExists, kPermission or kIo when it cannot listen.
Result<std::unique_ptr<FmApiClient>> make_fm_api_client(boost::asio::any_io_executor executor,
                                                        ClientOptions options);

// Waits until the background operation `operation` of `target` is over, asking at growing intervals (1 ms to
// 100 ms). The operation's own return code decides: error as above when it failed. kTimeout when it still
// runs at `deadline`; kProtocol when the target says that another operation runs or ran last.
boost::asio::awaitable<Result<>> wait_for_background(FmApiClient& client, Target target,
                                                     fmapi::Opcode operation,
                                                     std::chrono::steady_clock::time_point deadline);

}  // namespace memtide::fm
