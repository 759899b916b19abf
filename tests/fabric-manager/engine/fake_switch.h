#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "cxl-emul/switch/dynamic_capacity.h"
#include "fabric-manager/fmapi/client.h"

// A switch with its devices and hosts, without any wire: what the engine is tested against. It watches over
// what must never happen (`violations`), and can keep its state in a file, so that it outlives the process
// that talks to it as real hardware does.
namespace memtide::fm {

struct FakeLd {
    std::uint64_t serial = 0;
    std::uint64_t size = 0;
    bool dirty = true;         // somebody could have written to it since it was erased
    bool online = false;       // the host has it online as a NUMA node
    bool used = false;         // it was online since it was bound
    bool stale = false;        // holds what a host wrote that does not have it any more, erased or not
    std::uint64_t offset = 0;  // of its memory in its device, where it is in one piece
};

struct FakePort {
    std::uint8_t id = 0;
    fmapi::ConnectedDeviceType type = fmapi::ConnectedDeviceType::kNone;
    bool upstream = false;
    std::uint64_t serial = 0;
    std::uint64_t size = 0;
    fmapi::LdGranularity granularity = fmapi::LdGranularity::k256MiB;
    std::vector<FakeLd> lds;  // one for an SLD
    // Of a multi-headed device, as it says: how many heads it has, by LD which one, and the head of this
    // port, through which only the LDs of that head answer. Nothing keeps a test from letting it lie.
    std::uint8_t heads = 1;
    std::vector<std::uint8_t> ld_map;
    std::vector<std::uint8_t> head_numbers;
    std::uint8_t head = 0;
    // An LD never gets more than that, though the device says that it was done.
    std::optional<std::uint64_t> largest_ld{};
    fmapi::GetHealthInfoResponse health{};
    bool fm_ld_knows_health = true;                    // else only its LDs do
    std::shared_ptr<emul::DynamicCapacity> dynamic{};  // of a dynamic capacity device
    bool keeps_at_unbind = false;                      // what a host had accepted
    bool tells_tags = true;                            // knows Dynamic Capacity List Tags
};

struct FakeVcs {
    std::uint8_t id = 0;
    std::uint8_t upstream_port = 0;
    std::vector<fmapi::Vppb> vppbs;
};

class FakeSwitch final : public FmApiClient {
  public:
    explicit FakeSwitch(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

    // Two hosts with `vppbs` vPPBs each at ports 0 and 1.
    void add_hosts(std::size_t vppbs);
    // An MLD whose LDs have these sizes in units of 256 MiB, and `spare` units that none has. Their memory is
    // one behind the other.
    void add_mld(std::uint8_t port, std::vector<std::uint64_t> units, std::uint64_t spare = 0);
    // Puts the memory of its LDs there, in the same units.
    void place_lds(std::uint8_t port, const std::vector<std::uint64_t>& offsets);
    void add_sld(std::uint8_t port, std::uint64_t units);
    // A dynamic capacity device of so many hosts, with regions of these sizes in units of 256 MiB.
    void add_dcd(std::uint8_t port, std::size_t hosts, std::vector<std::uint64_t> region_units,
                 emul::DynamicCapacity::Limits limits = {});
    // A host takes, or refuses, what it is offered behind that LD; gives all of it back.
    void accept_capacity(FakeLd& ld, bool take = true);
    void give_back_capacity(FakeLd& ld);
    // After something of the device has changed.
    static void settle_dcd(FakePort& port);
    void remove_device(std::uint8_t port);
    // Unplugs the device and plugs it in at an empty port, of this switch or of another one. Its memory stays
    // as it is.
    void move_device(std::uint8_t from, FakeSwitch& there, std::uint8_t to);
    // A port with nothing behind it.
    void add_port(std::uint8_t port);

    // --- What a test does to it ---
    bool down = false;           // every call fails with kUnavailable
    bool sanitize_lies = false;  // a sanitize succeeds, and what hosts wrote stays
    int background_polls = 0;    // commands that find an operation still running
    enum class When { kBefore, kAfter };
    // Called for each command ("bind", "unbind", "sanitize", ...) before it has any effect and after it had
    // it; an error it gives is the caller's answer.
    std::function<std::optional<Error>(std::string_view command, When when)> fault;
    // The return code with which background operations end, by command.
    std::map<std::string, fmapi::ReturnCode, std::less<>> ends_with;

    // Event records by log; without them it does not know the commands.
    std::optional<std::map<fmapi::EventLog, std::vector<fmapi::EventRecord>>> records;
    bool clears_records = true;
    int asked_for_records = 0;
    std::function<void()> notify;  // as the client under test wants it
    // Adds a record about the port, and notifies.
    void tell(std::uint8_t port, fmapi::PhysicalSwitchEvent event);

    // --- What a test looks at ---
    std::map<std::string, int, std::less<>> calls;  // commands that had an effect
    std::vector<std::string> violations;
    std::vector<FakePort> ports;
    std::vector<FakeVcs> vcss;
    fmapi::Vppb& vppb(std::uint8_t vcs, std::uint8_t index) { return vcss.at(vcs).vppbs.at(index); }
    FakePort& port(std::uint8_t id);
    // Whether the LD with that serial number is bound somewhere in the VCS, so that its host sees it.
    FakeLd* visible(std::uint8_t vcs, std::uint64_t serial);
    std::uint8_t last_unbind_option = 0xff;

    // Loads the state from the file if it exists, and writes it there after every change.
    void keep_in(const std::string& path);
    void save() const;

    // --- FmApiClient ---
    Call<fmapi::IdentifyResponse> identify(Target target) override;
    Call<fmapi::BackgroundOperationStatusResponse> background_status(Target target) override;
    Call<void> abort_background(Target target) override;
    Call<fmapi::IdentifySwitchDeviceResponse> identify_switch() override;
    Call<std::vector<fmapi::PhysicalPort>> physical_ports(std::vector<std::uint8_t> ids) override;
    Call<void> port_control(std::uint8_t port, fmapi::PortOperation operation) override;
    Call<std::uint32_t> read_port_config(std::uint8_t port, std::uint16_t offset) override;
    Call<std::vector<fmapi::VirtualSwitch>> virtual_switches(std::vector<std::uint8_t> ids) override;
    Call<Completion> bind(fmapi::BindVppbRequest request, std::optional<std::uint64_t> connection) override;
    Call<Completion> unbind(fmapi::UnbindVppbRequest request) override;
    Call<fmapi::GetEventRecordsResponse> event_records(fmapi::EventLog log) override;
    Call<void> clear_event_records(fmapi::EventLog log, std::vector<std::uint16_t> handles) override;
    Call<void> request_notifications() override;
    void on_notification(std::function<void()> handler) override { notify = std::move(handler); }
    Call<fmapi::GetLdInfoResponse> ld_info(std::uint8_t port) override;
    Call<fmapi::GetLdAllocationsResponse> ld_allocations(std::uint8_t port) override;
    Call<std::vector<fmapi::LdAllocation>> set_ld_allocations(
        std::uint8_t port, std::uint8_t first_ld, std::vector<fmapi::LdAllocation> allocations) override;
    Call<fmapi::GetMultiHeadedInfoResponse> multi_headed_info(std::uint8_t port) override;
    Call<fmapi::GetHeadInfoResponse> head_info(std::uint8_t port, std::uint8_t heads) override;
    Call<fmapi::GetDcdInfoResponse> dcd_info(std::uint8_t port) override;
    Call<std::vector<fmapi::DcRegionConfiguration>> dc_regions(std::uint8_t port,
                                                               std::uint16_t host) override;
    Call<std::vector<fmapi::DcExtent>> dc_extents(std::uint8_t port, std::uint16_t host) override;
    Call<std::vector<fmapi::DcTagInformation>> dc_tags(std::uint8_t port) override;
    Call<void> add_dynamic_capacity(std::uint8_t port,
                                    fmapi::InitiateDynamicCapacityAddRequest request) override;
    Call<void> release_dynamic_capacity(std::uint8_t port,
                                        fmapi::InitiateDynamicCapacityReleaseRequest request) override;
    Call<fmapi::IdentifyMemoryDeviceResponse> identify_memory_device(Target target) override;
    Call<fmapi::GetHealthInfoResponse> health_info(Target target) override;
    Call<Completion> sanitize(Target target) override;
    [[nodiscard]] std::uint64_t connections() const override { return connections_; }
    void close() override {}

    // The next command finds the connection gone, as after a restart of the switch.
    void drop_connection() { ++connections_; }

  private:
    std::uint64_t connections_ = 1;
    std::uint16_t last_handle_ = 0;
    struct Operation {
        std::string command;
        fmapi::Opcode opcode{};
        int polls_left = 0;
        bool done = true;
        fmapi::ReturnCode code = fmapi::ReturnCode::kSuccess;
        std::uint8_t vcs = 0;
        std::uint8_t vppb = 0;
        std::uint8_t port = 0;
        std::uint16_t ld = 0;
    };
    boost::asio::awaitable<Result<>> arrive(std::string_view command);
    void tick();
    Result<> leave(std::string_view command);
    std::optional<std::string> bind_fault(const fmapi::BindVppbRequest& request);
    Completion begin(Operation& slot, Operation operation);
    void finish(Operation& operation);
    FakeLd* ld_at(std::uint8_t port, std::uint16_t ld);
    void detach_dcd(const FakeLd& ld);
    FakePort* dcd_of(const FakeLd& ld, std::size_t& host);
    void load(const std::string& path);

    boost::asio::any_io_executor executor_;
    Operation switch_operation_;
    std::map<std::pair<std::uint8_t, std::uint16_t>, Operation> ld_operations_;
    std::string path_;
};

}  // namespace memtide::fm
