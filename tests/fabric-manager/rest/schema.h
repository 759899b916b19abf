#pragma once

#include <string>
#include <vector>

#include <boost/json/value.hpp>

namespace memtide::fm {

// The part of JSON Schema that openapi.json uses: type, enum, required, properties, additionalProperties,
// items, minimum, maximum, pattern, oneOf and $ref within the document.
class Schema {
  public:
    // Where `name` is one of the document's components.
    Schema(const boost::json::value& document, const std::string& name);

    // What of `value` does not fit, one line a mistake with its path; empty when all does. Keywords that it
    // does not know are mistakes too, so that none is taken for checked.
    [[nodiscard]] std::vector<std::string> mistakes(const boost::json::value& value) const;

  private:
    const boost::json::value& document_;
    const boost::json::value& schema_;
};

}  // namespace memtide::fm
