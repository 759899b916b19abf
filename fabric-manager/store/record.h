#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "fabric-manager/model/composition.h"
#include "fabric-manager/model/event.h"

// How compositions and events are written in the store: JSON text, absent keys for absent values, times in
// nanoseconds since the epoch. What follows from the rest (waiting_for, holders) is not written. Decoding
// tolerates unknown keys, reads the records of schema version 2 too, and fails with kProtocol on anything
// that is not a record.
namespace memtide::fm {

std::string encode_record(const Composition& composition);
Result<Composition> decode_composition(std::string_view text);

std::string encode_record(const Event& event);
Result<Event> decode_event(std::string_view text);

}  // namespace memtide::fm
