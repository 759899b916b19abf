#include "fabric-manager/engine/problems.h"

#include <fmt/format.h>

namespace memtide::fm {

std::unexpected<Problem> refuse_for_store(const Error& error) {
    std::string_view code = problem::kInternalError;
    if (error.code == ErrorCode::kExhausted) code = problem::kStorageFull;
    if (error.code == ErrorCode::kPermission) code = problem::kStorageReadOnly;
    if (error.code == ErrorCode::kIo) code = problem::kStorageFailed;
    return refuse(code, "the request could not be made durable and was not carried out: " + error.message,
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
