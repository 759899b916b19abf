#pragma once

#include "common/tls/openssl.h"

namespace memtide::tls {

// As BIO_new_socket(), but a peer that has closed is an error of the write and no SIGPIPE. Does not own `fd`.
BioPtr make_socket_bio(int fd);

}  // namespace memtide::tls
