// The server and the client over TLS: the same answers as in the clear, and clear words when it does not
// work.
#include <gmock/gmock.h>

#include "tests/common/http/serving.h"
#include "tests/common/tls/certificates.h"

namespace memtide::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Response who(const Request& request) {
    Response response;
    response.body = request.certificate ? request.certificate->common_name : "nobody";
    return response;
}

class Tls : public testing::Test {
  protected:
    void SetUp() override {
        files_.issue_server();
        files_.issue_client("host0");
    }
    // A server on its own thread that answers /echo and /who.
    void serve(bool ask_for_certificates = false, bool required = false, ServerLimits limits = {}) {
        tls::ServerFiles files{.certificate = files_.path("server.pem"),
                               .key = files_.path("server.key"),
                               .client_ca = {},
                               .revoked = {}};
        if (ask_for_certificates) files.client_ca = files_.path("ca.pem");
        files.revoked = revoked_;
        files.client_certificate_required = required;
        auto context = tls::ServerContext::load(files);
        ASSERT_TRUE(context) << context.error().message;
        context_ = *context;
        Router router = echo_router();
        router.add("GET", "/who",
                   [](Request request) -> boost::asio::awaitable<Response> { co_return who(request); });
        router.add("GET", "/large", [](Request) -> boost::asio::awaitable<Response> {
            Response response;
            response.body = std::string(8 << 20, 'x');
            co_return response;
        });
        serving_.emplace(std::move(router), limits,
                         ServerSecurity{context_, [this](const std::string&, const std::string& why) {
                                            const std::lock_guard lock(mutex_);
                                            refused_ += why + "\n";
                                        }});
    }
    std::string url(const std::string& host = "127.0.0.1") {
        return "https://" + host + ":" + std::to_string(serving_->port());
    }
    CredentialFiles files_for(const std::string& client = {}) {
        CredentialFiles files;
        files.tls.ca = files_.path("ca.pem");
        if (client.empty()) return files;
        files.tls.certificate = files_.path(client + ".pem");
        files.tls.key = files_.path(client + ".key");
        return files;
    }
    Result<ClientResponse> ask(const std::string& target, CredentialFiles files, std::string at = {}) {
        auto credentials = Credentials::load(std::move(files));
        if (!credentials) return std::unexpected(credentials.error());
        boost::asio::io_context context;
        Client client(context.get_executor(), at.empty() ? url() : at, *credentials);
        ClientRequest request;
        request.target = target;
        auto future =
            boost::asio::co_spawn(context, client.send(std::move(request)), boost::asio::use_future);
        context.run();
        return future.get();
    }
    std::string mistake(CredentialFiles files, const std::string& at = {}) {
        const auto answer = ask("/echo", std::move(files), at);
        return answer ? "status " + std::to_string(answer->status) : answer.error().message;
    }
    // The client may know before the server says so.
    bool was_refused_for(const std::string& why) {
        return eventually([&] {
            const std::lock_guard lock(mutex_);
            return refused_.find(why) != std::string::npos;
        });
    }

    tls::Certificates files_;
    std::string revoked_;
    std::shared_ptr<tls::ServerContext> context_;
    std::mutex mutex_;
    std::string refused_;
    std::optional<Serving> serving_;
};

TEST_F(Tls, ARequestIsAnsweredAsInTheClear) {
    serve();
    const auto answer = ask("/echo", files_for());
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 200U);
    EXPECT_EQ(answer->body, "GET /echo ");
    EXPECT_EQ(ask("/echo", files_for(), url("localhost"))->status, 200U);
}

TEST_F(Tls, ALargeAnswerArrivesWhole) {
    serve();
    const auto answer = ask("/large", files_for());
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, std::string(8 << 20, 'x'));
}

