#include "cxl-emul/hosts/client_pool.h"

#include <utility>

namespace memtide::emul {
namespace {

constexpr std::size_t kMostIdle = 64;

}  // namespace

ClientPool::Lease::~Lease() {
    if (client_ && pool_->idle_.size() < kMostIdle) pool_->idle_.push_back(std::move(client_));
}

ClientPool::Lease ClientPool::take() {
    if (idle_.empty()) return {*this, make()};
    auto client = std::move(idle_.back());
    idle_.pop_back();
    return {*this, std::move(client)};
}

std::unique_ptr<http::Client> ClientPool::make() const {
    return std::make_unique<http::Client>(executor_, manager_);
}

}  // namespace memtide::emul
