// Events out of the store, and what they tell about one composition.
#include <boost/asio/post.hpp>

#include "fabric-manager/engine/core.h"

namespace memtide::fm {

namespace {

// The event that its life began with: an adopted one has no Pending, and may come Onlining more than once.
bool is_birth(const Event& event, const Composition& c) {
    if (event.type != "composition.state") return false;
    if (!c.adopted) return event.state == to_string(CompositionState::kPending);
    return event.time - c.created < std::chrono::minutes(1);
}

}  // namespace

Async<Result<std::vector<Event>>> Core::read_events(EventQuery query) {
    if (!store_) co_return fail(ErrorCode::kCancelled, "the manager is stopping");
    using Answer = Result<std::vector<Event>>;
    auto start = [this](auto handler, EventQuery what) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        auto work = boost::asio::prefer(executor_, boost::asio::execution::outstanding_work.tracked);
        store_->read_events(std::move(what), [shared, work](Answer answer) {
            boost::asio::post(
                work, [shared, answer = std::move(answer)]() mutable { (*shared)(std::move(answer)); });
        });
    };
    auto token = boost::asio::use_awaitable;
    co_return co_await boost::asio::async_initiate<decltype(boost::asio::use_awaitable), void(Answer)>(
        start, token, std::move(query));
}

Async<Outcome<History>> Core::history(CompositionId id, std::uint64_t after, std::size_t limit) {
    const std::shared_ptr<Core> self = shared_from_this();
    const EntryPtr entry = find(id);
    if (!entry)
        co_return refuse(problem::kUnknownComposition, "no composition " + id.value, ErrorCode::kNotFound);
    EventQuery first{.after = 0, .limit = 1, .composition = id};
    Result<std::vector<Event>> oldest = co_await read_events(std::move(first));
    // One more than asked for, to know whether there are more.
    EventQuery page{.after = after, .limit = limit + 1, .composition = id};
    Result<std::vector<Event>> events = co_await read_events(std::move(page));
    if (!oldest || !events) {
        const Error& error = oldest ? events.error() : oldest.error();
        co_return refuse(problem::kInternalError, error.message, error.code);
    }
    History history{entry->c, *std::move(events), false, false};
    history.more = history.events.size() > limit;
    if (history.more) history.events.pop_back();
    history.complete = !oldest->empty() && is_birth(oldest->front(), history.composition);
    co_return history;
}

}  // namespace memtide::fm
