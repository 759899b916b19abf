#include "cxl-emul/hosts/client_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace memtide::emul {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kMostInUse = 256;

}  // namespace

ClientPool::Lease::~Lease() {
    if (pool_ == nullptr) return;
    --pool_->in_use_;
    if (client_) pool_->idle_.push_back({std::move(identity_), std::move(client_)});
    if (pool_->idle_.size() > pool_->most_idle_) pool_->idle_.erase(pool_->idle_.begin());
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

asio::awaitable<ClientPool::Lease> ClientPool::take(Identity identity) {
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
    std::unique_ptr<http::Client> client = take_idle(identity);
    if (!client) client = make(identity);
    co_return Lease(*this, std::move(identity), std::move(client));
}

std::unique_ptr<http::Client> ClientPool::take_idle(const Identity& identity) {
    const auto found =
        std::find_if(idle_.rbegin(), idle_.rend(), [&](const Idle& one) { return one.identity == identity; });
    if (found == idle_.rend()) return nullptr;
    std::unique_ptr<http::Client> client = std::move(found->client);
    idle_.erase(std::next(found).base());
    return client;
}

std::unique_ptr<http::Client> ClientPool::make(Identity identity) const {
    return std::make_unique<http::Client>(executor_, manager_, std::move(identity));
}

}  // namespace memtide::emul
