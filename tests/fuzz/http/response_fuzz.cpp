// What a server, or something that is none, may answer the client: in pieces of any size, ended anywhere.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/http/response_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using memtide::http::ResponseParser;
    if (size < 2) return 0;
    const std::size_t step = data[0] == 0 ? size : data[0];
    const bool streamed = (data[1] & 1) != 0;
    const std::string_view all(reinterpret_cast<const char*>(data) + 2, size - 2);
    ResponseParser parser((data[1] & 2) != 0);
    std::size_t heard = 0;
    if (streamed) {
        parser.stream_to([&heard, size](std::string_view piece) {
            heard += piece.size();
            if (heard > size) std::abort();
            return true;
        });
    }
    std::string buffer;
    for (std::size_t at = 0; at < all.size(); at += step) {
        buffer.append(all.substr(at, step));
        std::string_view bytes = buffer;
        const auto state = parser.feed(bytes);
        buffer.erase(0, buffer.size() - bytes.size());
        if (!state) return 0;
        if (*state != ResponseParser::State::kComplete) continue;
        (void)parser.keep_alive();
        if (parser.take().body.size() > size) std::abort();
        return 0;
    }
    if (parser.end()) (void)parser.take();
    return 0;
}
