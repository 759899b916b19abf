#include "fabric-manager/fmapi/device_transport.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/cxl_mem.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace memtide::fm {
namespace asio = boost::asio;

namespace {

struct KernelCommand {
    std::uint16_t opcode;
    std::uint32_t id;
};

// What the driver knows by a number of its own (CXL 3.1, 8.2.9.9).
constexpr std::array kKernelCommands{
    KernelCommand{0x0200, CXL_MEM_COMMAND_ID_GET_FW_INFO},
    KernelCommand{0x0400, CXL_MEM_COMMAND_ID_GET_SUPPORTED_LOGS},
    KernelCommand{0x0401, CXL_MEM_COMMAND_ID_GET_LOG},
    KernelCommand{0x4000, CXL_MEM_COMMAND_ID_IDENTIFY},
    KernelCommand{0x4100, CXL_MEM_COMMAND_ID_GET_PARTITION_INFO},
    KernelCommand{0x4102, CXL_MEM_COMMAND_ID_GET_LSA},
    KernelCommand{0x4200, CXL_MEM_COMMAND_ID_GET_HEALTH_INFO},
    KernelCommand{0x4201, CXL_MEM_COMMAND_ID_GET_ALERT_CONFIG},
    KernelCommand{0x4203, CXL_MEM_COMMAND_ID_GET_SHUTDOWN_STATE},
};

// The driver refuses a raw command whose answer could be longer than the device's mailbox, whose size it does
// not tell: from the largest that is likely to the smallest that is allowed (CXL 3.1, 8.2.8.4.3).
constexpr std::array<std::uint32_t, 5> kRawAnswerSizes{65536, 4096, 2048, 1024, 256};
constexpr std::uint32_t kAnswerSize = 65536;

std::optional<std::uint32_t> kernel_id(fmapi::Opcode opcode) {
    const auto found =
        std::ranges::find(kKernelCommands, static_cast<std::uint16_t>(opcode), &KernelCommand::opcode);
    if (found == kKernelCommands.end()) return std::nullopt;
    return found->id;
}

Error refusal(const std::string& path, fmapi::Opcode opcode, bool raw, int error) {
    const std::string what = fmt::format("{} through {}", fmapi::to_string(opcode), path);
    if (raw && (error == EPERM || error == EINVAL || error == ENOTTY || error == EOPNOTSUPP))
        return {ErrorCode::kPermission,
                fmt::format("{}: the kernel has no number for this command and does not pass raw ones on: it "
                            "takes CONFIG_CXL_MEM_RAW_COMMANDS (and the driver of a switch), or another way "
                            "to the device",
                            what)};
    if (error == ENOTTY || error == EOPNOTSUPP)
        return {ErrorCode::kInvalidArgument, fmt::format("{}: this is no device of the CXL driver, or the "
                                                         "device does not have the command",
                                                         what)};
    return fail_errno("ioctl", what, error).error();
}

struct Answer {
    int error = 0;  // errno
    fmapi::ReturnCode return_code = fmapi::ReturnCode::kSuccess;
    fmapi::Payload payload;
};

class DeviceFile {
  public:
    DeviceFile(int fd, DeviceControl control) : fd_(fd), control_(std::move(control)) {}
    ~DeviceFile() { ::close(fd_); }
    DeviceFile(const DeviceFile&) = delete;
    DeviceFile& operator=(const DeviceFile&) = delete;

    // Blocks until the device has answered. On the worker thread only.
    Answer run(const fmapi::Message& request) {
        if (const auto id = kernel_id(request.opcode)) return send(*id, request, kAnswerSize);
        Answer answer;
        for (; raw_size_ < kRawAnswerSizes.size(); ++raw_size_) {
            answer = send(CXL_MEM_COMMAND_ID_RAW, request, kRawAnswerSizes[raw_size_]);
            if (answer.error != EINVAL) return answer;
        }
        raw_size_ = 0;
        return answer;
    }

  private:
    Answer send(std::uint32_t id, const fmapi::Message& request, std::uint32_t room) {
        Answer answer;
        answer.payload.resize(room);
        cxl_send_command command{};
        command.id = id;
        if (id == CXL_MEM_COMMAND_ID_RAW) command.raw.opcode = static_cast<std::uint16_t>(request.opcode);
        command.in.size = static_cast<std::uint32_t>(request.payload.size());
        command.in.payload = reinterpret_cast<std::uintptr_t>(request.payload.data());
        command.out.size = room;
        command.out.payload = reinterpret_cast<std::uintptr_t>(answer.payload.data());
        answer.error = -control_(fd_, CXL_MEM_SEND_COMMAND, &command);
        answer.return_code = static_cast<fmapi::ReturnCode>(command.retval);
        answer.payload.resize(answer.error == 0 ? std::min(command.out.size, room) : 0);
        return answer;
    }

    int fd_;
    DeviceControl control_;
    std::size_t raw_size_ = 0;
};

class DeviceTransport final : public Transport {
  public:
    DeviceTransport(const asio::any_io_executor& executor, std::string path, DeviceControl control)
        : executor_(executor), path_(std::move(path)), control_(std::move(control)) {}
    ~DeviceTransport() override {
        *connected_ = false;
        worker_.join();
    }
    DeviceTransport(const DeviceTransport&) = delete;

    asio::awaitable<Result<>> open(TimePoint, const fmapi::WireFormat&) override {
        close();
        const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
        if (fd < 0) {
            Error error = fail_errno("open", path_, errno).error();
            error.code = ErrorCode::kUnavailable;  // it may appear: a device that is plugged in later
            co_return std::unexpected(std::move(error));
        }
        file_ = std::make_shared<DeviceFile>(fd, control_);
        connected_ = std::make_shared<bool>(true);
        co_return Result<>{};
    }

    void send(const fmapi::MctpMessage& message) override {
        if (!file_ || message.type == fmapi::MctpType::kControl) return;
        asio::post(worker_, [this, file = file_, connected = connected_, request = message.message] {
            Answer answer = file->run(request);
            asio::post(executor_, [this, connected, request, answer = std::move(answer)]() mutable {
                if (*connected) deliver(request, std::move(answer));
            });
        });
    }

    [[nodiscard]] bool is_open() const override { return file_ != nullptr; }
    void close() override {
        *connected_ = false;
        file_.reset();
    }
    [[nodiscard]] bool has_formats() const override { return false; }

  private:
    void deliver(const fmapi::Message& request, Answer answer) {
        if (answer.error == ENODEV || answer.error == ENXIO) {
            close();
            return user().lost({ErrorCode::kUnavailable, fmt::format("the device {} is gone", path_)});
        }
        if (answer.error != 0)
            return user().refused(request.tag,
                                  refusal(path_, request.opcode, !kernel_id(request.opcode), answer.error));
        fmapi::MctpMessage response;
        response.message = fmapi::make_response(request, answer.return_code, std::move(answer.payload));
        user().received(std::move(response));
    }

    asio::any_io_executor executor_;
    std::string path_;
    DeviceControl control_;
    std::shared_ptr<DeviceFile> file_;
    std::shared_ptr<bool> connected_ = std::make_shared<bool>(false);  // read on the executor only
    asio::thread_pool worker_{1};
};

}  // namespace

DeviceControl system_device_control() {
    return [](int fd, unsigned long request, void* argument) {
        return ::ioctl(fd, request, argument) < 0 ? -errno : 0;
    };
}

std::unique_ptr<Transport> make_device_transport(const asio::any_io_executor& executor, std::string path,
                                                 DeviceControl control) {
    return std::make_unique<DeviceTransport>(executor, std::move(path), std::move(control));
}

}  // namespace memtide::fm
