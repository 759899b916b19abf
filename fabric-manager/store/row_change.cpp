#include "fabric-manager/store/row_change.h"

#include <array>
#include <cstring>

#include <fmt/format.h>
#include <xxhash.h>

#include "fabric-manager/store/record.h"

namespace memtide::fm {

namespace {

using Kind = RowChange::Kind;

void add_composition(std::vector<RowChange>& out, const CompositionChange& change) {
    const Composition& c = change.composition;
    if (change.forget) {
        out.push_back({Kind::kForgetComposition, c.id.value, 0, 0, {}, {}});
        return;
    }
    const Kind kind = c.revision == 1 ? Kind::kInsertComposition : Kind::kUpdateComposition;
    out.push_back({kind, c.id.value, c.sequence, c.revision, encode_record(c), {}});
}

// --- As bytes: little-endian numbers, texts with their length before them ---

template <typename Number>
void put(std::string& out, Number value) {
    std::array<char, sizeof value> bytes{};
    for (std::size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
    out.append(bytes.data(), bytes.size());
}

void put_text(std::string& out, std::string_view text) {
    put(out, static_cast<std::uint32_t>(text.size()));
    out += text;
}

class Reader {
  public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}
    template <typename Number>
    Number number() {
        Number value = 0;
        const std::string_view bytes = take(sizeof value);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            value |=
                static_cast<Number>(static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i));
        return value;
    }
    std::string text() { return std::string(take(number<std::uint32_t>())); }
    [[nodiscard]] bool broken() const { return broken_; }
    [[nodiscard]] bool at_end() const { return rest_.empty(); }

  private:
    std::string_view take(std::size_t size) {
        if (size > rest_.size()) {
            broken_ = true;
            rest_ = {};
            return {};
        }
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    std::string_view rest_;
    bool broken_ = false;
};

}  // namespace

std::vector<RowChange> row_changes(const Mutation& mutation) {
    std::vector<RowChange> out;
    out.reserve(mutation.compositions.size() + mutation.events.size() + mutation.hosts.size() + 2);
    for (const CompositionChange& change : mutation.compositions) add_composition(out, change);
    for (const Event& event : mutation.events)
        out.push_back({Kind::kAddEvent, {}, event.id, 0, encode_record(event), {}});
    for (const QuarantineRecord& ld : mutation.quarantine) {
        const Kind kind = ld.lifted ? Kind::kLiftQuarantine : Kind::kQuarantine;
        out.push_back({kind, {}, ld.serial.value, ld.size.value, ld.detail, {}});
    }
    for (const HostRecord& host : mutation.hosts)
        out.push_back({Kind::kHost, host.host.value, host.revision, 0, {}, {}});
    if (const auto& key = mutation.idempotency)
        out.push_back({Kind::kAddKey, key->key, 0, 0, encode_record(key->answer), key->body_hash});
    for (const std::string& key : mutation.forget_idempotency)
        out.push_back({Kind::kForgetKey, key, 0, 0, {}, {}});
    if (mutation.forget_events_up_to)
        out.push_back({Kind::kForgetEvents, {}, *mutation.forget_events_up_to, 0, {}, {}});
    return out;
}

std::string encode_changes(const std::vector<RowChange>& changes) {
    std::string out;
    std::size_t size = 0;
    for (const RowChange& one : changes) size += 29 + one.key.size() + one.body.size() + one.hash.size();
    out.reserve(size);
    for (const RowChange& one : changes) {
        put(out, static_cast<std::uint8_t>(one.kind));
        put_text(out, one.key);
        put(out, one.number);
        put(out, one.second);
        put_text(out, one.body);
        put_text(out, one.hash);
    }
    return out;
}

Result<std::vector<RowChange>> decode_changes(std::string_view bytes) {
    std::vector<RowChange> changes;
    Reader in(bytes);
    while (!in.at_end()) {
        RowChange one;
        const auto kind = in.number<std::uint8_t>();
        one.kind = static_cast<Kind>(kind);
        one.key = in.text();
        one.number = in.number<std::uint64_t>();
        one.second = in.number<std::uint64_t>();
        one.body = in.text();
        one.hash = in.text();
        if (in.broken() || kind < static_cast<std::uint8_t>(Kind::kInsertComposition) ||
            kind > static_cast<std::uint8_t>(Kind::kForgetKey))
            return fail(ErrorCode::kProtocol,
                        fmt::format("change {} of an entry of the log cannot be read", changes.size() + 1));
        changes.push_back(std::move(one));
    }
    return changes;
}

std::int64_t row_sum(RowTable table, std::string_view key, std::uint64_t number, std::uint64_t second,
                     std::string_view body, std::string_view hash) {
    // The lengths are in it, so that no byte can move from one column to the next.
    std::string head;
    head.reserve(40 + key.size() + hash.size());
    put(head, number);
    put(head, second);
    put_text(head, key);
    put_text(head, hash);
    const std::uint64_t seed = XXH64(head.data(), head.size(), static_cast<std::uint64_t>(table));
    return static_cast<std::int64_t>(XXH64(body.data(), body.size(), seed));
}

}  // namespace memtide::fm
