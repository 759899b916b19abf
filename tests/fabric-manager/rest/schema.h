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
    // `schema` as it stands somewhere in the document.
    static Schema of(const boost::json::value& document, const boost::json::value& schema) {
        return {document, &schema};
    }

    // Members that are not described are mistakes, also where the schema leaves it open.
    Schema& strictly() {
        strict_ = true;
        return *this;
    }

    // What of `value` does not fit, one line a mistake with its path; empty when all does. Keywords that it
    // does not know are mistakes too, so that none is taken for checked.
    [[nodiscard]] std::vector<std::string> mistakes(const boost::json::value& value) const;

  private:
    Schema(const boost::json::value& document, const boost::json::value* schema)
        : document_(document), schema_(*schema) {}

    const boost::json::value& document_;
    const boost::json::value& schema_;
    bool strict_ = false;
};

}  // namespace memtide::fm
