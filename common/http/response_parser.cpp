#include "common/http/response_parser.h"

#include <string>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "common/http/beast_text.h"
#include "common/http/last_chunk.h"

namespace memtide::http {

namespace beast = boost::beast;

namespace {

constexpr std::uint32_t kHeaderLimit = 64 << 10;
constexpr std::uint64_t kBodyLimit = 64 << 20;

}  // namespace

struct ResponseParser::Impl {
    using Parser = beast::http::response_parser<beast::http::string_body>;

    explicit Impl(bool answers_head) : head(answers_head) { renew(); }
    void renew() {
        parser = std::make_unique<Parser>();
        parser->header_limit(kHeaderLimit);
        parser->body_limit(kBodyLimit);
        parser->eager(true);
        parser->skip(head);
    }
    [[nodiscard]] bool streams() const { return on_chunk && parser->get().result_int() / 100 == 2; }
    // Hands on what has come of the body.
    void deliver() {
        if (!parser->is_header_done() || !streams()) return;
        std::string& body = parser->get().body();
        if (!body.empty() && !unwanted) unwanted = !on_chunk(body);
        body.clear();
    }
    Result<State> feed(std::string_view& bytes);

    bool head;
    std::size_t left_over = 0;
    bool begun = false;
    bool unwanted = false;
    std::unique_ptr<Parser> parser;
    std::function<bool(std::string_view)> on_chunk;
};

Result<ResponseParser::State> ResponseParser::Impl::feed(std::string_view& bytes) {
    begun = begun || !bytes.empty();
    const bool chunked = parser->is_header_done() && parser->chunked();
    if (must_wait_for_chunk(chunked, left_over, bytes.size())) return State::kNeedMore;
    while (!bytes.empty() && !unwanted) {
        beast::error_code error;
        const std::size_t used = parser->put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
        bytes.remove_prefix(used);
        if (error && error != beast::http::error::need_more)
            return fail(ErrorCode::kProtocol, "the answer is not HTTP that can be read: " + error.message());
        // Streams have no end in sight: only what is kept counts towards the limit.
        if (parser->is_header_done() && streams()) parser->body_limit(boost::none);
        deliver();
        if (parser->is_done()) {
            if (parser->get().result_int() / 100 != 1) return State::kComplete;
            renew();  // "100 Continue" and its like come before the answer
            continue;
        }
        if (used == 0 || error) break;
    }
    left_over = bytes.size();
    if (bytes.size() > kHeaderLimit && !unwanted)
        return fail(ErrorCode::kProtocol, "the answer has a header or chunk that does not end");
    return State::kNeedMore;
}

ResponseParser::ResponseParser(bool head) : impl_(std::make_unique<Impl>(head)) {}
ResponseParser::~ResponseParser() = default;

Result<ResponseParser::State> ResponseParser::feed(std::string_view& bytes) { return impl_->feed(bytes); }

Result<ResponseParser::State> ResponseParser::end() {
    beast::error_code error;
    if (impl_->parser->got_some()) impl_->parser->put_eof(error);
    impl_->deliver();
    if (!impl_->parser->got_some() || error || !impl_->parser->is_done())
        return fail(ErrorCode::kUnavailable, "the connection was closed in the middle of the answer");
    return State::kComplete;
}

void ResponseParser::stream_to(std::function<bool(std::string_view)> on_chunk) {
    impl_->on_chunk = std::move(on_chunk);
}
bool ResponseParser::begun() const { return impl_->begun; }
bool ResponseParser::has_header() const { return impl_->parser->is_header_done(); }
bool ResponseParser::keep_alive() const { return impl_->parser->keep_alive(); }
bool ResponseParser::unwanted() const { return impl_->unwanted; }

ClientResponse ResponseParser::take() {
    auto message = impl_->parser->release();
    ClientResponse response;
    response.status = message.result_int();
    for (const auto& field : message) {
        const auto [place, fresh] = response.headers.try_emplace(std::string(view(field.name_string())),
                                                                 std::string(view(field.value())));
        if (!fresh) place->second.append(", ").append(view(field.value()));
    }
    response.body = std::move(message.body());
    return response;
}

}  // namespace memtide::http
