#include "fabric-manager/engine/problems.h"

#include <algorithm>

#include <fmt/format.h>

namespace memtide::fm {

std::unexpected<Problem> refuse_for_store(const Error& error) {
    if (error.code == ErrorCode::kExhausted)
        return refuse(problem::kStorageFull,
                      "the request could not be made durable and was not carried out: " + error.message,
                      error.code);
    return refuse(problem::kInternalError, "the request could not be made durable: " + error.message,
                  error.code);
}

std::unexpected<Problem> refuse_unknown(const CompositionId& id) {
    return refuse(problem::kUnknownComposition, fmt::format("no composition {}", id.value),
                  ErrorCode::kNotFound);
}

Problem ended_already(const Composition& c) {
    return {std::string(problem::kCompositionEnded),
            fmt::format("composition {} has ended already: it is {}", c.id.value, to_string(c.state)),
            ErrorCode::kConflict,
            {}};
}

std::optional<Problem> check_precondition(const Composition& c, const Precondition& precondition) {
    if (!precondition || precondition(c.revision)) return std::nullopt;
    return Problem{std::string(problem::kPreconditionFailed),
                   fmt::format("the composition has changed since: its ETag is now \"{}\"", c.revision),
                   ErrorCode::kConflict,
                   {}};
}

}  // namespace memtide::fm
