#include "common/tls/socket_bio.h"

#include <cerrno>
#include <cstdint>

#include <sys/socket.h>

namespace memtide::tls {
namespace {

int descriptor_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

bool may_retry() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int write_some(BIO* bio, const char* data, int size) {
    BIO_clear_retry_flags(bio);
    const ssize_t put = ::send(descriptor_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
    if (put < 0 && may_retry()) BIO_set_retry_write(bio);
    return static_cast<int>(put);
}

int read_some(BIO* bio, char* data, int size) {
    BIO_clear_retry_flags(bio);
    const ssize_t got = ::recv(descriptor_of(bio), data, static_cast<std::size_t>(size), 0);
    if (got < 0 && may_retry()) BIO_set_retry_read(bio);
    if (got == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return static_cast<int>(got);
}

long control(BIO* bio, int command, long, void*) {
    if (command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP) return 1;
    if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    return 0;
}

int create(BIO* bio) {
    BIO_set_init(bio, 1);
    return 1;
}

BIO_METHOD* make_method() {
    BIO_METHOD* const method =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR, "socket");
    BIO_meth_set_write(method, write_some);
    BIO_meth_set_read(method, read_some);
    BIO_meth_set_ctrl(method, control);
    BIO_meth_set_create(method, create);
    return method;
}

}  // namespace

BioPtr make_socket_bio(int fd) {
    static const BIO_METHOD* const method = make_method();
    BioPtr bio(BIO_new(method));
    if (bio) BIO_set_data(bio.get(), reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
    return bio;
}

}  // namespace memtide::tls
