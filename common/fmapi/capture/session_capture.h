#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/fmapi/capture/pcap_writer.h"

// What a program captures of its own FM API connections (--pcap). Not thread safe: all of it belongs to one
// thread, or to one strand.
namespace memtide::fmapi {

class SwitchCapture;

// The file. What goes wrong with it later ends the capture, with one warning in the log, and nothing else.
class SessionCapture : public std::enable_shared_from_this<SessionCapture> {
  public:
    // Errors as PcapWriter::open().
    static Result<std::shared_ptr<SessionCapture>> open(const std::string& path);

    // The capture's next switch; which address stands for it there is said in the log.
    SwitchCapture of_switch(const std::string& name);

  private:
    friend class StreamTap;
    explicit SessionCapture(PcapWriter writer) : writer_(std::move(writer)) {}
    std::uint64_t begin(std::uint32_t which_switch);
    void write(std::uint64_t connection, Sender sender, std::span<const std::byte> bytes);
    void end(std::uint64_t connection);
    void check(const Result<>& written);

    std::optional<PcapWriter> writer_;  // none once something went wrong
    std::uint64_t connections_ = 0;
    std::uint32_t switches_ = 0;
};

// One connection with a switch, for as long as this lives. One that was made without a capture takes what it
// is told and keeps nothing.
class StreamTap {
  public:
    StreamTap() = default;
    StreamTap(std::shared_ptr<SessionCapture> file, std::uint32_t which_switch);
    ~StreamTap();
    StreamTap(StreamTap&&) noexcept = default;
    StreamTap& operator=(StreamTap&& other) noexcept;

    // Bytes of the stream, as soon as they were sent or received.
    void write(Sender sender, std::span<const std::byte> bytes) {
        if (file_ != nullptr) file_->write(connection_, sender, bytes);
    }
    [[nodiscard]] bool is_on() const { return file_ != nullptr; }

  private:
    std::shared_ptr<SessionCapture> file_;
    std::uint64_t connection_ = 0;
};

// The connections with one switch; by default none of them is captured.
class SwitchCapture {
  public:
    SwitchCapture() = default;
    SwitchCapture(std::shared_ptr<SessionCapture> file, std::uint32_t which_switch)
        : file_(std::move(file)), which_switch_(which_switch) {}

    [[nodiscard]] StreamTap connection() const {
        return file_ == nullptr ? StreamTap() : StreamTap(file_, which_switch_);
    }
    [[nodiscard]] bool is_on() const { return file_ != nullptr; }

  private:
    std::shared_ptr<SessionCapture> file_;
    std::uint32_t which_switch_ = 0;
};

}  // namespace memtide::fmapi
