#include "common/tls/openssl.h"

#include <openssl/err.h>

namespace memtide::tls {

std::string take_error() {
    // The first error is the cause; those behind it are about what could not be done for it.
    const unsigned long code = ERR_get_error();
    ERR_clear_error();
    if (code == 0) return "no reason given";
    const char* const reason = ERR_reason_error_string(code);
    return reason != nullptr ? reason : "error " + std::to_string(code);
}

}  // namespace memtide::tls
