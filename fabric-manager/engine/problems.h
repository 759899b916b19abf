#pragma once

#include <expected>
#include <optional>

#include "common/base/error.h"
#include "fabric-manager/engine/manager.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/problem.h"

// Refusals that several requests share.
namespace memtide::fm {

// How a failed journal write is told to a client.
std::unexpected<Problem> refuse_for_store(const Error& error);
std::unexpected<Problem> refuse_unknown(const CompositionId& id);
Problem ended_already(const Composition& composition);
std::optional<Problem> check_precondition(const Composition& composition, const Precondition& precondition);

}  // namespace memtide::fm
