#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "common/base/error.h"
#include "cxl-emul/rack/frame.h"

namespace memtide::emul {

// The JSON inside kRequest, kReply, kProgress and kEvent frames. Readers take what is missing or of another
// type as empty: a peer of another version must not bring the rack down.

Result<boost::json::object> parse_message(const Frame& frame);  // kProtocol
std::string serialize_message(const boost::json::object& message);

Frame request(std::uint32_t stream, const boost::json::object& message);
Frame reply(std::uint32_t stream, const boost::json::object& message);
Frame progress(std::uint32_t stream, const boost::json::object& message);
// {"error": {"code", "message"}}
Frame error_reply(std::uint32_t stream, const Error& error);
// The message of a kReply, or the error in it.
Result<boost::json::object> read_reply(const Frame& frame);

std::string text_of(const boost::json::object& message, std::string_view key);
std::uint64_t number_of(const boost::json::object& message, std::string_view key);
std::vector<std::string> texts_of(const boost::json::object& message, std::string_view key);

}  // namespace memtide::emul
