#pragma once

#include <cstddef>

namespace memtide::http {

// Beast 1.81 (basic_parser::parse_chunk_header) asserts that it sees at least five bytes when it is shown the
// beginning of the last chunk for the second time. "0\r\n" and one byte are four: a peer could end the
// process. What is left of a chunked message is never shorter than "0\r\n\r\n", so waiting for five bytes
// costs nothing. `left_over`: bytes that the last call of put() did not take.
inline bool must_wait_for_chunk(bool chunked, std::size_t left_over, std::size_t available) {
    return chunked && left_over > 0 && available < 5;
}

}  // namespace memtide::http
