#include "common/http/target.h"

#include "common/http/client.h"

namespace memtide::http {
namespace {

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

bool parse_query(std::string_view text, Request& request) {
    while (!text.empty()) {
        const auto end = text.find('&');
        const std::string_view pair = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
        if (pair.empty()) continue;
        const auto equals = pair.find('=');
        auto name = percent_decode(pair.substr(0, equals), true);
        auto value = percent_decode(
            equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1), true);
        if (!name || !value) return false;
        const auto [place, fresh] = request.query.insert_or_assign(*std::move(name), *std::move(value));
        if (!fresh) request.repeated_parameter = place->first;
    }
    return true;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '+' && plus_is_space) c = ' ';
        if (c == '%') {
            if (text.size() - i < 3) return std::nullopt;
            const int high = hex_digit(text[i + 1]);
            const int low = hex_digit(text[i + 2]);
            if (high < 0 || low < 0) return std::nullopt;
            c = static_cast<char>(high * 16 + low);
            i += 2;
        }
        if (c == '\0') return std::nullopt;
        result.push_back(c);
    }
    return result;
}

std::string percent_encode(std::string_view text) {
    static constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string result;
    result.reserve(text.size());
    for (const char c : text) {
        const bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                c == '-' || c == '.' || c == '_' || c == '~';
        if (unreserved) {
            result.push_back(c);
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        result.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
    return result;
}

bool parse_target(std::string_view target, Request& request) {
    if (target == "*") {
        request.path = "*";
        return request.method == "OPTIONS";
    }
    for (const std::string_view scheme : {"http://", "https://"}) {
        if (!target.starts_with(scheme)) continue;
        const auto slash = target.find('/', scheme.size());
        target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
        break;
    }
    if (!target.starts_with('/')) return false;
    target = target.substr(0, target.find('#'));
    const auto question = target.find('?');
    auto path = percent_decode(target.substr(0, question), false);
    if (!path) return false;
    request.path = *std::move(path);
    return question == std::string_view::npos || parse_query(target.substr(question + 1), request);
}

}  // namespace memtide::http