TEST_F(Tls, AConnectionIsKeptForTheNextRequest) {
    serve();
    auto credentials = *Credentials::load(files_for());
    boost::asio::io_context context;
    Client client(context.get_executor(), url(), credentials);
    for (int i = 0; i < 3; ++i) {
        ClientRequest request;
        request.method = "POST";
        request.target = "/echo";
        request.body = std::string(100'000, 'b');
        context.restart();
        auto future =
            boost::asio::co_spawn(context, client.send(std::move(request)), boost::asio::use_future);
        context.run();
        const auto answer = future.get();
        ASSERT_TRUE(answer) << answer.error().message;
        EXPECT_EQ(answer->body.size(), 100'011U);
        EXPECT_EQ(serving_->connection_count(), 1U);
    }
}

TEST_F(Tls, TheServerLearnsWhoTheClientIs) {
    serve(true);
    EXPECT_EQ(ask("/who", files_for("host0"))->body, "host0");
    EXPECT_EQ(ask("/who", files_for())->body, "nobody");
}

TEST_F(Tls, AClientWithoutACertificateIsToldThatOneIsRequired) {
    serve(true, true);
    EXPECT_EQ(ask("/who", files_for("host0"))->body, "host0");
    EXPECT_THAT(mistake(files_for()),
                HasSubstr("wants a client certificate; give one with --cert and --key"));
    EXPECT_TRUE(was_refused_for("peer did not return a certificate"));
}

TEST_F(Tls, AForgedCertificateIsRefused) {
    serve(true);
    const auto other =
        *tls::Authority::create("test CA", std::chrono::hours(1));  // the same name, another key
    files_.issue("forged",
                 {.common_name = "host0",
                  .dns_names = {"host0"},
                  .addresses = {},
                  .use = tls::CertificateRequest::Use::kClient},
                 &other);
    EXPECT_THAT(mistake(files_for("forged")), HasSubstr("did not accept the client certificate"));
    EXPECT_TRUE(was_refused_for("certificate verify failed"));
}

TEST_F(Tls, AServersCertificateIsNoClientCertificate) {
    serve(true);
    EXPECT_THAT(mistake(files_for("server")), HasSubstr("did not accept the client certificate"));
}

TEST_F(Tls, ARevokedCertificateIsRefused) {
    std::ifstream file(files_.path("host0.pem"));
    const std::string pem(std::istreambuf_iterator<char>(file), {});
    revoked_ = files_.write("crl.pem", *files_.ca().revoke({pem}, std::chrono::hours(1)));
    files_.issue_client("host1");
    serve(true);
    EXPECT_THAT(mistake(files_for("host0")), HasSubstr("did not accept the client certificate"));
    EXPECT_TRUE(was_refused_for("certificate revoked"));
    EXPECT_EQ(ask("/who", files_for("host1"))->body, "host1");
}

TEST_F(Tls, AWrongCaIsSaid) {
    serve();
    auto files = files_for();
    files.tls.ca =
        files_.write("other.pem", tls::Authority::create("other", std::chrono::hours(1))->pem()->certificate);
    EXPECT_THAT(mistake(files), AllOf(HasSubstr("was not issued by a CA in"), HasSubstr("other.pem")));
    EXPECT_THAT(mistake({}), HasSubstr("the system's CAs"));
}

TEST_F(Tls, AnExpiredServerCertificateIsSaid) {
    // It was good when the server began.
    files_.issue("server", {.common_name = "x",
                            .dns_names = {},
                            .addresses = {"127.0.0.1"},
                            .begins = std::chrono::hours(-1),
                            .ends = std::chrono::seconds(2)});
    serve();
    EXPECT_TRUE(eventually([&] { return mistake(files_for()).find("has expired") != std::string::npos; }));
}

TEST_F(Tls, ACertificateForAnotherNameIsSaid) {
    files_.issue("server", {.common_name = "x", .dns_names = {"elsewhere"}, .addresses = {"10.1.2.3"}});
    serve();
    EXPECT_THAT(mistake(files_for()), HasSubstr("the server's certificate is not for 127.0.0.1"));
    EXPECT_THAT(mistake(files_for(), url("localhost")), HasSubstr("is not for localhost"));
}

TEST_F(Tls, HttpWhereTlsIsSpokenIsTold) {
    serve();
    const auto answer = get("http://127.0.0.1:" + std::to_string(serving_->port()), "/echo");
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 400U);
    EXPECT_THAT(answer->body, HasSubstr("use https://"));
}

TEST_F(Tls, TlsWhereHttpIsSpokenIsTold) {
    Serving plain(echo_router());
    EXPECT_THAT(mistake(files_for(), "https://127.0.0.1:" + std::to_string(plain.port())),
                HasSubstr("does not speak TLS"));
}

TEST_F(Tls, NewCertificatesAreUsedAndNoConnectionIsDropped) {
    serve();
    auto credentials = *Credentials::load(files_for());
    boost::asio::io_context context;
    Client client(context.get_executor(), url(), credentials);
    const auto once = [&] {
        ClientRequest request;
        request.target = "/echo";
        context.restart();
        auto future =
            boost::asio::co_spawn(context, client.send(std::move(request)), boost::asio::use_future);
        context.run();
        return future.get();
    };
    ASSERT_TRUE(once());
    files_.issue("server", {.common_name = "x", .dns_names = {"elsewhere"}, .addresses = {}});
    EXPECT_TRUE(serving_->on_server([&] { return *context_->reload_if_changed(); }));
    EXPECT_TRUE(once());  // on the connection that there is
    EXPECT_EQ(serving_->connection_count(), 1U);
    EXPECT_THAT(mistake(files_for()), HasSubstr("is not for 127.0.0.1"));
}

TEST_F(Tls, AClientWhoseTrustWasReadAgainShowsItsCertificateOnceMore) {
    serve(true);
    auto credentials = *Credentials::load(files_for("host0"));
    boost::asio::io_context context;
    Client client(context.get_executor(), url(), credentials);
    const auto once = [&] {
        ClientRequest request;
        request.target = "/who";
        context.restart();
        auto future =
            boost::asio::co_spawn(context, client.send(std::move(request)), boost::asio::use_future);
        context.run();
        return future.get();
    };
    ASSERT_TRUE(once());
    serving_->on_server([&] { return context_->reload().has_value(); });
    const auto last = once();
    ASSERT_TRUE(last);
    EXPECT_EQ(last->headers.at("Connection"), "close");
    EXPECT_EQ(once()->body, "host0");
}

TEST_F(Tls, AClientThatNeverFinishesItsHandshakeIsDropped) {
    serve(false, false, {.request_timeout = 100ms});
    Raw raw(serving_->port());
    raw.send("\x16\x03\x01");
    EXPECT_EQ(raw.read_to_end(), "");
}

TEST_F(Tls, NoiseIsNotAnswered) {
    serve();
    Raw raw(serving_->port());
    raw.send(std::string(1000, '\x80'));
    raw.read_to_end();
    EXPECT_EQ(ask("/echo", files_for())->status, 200U);
}

class TokenFiles : public Tls {};

TEST_F(TokenFiles, TheTokenIsSentAndANewOneIsTaken) {
    Router router;
    router.add("GET", "/token", [](Request request) -> boost::asio::awaitable<Response> {
        Response response;
        response.body = request.header("Authorization").value_or("none");
        co_return response;
    });
    Serving plain(std::move(router));
    CredentialFiles files;
    files.token_file = files_.write("token", "  abc \r\nmore\n");
    auto credentials = *Credentials::load(files);
    boost::asio::io_context context;
    Client client(context.get_executor(), plain.url(), credentials);
    const auto once = [&] {
        ClientRequest request;
        request.target = "/token";
        context.restart();
        auto future =
            boost::asio::co_spawn(context, client.send(std::move(request)), boost::asio::use_future);
        context.run();
        return future.get()->body;
    };
    EXPECT_EQ(once(), "Bearer abc");
    files_.write("token", "def\n");
    EXPECT_EQ(once(), "Bearer def");
}

TEST_F(TokenFiles, ATokenDoesNotCrossANetworkInTheClear) {
    CredentialFiles files;
    files.token_file = files_.write("token", "secret-token\n");
    const auto answer = ask("/", files, "http://192.0.2.1:8080");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kPermission);
    EXPECT_THAT(answer.error().message, HasSubstr("not sent in the clear"));
    EXPECT_THAT(answer.error().message, testing::Not(HasSubstr("secret-token")));
}

TEST_F(TokenFiles, AFileThatIsNoneIsNamed) {
    const auto mistake_of = [&](const std::string& path) { return read_token_file(path).error().message; };
    EXPECT_THAT(mistake_of(files_.path("nothing")), HasSubstr("No such file"));
    EXPECT_THAT(mistake_of(files_.write("empty", "\n")), HasSubstr("must have a token"));
    EXPECT_THAT(mistake_of(files_.write("two", "a b\n")), HasSubstr("must have a token"));
    const std::string open = files_.write("open", "abc\n");
    std::filesystem::permissions(open, std::filesystem::perms::others_read,
                                 std::filesystem::perm_options::add);
    EXPECT_THAT(mistake_of(open), HasSubstr("chmod 600"));
}

}  // namespace
}  // namespace memtide::http
