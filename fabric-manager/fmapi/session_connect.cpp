// How a session gets a connection: opens it, finds out the dialect, gives the switch its endpoint id.
#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/fmapi/mctp_control.h"
#include "common/log/log.h"
#include "fabric-manager/fmapi/pending.h"
#include "fabric-manager/fmapi/session.h"

namespace memtide::fm {
namespace asio = boost::asio;
using fmapi::Framing;
using fmapi::WireFormat;

namespace {

// For an answer in a framing that is tried after another one was not answered.
constexpr std::chrono::milliseconds kFurtherTry{500};
constexpr fmapi::HeaderForm kMirroredHeader{.category_in_high_nibble = true, .background_in_low_bit = true};
constexpr std::uint8_t kOwnEndpoint = 8;
constexpr std::uint8_t kSwitchEndpoint = 9;

// What is tried on a switch of which nothing is known, in this order. Header forms show in the answer.
constexpr std::array kCandidates{WireFormat{.framing = Framing::kFixedPackets},
                                 WireFormat{.framing = Framing::kTruePackets},
                                 WireFormat{.framing = Framing::kFrames},
                                 WireFormat{.framing = Framing::kFrames, .frame_length_is_big_endian = true}};

}  // namespace

asio::awaitable<Result<>> Session::connect() {
    const TurnQueue::Turn turn = co_await connecting_.take();
    if (!turn) co_return fail(ErrorCode::kCancelled, "cancelled");
    if (is_ready()) co_return Result<>{};  // whoever had the turn before has done it
    ready_ = false;
    timeouts_in_a_row_ = 0;
    assigned_.reset();
    answered_.clear();
    silent_about_.clear();
    own_endpoint_ = options_.own_endpoint;
    Result<> done = co_await connect_in_turn();
    if (!done) {
        transport_->close();
        co_return done;
    }
    ready_ = true;
    ++connections_;
    log::debug("fm-api connected", {{"switch", options_.address}, {"dialect", std::string(dialect_->name)}});
    co_return done;
}

asio::awaitable<Result<>> Session::connect_in_turn() {
    const bool configured = fmapi::find_dialect(options_.dialect) != nullptr;
    if (!configured && transport_->has_formats()) co_return co_await detect();
    if (dialect_ == nullptr) dialect_ = &fmapi::spec_dialect();
    Result<> opened = co_await open(dialect_->wire);
    if (!opened) co_return opened;
    co_return co_await assign_endpoint_id();
}

asio::awaitable<Result<>> Session::open(const WireFormat& format) {
    format_ = format;
    co_return co_await transport_->open(Clock::now() + options_.connect_timeout, format);
}

// What was found last is tried first; then each candidate, on a connection of its own: a switch that got what
// it cannot read is best left alone.
asio::awaitable<Result<>> Session::detect() {
    std::vector<WireFormat> formats;
    if (known_format_) formats.push_back(*known_format_);
    for (const WireFormat& candidate : kCandidates)
        if (candidate != known_format_) formats.push_back(candidate);
    std::optional<Error> first;
    for (const WireFormat& format : formats) {
        Result<> opened = co_await open(format);
        if (!opened && !first) co_return opened;
        if (!opened) break;
        Result<> tried = co_await assign_endpoint_id();
        const auto time = first ? std::min<Clock::duration>(kFurtherTry, options_.command_timeout)
                                : options_.command_timeout;
        if (tried) tried = co_await identify_within(time);
        if (tried) {
            note_dialect();
            co_return tried;
        }
        if (tried.error().code == ErrorCode::kCancelled) co_return tried;
        if (!first) first = tried.error();
        transport_->close();
    }
    co_return std::unexpected(
        std::move(*first).with_context("finding out its dialect (\"dialect\" in the configuration says it)"));
}

asio::awaitable<Result<>> Session::identify_within(Clock::duration time) {
    // However it ends: answers to other commands say nothing of the dialect.
    struct Detecting {
        bool& flag;
        explicit Detecting(bool& detecting) : flag(detecting) { flag = true; }
        ~Detecting() { flag = false; }
    };
    const Detecting now(detecting_);
    const fmapi::Message request = fmapi::make_request(fmapi::Opcode::kIdentify, next_tag());
    const auto answer = co_await answer_to(request, false, time);
    if (!answer) co_return std::unexpected(answer.error());
    co_return Result<>{};
}

// Reads off an answer what is different about it.
void Session::recognise(const fmapi::MctpMessage& message) {
    const fmapi::Message& inside = message.message;
    Pending* const pending = by_tag_[inside.tag];
    if (pending == nullptr || pending->outcome) return;
    // A response whose category is in the other nibble than it was read from reads as the request, with a
    // payload that none has.
    const bool mirrored = !inside.is_response && inside.opcode == pending->opcode && !inside.payload.empty();
    if (inside.is_response || mirrored)
        shape_ = {.opcode_zero = inside.opcode == fmapi::Opcode{}, .identify_length = inside.payload.size()};
    if (!mirrored) return;
    format_.header = format_.header == kMirroredHeader ? fmapi::HeaderForm{} : kMirroredHeader;
    transport_->set_header_form(format_.header);
    pending->end(inside);
}

void Session::note_dialect() {
    const fmapi::Dialect& found =
        fmapi::recognise_dialect(format_, shape_.opcode_zero, shape_.identify_length);
    if (dialect_ != &found)
        log::info("fm-api dialect of a switch",
                  {{"switch", options_.address}, {"dialect", std::string(found.name)}});
    dialect_ = &found;
    known_format_ = format_;
}

// For switches that answer nothing before they have an id, and where the configuration gives one.
asio::awaitable<Result<>> Session::assign_endpoint_id() {
    const bool wanted = options_.assign_endpoint || (dialect_ != nullptr && dialect_->needs_endpoint_id);
    if (!wanted || !transport_->has_formats() || format_.framing == Framing::kFrames) co_return Result<>{};
    const std::uint8_t eid = options_.switch_endpoint != 0 ? options_.switch_endpoint : kSwitchEndpoint;
    if (own_endpoint_ == 0) own_endpoint_ = kOwnEndpoint;
    fmapi::MctpMessage request;
    request.route.source = own_endpoint_;
    request.type = fmapi::MctpType::kControl;
    request.message.payload = fmapi::set_endpoint_id_request(0, eid);
    Pending pending(executor_, fmapi::Opcode{}, Clock::now() + options_.command_timeout);
    const Registration registration(*this, 0, pending);
    transport_->send(request);
    co_await pending.until_ended(*this);
    if (!pending.outcome) co_return fail(ErrorCode::kCancelled, "cancelled");
    if (!*pending.outcome)
        co_return std::unexpected(
            Error(pending.outcome->error()).with_context(fmt::format("MCTP Set Endpoint ID {}", eid)));
    co_return Result<>{};
}

}  // namespace memtide::fm
