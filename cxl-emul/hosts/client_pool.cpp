#include "cxl-emul/hosts/client_pool.h"

#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace memtide::emul {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kMostInUse = 256;
constexpr std::size_t kMostIdle = 64;

}  // namespace

ClientPool::Lease::~Lease() {
    if (pool_ == nullptr) return;
    --pool_->in_use_;
    if (client_ && pool_->idle_.size() < kMostIdle) pool_->idle_.push_back(std::move(client_));
    pool_->wake_next();
}

// Gives itself up when its coroutine ends early. The next one is woken for what is left, whether this one was
// served or not: two leases that end at once wake one place.
class ClientPool::Place {
  public:
    explicit Place(ClientPool& pool)
        : pool_(pool),
          timer_(pool.queue_.emplace(pool.queue_.end(), pool.executor_,
                                     asio::steady_timer::time_point::max())) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
        pool_.queue_.erase(timer_);
        pool_.wake_next();
    }
    asio::steady_timer& timer() { return *timer_; }

  private:
    ClientPool& pool_;
    std::list<asio::steady_timer>::iterator timer_;
};

void ClientPool::wake_next() {
    if (!queue_.empty() && in_use_ < kMostInUse) queue_.front().cancel();
}

asio::awaitable<ClientPool::Lease> ClientPool::take() {
    if (in_use_ >= kMostInUse) {
        Place place(*this);
        while (in_use_ >= kMostInUse) {
            boost::system::error_code woken;
            co_await place.timer().async_wait(asio::redirect_error(asio::use_awaitable, woken));
        }
        ++in_use_;
    } else {
        ++in_use_;
    }
    std::unique_ptr<http::Client> client;
    if (idle_.empty()) {
        client = make();
    } else {
        client = std::move(idle_.back());
        idle_.pop_back();
    }
    co_return Lease(*this, std::move(client));
}

std::unique_ptr<http::Client> ClientPool::make() const {
    return std::make_unique<http::Client>(executor_, manager_);
}

}  // namespace memtide::emul
