#pragma once

#include <boost/asio/awaitable.hpp>

#include "common/http/message.h"

namespace memtide::fm {

struct Context;
using Answer = boost::asio::awaitable<http::Response>;

// One function for each route; what they answer is described in openapi.json.

// compositions.cpp
Answer create_composition(Context& context, http::Request request);
Answer list_compositions(Context& context, http::Request request);
Answer get_composition(Context& context, http::Request request);
Answer change_composition(Context& context, http::Request request);
Answer release_composition(Context& context, http::Request request);
Answer get_history(Context& context, http::Request request);

// inventory.cpp
Answer get_pool(Context& context, http::Request request);
Answer list_hosts(Context& context, http::Request request);
Answer get_host(Context& context, http::Request request);
Answer list_switches(Context& context, http::Request request);
Answer get_switch(Context& context, http::Request request);
Answer list_devices(Context& context, http::Request request);
Answer get_device(Context& context, http::Request request);
Answer lift_quarantine(Context& context, http::Request request);
Answer get_topology(Context& context, http::Request request);

// tenants.cpp
Answer list_tenants(Context& context, http::Request request);
Answer get_tenant(Context& context, http::Request request);

// agent.cpp
Answer get_desired(Context& context, http::Request request);
Answer put_observed(Context& context, http::Request request);

// events.cpp
Answer stream_events(Context& context, http::Request request);

// service.cpp
Answer get_openapi(Context& context, http::Request request);
Answer get_metrics(Context& context, http::Request request);
Answer get_health(Context& context, http::Request request);
Answer get_readiness(Context& context, http::Request request);

}  // namespace memtide::fm
