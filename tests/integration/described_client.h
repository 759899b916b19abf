#pragma once

#include <map>
#include <set>
#include <string>

#include <boost/json/value.hpp>

#include "tests/integration/rest_client.h"

namespace memtide::test {

// A client that holds every answer to the OpenAPI document which the manager itself serves: the status, the
// type, the headers and every member of the body must be described. What differs fails the running test.
class DescribedClient {
  public:
    explicit DescribedClient(const std::string& url);

    // `operation` as in "GET /v1/hosts/{host}"; `target` what is asked for.
    RestAnswer call(const std::string& operation, const std::string& target, std::string body = {},
                    http::Headers headers = {});

    [[nodiscard]] const boost::json::value& document() const { return document_; }
    // Every described operation, as "GET /v1/pool".
    [[nodiscard]] std::set<std::string> operations() const;
    [[nodiscard]] const boost::json::value& description(const std::string& operation) const;
    // Which statuses have been seen of each operation.
    [[nodiscard]] const std::map<std::string, std::set<unsigned>>& seen() const { return seen_; }

  private:
    [[nodiscard]] const boost::json::value& resolve(const boost::json::value& value) const;
    void check_body(const std::string& what, const boost::json::value& response,
                    const RestAnswer& answer) const;
    static void check_headers(const std::string& what, const boost::json::value& response,
                              const RestAnswer& answer);

    RestClient rest_;
    boost::json::value document_;
    std::map<std::string, std::set<unsigned>> seen_;
};

}  // namespace memtide::test
