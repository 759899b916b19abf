#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "common/base/error.h"
#include "common/http/message.h"
#include "fabric-manager/model/problem.h"
#include "fabric-manager/model/time.h"

// What the handlers share: reading queries, writing answers.
namespace memtide::fm {

// Codes that only REST gives; the others are in model/problem.h.
namespace problem {
inline constexpr std::string_view kInvalidJson = "invalid-json";
inline constexpr std::string_view kUnsupportedMediaType = "unsupported-media-type";
inline constexpr std::string_view kSizeNegative = "size-negative";
inline constexpr std::string_view kNotFound = "not-found";
inline constexpr std::string_view kShuttingDown = "shutting-down";
}  // namespace problem

// The HTTP status that goes with a problem.
unsigned status_of(const Problem& problem);
http::Response answer(const Problem& problem);
http::Response answer(unsigned status, const boost::json::object& body);

// What is wrong with the Content-Type of a request that has a JSON body.
std::optional<Problem> check_media_type(const http::Request& request);

// Query parameters; each fails with invalid-request, naming the parameter and what it may be.
struct Paging {
    std::size_t limit = 100;  // 1 to 1000
    std::string page;         // the token; empty: the first page
};
Outcome<Paging> paging(const http::Request& request);
// Up to `most`; longer ones are shortened, since a client cannot know what this server takes.
Outcome<Milliseconds> timeout(const http::Request& request, Milliseconds otherwise, Milliseconds most);
Outcome<std::optional<std::uint64_t>> number(const http::Request& request, std::string_view name);
Outcome<bool> flag(const http::Request& request, std::string_view name);
std::optional<std::uint64_t> parse_number(std::string_view text);

boost::json::object list_of(boost::json::array items, std::optional<std::string> next);

}  // namespace memtide::fm
