// Names in a certificate that a client shows: plain text or none at all.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "common/tls/peer_certificate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto seen = memtide::tls::describe_der({reinterpret_cast<const char*>(data), size});
    if (!seen) return 0;
    for (const auto& name : seen->host_names())
        for (const char c : name)
            if (c <= ' ' || c >= '\x7f') std::abort();
    return 0;
}
