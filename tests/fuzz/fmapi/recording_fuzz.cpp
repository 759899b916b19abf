// Capture files: whatever is in one is read or refused by name, and what is recorded of a conversation reads
// back as what was said in it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "common/fmapi/capture/capture.h"
#include "common/fmapi/capture/pcap_writer.h"

using namespace memtide::fmapi;

namespace {

void require(bool condition) {
    if (!condition) std::abort();
}

// A file without a disk.
class MemoryFile {
  public:
    MemoryFile() : fd_(memfd_create("capture", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
        require(fd_ >= 0);
    }
    ~MemoryFile() { close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    void set(std::span<const std::byte> bytes) const {
        require(write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    }
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    int fd_;
    std::string path_;
};

void read_file(std::span<const std::byte> bytes, std::uint16_t port) {
    const MemoryFile file;
    file.set(bytes);
    for (const auto only : {std::optional<std::uint16_t>(), std::optional(port)}) {
        const auto capture = read_capture_file(file.path(), {.tcp_port = only});
        if (!capture) {
            require(capture.error().message.find(file.path()) != std::string::npos);
            continue;
        }
        for (const CapturedMessage& captured : capture->messages) {
            require(captured.message.has_value() == captured.error.empty());
            if (captured.answers) require(*captured.answers < capture->messages.size());
        }
    }
}

// Each message is said by the end that its kind makes it, over the connection that its tag says.
void record(std::span<const std::byte> bytes) {
    const MemoryFile file;
    auto writer = PcapWriter::open(file.path());
    require(writer.has_value());
    std::vector<Message> said;
    while (const auto message = decode_message(bytes)) {
        bytes = bytes.subspan(kHeaderSize + message->payload.size());
        const auto packets = to_packets({.route = {.tag = 3}, .type = MctpType::kFmApi, .message = *message});
        const auto sender = message->is_response ? Sender::kSwitch : Sender::kManager;
        require(writer->write(message->tag & 3, sender, packets).has_value());
        said.push_back(*message);
    }
    if (said.empty()) return;
    const auto capture =
        read_capture_file(file.path(), {.tcp_port = PcapWriter::kSwitchPort, .format = WireFormat()});
    require(capture && capture->messages.size() == said.size() && capture->missing_bytes == 0);
    for (std::size_t i = 0; i < said.size(); ++i) require(capture->messages[i].message == said[i]);
}

}  // namespace

// The first two bytes are a port; the rest is a file, and messages to record.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
    read_file(bytes, static_cast<std::uint16_t>(data[0] << 8 | data[1]));
    record(bytes);
    return 0;
}
