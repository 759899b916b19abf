#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/error.h"
#include "common/base/ids.h"

namespace memtide {

class YamlMap;
class YamlValue;

// One mistake in a document.
struct YamlComplaint {
    int line = 0;  // from 1; 0 stands for the file as a whole
    int column = 0;
    std::string message;  // what is wrong
    std::string advice;   // what to do about it; empty when the message says it
    // Where the value stands, by keys: "switches.ports.id". Of an absent one where it should stand.
    std::string key_path;
};

// Reads a YAML file into typed values and remembers where each stood. Mistakes do not stop the reading: every
// accessor records "FILE:LINE:COLUMN: what is wrong" and returns a default, so that check() reports all of
// them at once. Not thread safe.
class YamlDocument {
  public:
    // Fails with FILE:LINE:COLUMN on a file that cannot be read or is not YAML, or whose root is not a map.
    static Result<YamlDocument> load(const std::string& path);
    // As load(), for text that is already there; `name` stands for the file's name in errors.
    static Result<YamlDocument> parse(std::string_view text, std::string name);
    // As parse(), but a text that is no YAML, or no map, gives a document that is not readable: that is its
    // only complaint.
    static YamlDocument examine(std::string_view text, std::string name);
    [[nodiscard]] bool is_readable() const;
    // The text of a file. Fails, with its name, on one that cannot be read, is empty or no file.
    static Result<std::string> read(const std::string& path);

    [[nodiscard]] YamlMap root() const;

    // Call when everything was read: reports each recorded mistake, each key that nobody asked for (with the
    // nearest known key as a hint) and each key given twice, one a line, in file order.
    [[nodiscard]] Result<> check() const;
    // The same, one by one.
    [[nodiscard]] std::vector<YamlComplaint> complaints() const;
    // What is no mistake and yet hardly meant (YamlValue::remark), in file order.
    [[nodiscard]] std::vector<YamlComplaint> remarks() const;

  private:
    struct State;
    explicit YamlDocument(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
    friend class YamlMap;
    friend class YamlValue;
};

// One value somewhere in the document.
class YamlValue {
  public:
    [[nodiscard]] std::string string() const;
    [[nodiscard]] std::string name() const;  // a string that check_name accepts
    [[nodiscard]] bool boolean() const;
    [[nodiscard]] std::uint64_t integer(std::uint64_t min, std::uint64_t max) const;  // decimal or 0x...
    [[nodiscard]] Bytes bytes() const;                                                // as parse_bytes
    [[nodiscard]] Bytes bytes_multiple_of(Bytes unit) const;                          // at least one unit
    [[nodiscard]] std::uint64_t milliseconds() const;                                 // "250ms", "2s", "5min"
    [[nodiscard]] SerialNumber serial() const;
    [[nodiscard]] YamlMap map() const;
    [[nodiscard]] std::vector<YamlValue> list() const;
    [[nodiscard]] bool is_map() const;
    [[nodiscard]] bool is_list() const;

    // Whether it is there and nothing has been said against it so far: what is wrong already is not worth
    // comparing with anything.
    [[nodiscard]] bool is_sound() const;
    // Records that this value is wrong: "FILE:LINE:COLUMN: " + message. `advice`: what to do about it.
    void reject(std::string message, std::string advice = {}) const;
    // Records something that is no mistake; see YamlDocument::remarks().
    void remark(std::string message, std::string advice = {}) const;
    // "FILE:LINE:COLUMN" of this value.
    [[nodiscard]] std::string where() const;

  private:
    struct Node;
    YamlValue(std::shared_ptr<YamlDocument::State> document, std::shared_ptr<Node> node);
    std::shared_ptr<YamlDocument::State> document_;
    std::shared_ptr<Node> node_;
    friend class YamlDocument;
    friend class YamlMap;
};

// A map whose keys are asked for by name. get() makes a key known, present or not.
class YamlMap {
  public:
    // The value, or nothing when the key is absent (or the value is null).
    [[nodiscard]] std::optional<YamlValue> get(std::string_view key) const;
    // The value; when absent, records `missing "key"` and returns a value whose accessors give defaults.
    [[nodiscard]] YamlValue require(std::string_view key) const;
    // Every key and value, for maps whose keys are data; all become known.
    [[nodiscard]] std::vector<std::pair<std::string, YamlValue>> entries() const;
    // Whether it is there and has no keys; makes none known.
    [[nodiscard]] bool is_empty() const;
    void reject(std::string message, std::string advice = {}) const;

  private:
    explicit YamlMap(YamlValue self);
    YamlValue self_;
    friend class YamlDocument;
    friend class YamlValue;
};

}  // namespace memtide
