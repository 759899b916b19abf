#include "common/fmapi/capture/session_capture.h"

#include <fmt/format.h>

#include "common/log/log.h"

namespace memtide::fmapi {

Result<std::shared_ptr<SessionCapture>> SessionCapture::open(const std::string& path) {
    auto writer = PcapWriter::open(path);
    if (!writer) return std::unexpected(std::move(writer).error());
    return std::shared_ptr<SessionCapture>(new SessionCapture(*std::move(writer)));
}

SwitchCapture SessionCapture::of_switch(const std::string& name) {
    const std::uint32_t which = switches_++;
    if (writer_)
        log::info(
            "fm-api is captured",
            {{"switch", name}, {"file", writer_->path()}, {"address", PcapWriter::address_of_switch(which)}});
    return {shared_from_this(), which};
}

std::uint64_t SessionCapture::begin(std::uint32_t which_switch) {
    const std::uint64_t connection = connections_++;
    if (writer_) check(writer_->begin(connection, which_switch));
    return connection;
}

void SessionCapture::write(std::uint64_t connection, Sender sender, std::span<const std::byte> bytes) {
    if (writer_ && !bytes.empty()) check(writer_->write(connection, sender, bytes));
}

void SessionCapture::end(std::uint64_t connection) {
    if (writer_) check(writer_->end(connection));
}

void SessionCapture::check(const Result<>& written) {
    if (written) return;
    log::warning("the capture has ended", {{"file", writer_->path()}, {"error", written.error()}});
    writer_.reset();
}

StreamTap::StreamTap(std::shared_ptr<SessionCapture> file, std::uint32_t which_switch)
    : file_(std::move(file)), connection_(file_->begin(which_switch)) {}

StreamTap::~StreamTap() {
    if (file_ != nullptr) file_->end(connection_);
}

StreamTap& StreamTap::operator=(StreamTap&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(connection_, other.connection_);
    return *this;
}

}  // namespace memtide::fmapi
