// What a stranger may show: an Authorization header, a Host header, a token file that went bad. The first
// byte chooses which. Nobody gets in, and nothing that is read changes when it is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fabric-manager/security/host_header.h"
#include "fabric-manager/security/token.h"
#include "fabric-manager/security/token_file.h"

namespace {

using namespace memtide::fm;

void require(bool condition) {
    if (!condition) std::abort();
}

void try_header(std::string_view text) {
    const auto token = bearer_token(text);
    if (!token) return;
    require(!token->empty() && token->find(' ') == std::string_view::npos);
    const auto id = token_id(*token);
    if (!id) return;
    require(id->size() == 10);
    static const NewToken real = make_token();
    require(!same_secret(hash_token(*token), real.hash));
}

void try_host(std::string_view text) {
    if (!names_this_machine(text, {})) return;
    // Whatever it is, it is no name that a web page could have.
    require(text.find(".com") == std::string_view::npos);
}

void try_file(std::string_view text) {
    const auto tokens = parse_tokens(text);
    if (!tokens) return require(!tokens.error().message.empty());
    const auto again = parse_tokens(format_tokens(*tokens));
    require(again && *again == *tokens);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] % 3 == 0) try_header(text);
    if (data[0] % 3 == 1) try_host(text);
    if (data[0] % 3 == 2) try_file(text);
    return 0;
}
