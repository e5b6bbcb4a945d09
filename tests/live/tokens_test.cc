// SPDX-License-Identifier: Apache-2.0
// Requests that go to other processes by tokens (clew/cause.h), through what Clew does not follow:
// what is joined is compared with what each message says for the test.
#include <csignal>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

// Work by whether the request that it is joined with is its own.
std::string by_own_request(const std::string& module) {
  return "from w in entry(\"" + module + "!work\") left join r in First(entry(\"" + module +
         "!receive\")) on r -> w groupby r == null as alone, w.arg0 == 0 as outside, r.arg0 == "
         "w.arg0 as same select new { name = alone ? (outside ? \"outside\" : \"unknown\") : same "
         "? \"right\" : \"wrong\", calls = count() }";
}
const std::string kByOwnRequest = by_own_request("tokens");

Victim victim_with(const std::string& variable) {
  return Victim({.arguments = {victim_path("tokens")}, .environment = {variable}},
                Victim::Place::Started);
}

Victim victim_in(const TemporaryFolder& folder) {
  return victim_with("TOKENS=" + folder.path());
}

// Two processes, of the first of which children are followed.
Tracer trace(const Victim& one, const Victim& other, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = {"-p", std::to_string(other.pid()), "--follow"};
  all.insert(all.end(), more.begin(), more.end());
  return Tracer::attach(one.pid(), kByOwnRequest, all);
}

TEST(Tokens, TakeRequestsToAnotherProcess) {
  constexpr uint64_t kEach = 100;
  constexpr uint64_t kAll = 8 * kEach;  // Four threads, four children.
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo(folder.file("fifo").c_str(), 0600), 0);
  Victim sender = victim_in(folder);
  Victim receiver = victim_in(folder);
  Tracer tracer = trace(sender, receiver);
  receiver.tell("listen " + std::to_string(kAll));
  EXPECT_EQ(sender.ask("send " + std::to_string(kEach)).at("sent"), kAll);
  EXPECT_EQ(receiver.answer().at("received"), kAll);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", kAll}})) << report.summary << report.error;
  EXPECT_FALSE(report.summary.at("missed").contains("unknown_token")) << report.summary;
  expect_text_equals_file(sender.pid());
  expect_text_equals_file(receiver.pid());
}

// Each is counted for what it is, and none is taken for the request that it came beside.
TEST(Tokens, ThatAreNoneAreCountedAndHarmless) {
  const TemporaryFolder folder;
  Victim victim = victim_in(folder);
  Tracer tracer = Tracer::attach(victim.pid(), kByOwnRequest);
  const Numbers told = victim.ask("hostile 20");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(),
            (Numbers{{"right", 20}, {"outside", told.at("bad") + told.at("unknown") + 60}}))
      << report.summary;
  EXPECT_EQ(report.summary.at("missed").at("bad_token"), told.at("bad"));
  EXPECT_EQ(report.summary.at("missed").at("unknown_token"), told.at("unknown"));
  EXPECT_FALSE(report.summary.at("by_cause").contains("received_again"));
}

// Who was given a token can say that it works for that request, so often and no further.
TEST(Tokens, ThatAreReplayedAreOfTheirRequestAndCounted) {
  const TemporaryFolder folder;
  Victim victim = victim_in(folder);
  Tracer tracer = Tracer::attach(victim.pid(), kByOwnRequest);
  victim.ask("replay 3000");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", 1000}, {"unknown", 2000}})) << report.summary;
  EXPECT_EQ(report.summary.at("missed").at("worn_token"), 2000);
  EXPECT_EQ(report.summary.at("by_cause").at("received_again"), 999);
}

TEST(Tokens, ReachProgramsThatAreExecuted) {
  const TemporaryFolder folder;
  Victim victim = victim_in(folder);
  Tracer tracer = Tracer::attach(victim.pid(), kByOwnRequest, {"--follow"});
  EXPECT_EQ(victim.ask("execute 5").at("executed"), 5);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", 5}})) << report.summary << report.error;
  EXPECT_GE(report.summary.at("by_cause").at("explicit"), 5) << report.summary;
}

// --- texts of the program's own ------------------------------------------------------------------

// `id` is the text of an order, or none.
std::string orders(const std::string& id) {
  const auto tracepoint = [&id](const std::string& name, const std::string& cause) {
    return "[[tracepoint]]\nname = \"tokens." + name + "\"\nfunction = \"tokens!" + name +
           "\"\nexports = { id = '" + id + "' }\ncause = \"" + cause + " id\"\n";
  };
  return tracepoint("send_order", "send") + tracepoint("receive_order", "receive");
}

TEST(Tokens, CanBeTextsThatAVocabularyKnows) {
  constexpr uint64_t kRequests = 50;
  const TemporaryFolder folder;
  std::ofstream(folder.file("orders.toml")) << orders("arg0 == 0 ? \"\" : str(arg0, 40)");
  Victim victim = victim_in(folder);
  Tracer tracer =
      Tracer::attach(victim.pid(), kByOwnRequest, {"--vocabulary", folder.file("orders.toml")});
  victim.ask("texts " + std::to_string(kRequests));
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", kRequests}, {"outside", 4 * kRequests + 1}}))
      << report.summary;
  const nlohmann::json& missed = report.summary.at("missed");
  EXPECT_EQ(missed.at("bad_token"), 2 * kRequests) << missed;
  EXPECT_EQ(missed.at("unknown_token"), 2 * kRequests) << missed;
  EXPECT_EQ(missed.at("sent_twice"), 1) << missed;
  EXPECT_EQ(report.summary.at("by_cause").at("recipe"), kRequests);
}

TEST(Tokens, ThatAreTextsAreRefusedInPlace) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("orders.toml")) << orders("str(arg0, 40)");
  Victim victim = victim_in(folder);
  const Report report = run_clew(
      {"run", "-p", std::to_string(victim.pid()), "--plan", "in-place", "--vocabulary",
       folder.file("orders.toml"),
       "from w in entry(\"tokens!work\") join r in First(entry(\"tokens!receive\")) on r -> w "
       "select count()"});
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, testing::HasSubstr("read from memory")) << report.error;
}

// What comes from other processes is unknown there, and so is what comes by the same way.
TEST(Tokens, AreUnknownInPlace) {
  const TemporaryFolder folder;
  Victim victim = victim_in(folder);
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from w in entry(\"tokens!work\") join r in First(entry(\"tokens!receive\")) on r -> w "
      "select new { name = \"joined\", calls = count() }",
      {"--plan", "in-place"});
  const Numbers told = victim.ask("hostile 20");
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls()["joined"], 0U) << report.summary;
  EXPECT_EQ(report.summary.at("missed").at("no_request"),
            told.at("bad") + told.at("unknown") + 60 + 20);
  expect_text_equals_file(victim.pid());
}

// --- servers that know nothing of it -------------------------------------------------------------

// nginx, which passes headers on to the victim behind it.
class Proxy {
 public:
  explicit Proxy(const TemporaryFolder& folder) : folder_(folder), server_(options()) {
    wait_for_socket(server_, folder.file("front"));
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  // The master takes its worker along only when it may end by itself.
  ~Proxy() {
    server_.signal(SIGTERM);
    server_.wait_for_end();
  }

 private:
  [[nodiscard]] ChildOptions options() const {
    const auto file = [this](const std::string& name) { return folder_.file(name); };
    std::ofstream(file("nginx.conf"))
        << (getuid() == 0 ? "user root;\n" : "") << "daemon off;\nworker_processes 1;\npid "
        << file("pid") << ";\nerror_log stderr crit;\n"
        << "events { worker_connections 64; }\nhttp { access_log off;\n"
        << "client_body_temp_path " << file("b") << "; proxy_temp_path " << file("p")
        << "; fastcgi_temp_path " << file("f") << "; uwsgi_temp_path " << file("u")
        << "; scgi_temp_path " << file("s") << ";\nserver { listen unix:" << file("front")
        << "; location / { proxy_pass http://unix:" << file("backend") << "; } } }\n";
    return {.arguments = {"/usr/sbin/nginx", "-c", file("nginx.conf"), "-p", folder_.path()}};
  }

  const TemporaryFolder& folder_;
  Child server_;
};

// nginx is not traced, and the victims' programs are not known to pass anything on.
TEST(Tokens, GoThroughNginxInABaggage) {
  ASSERT_TRUE(present("/usr/sbin/nginx"));
  constexpr uint64_t kEach = 50;
  constexpr uint64_t kAll = 4 * kEach;
  const TemporaryFolder folder;
  const Proxy nginx(folder);
  Victim client = victim_in(folder);
  Victim server = victim_in(folder);
  Tracer tracer = trace(client, server);
  server.tell("serve " + std::to_string(kAll));
  ASSERT_EQ(server.child().read_line(), "listens 1");
  EXPECT_EQ(client.ask("ask " + std::to_string(kEach)).at("answers"), kAll);
  EXPECT_EQ(server.answer().at("kept"), kAll);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", kAll}})) << report.summary << report.error;
  EXPECT_EQ(report.summary.at("by_cause").at("explicit"), kAll);
}

// The port that a server of NATS on the loopback device says that it listens on.
std::string port_of(Child& nats) {
  constexpr std::string_view kListens = "Listening for client connections on 127.0.0.1:";
  std::string port;
  while (const auto line = nats.read_error_line()) {
    const size_t at = line->find(kListens);
    if (at != std::string::npos) port = line->substr(at + kListens.size());
    if (line->find("Server is ready") != std::string::npos) break;
  }
  return port;
}

// Both subscribers go on with each message.
TEST(Tokens, GoThroughNatsToSeveralSubscribers) {
  ASSERT_TRUE(present("/usr/sbin/nats-server"));
  constexpr uint64_t kAll = 200;
  const std::string count = " " + std::to_string(kAll);
  Child nats({.arguments = {"/usr/sbin/nats-server", "-a", "127.0.0.1", "-p", "-1"}});
  const std::string port = "TOKENS_NATS=" + port_of(nats);
  Victim publisher = victim_with(port);
  Victim one = victim_with(port);
  Victim other = victim_with(port);
  Tracer tracer = trace(publisher, one, {"-p", std::to_string(other.pid())});
  for (Victim* const subscriber : {&one, &other}) {
    subscriber->tell("subscribe" + count);
    ASSERT_EQ(subscriber->child().read_line(), "listens 1");
  }
  EXPECT_EQ(publisher.ask("publish" + count).at("published"), kAll);
  EXPECT_EQ(one.answer().at("received"), kAll);
  EXPECT_EQ(other.answer().at("received"), kAll);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", 2 * kAll}})) << report.summary << report.error;
  EXPECT_EQ(report.summary.at("by_cause").at("received_again"), kAll);
}

// Between Python's threads, by the library that others use.
TEST(Tokens, GoWithTheMetadataOfGrpc) {
  constexpr uint64_t kEach = 50;
  constexpr uint64_t kAll = 4 * kEach;
  const TemporaryFolder folder;
  const auto start = [&folder] {
    return Victim(
        {.arguments = {"/usr/bin/python3", CLEW_EXAMPLES "/../tests/victims/tokens_grpc.py",
                       CLEW_VICTIMS "/libtokens_library.so", folder.file("orders")}},
        Victim::Place::Started);
  };
  Victim client = start();
  Victim server = start();
  Tracer tracer = Tracer::attach(client.pid(), by_own_request("libtokens_library.so"),
                                 {"-p", std::to_string(server.pid())});
  server.tell("serve " + std::to_string(kAll));
  ASSERT_EQ(server.child().read_line(), "listens 1");
  EXPECT_EQ(client.ask("ask " + std::to_string(kEach)).at("answers"), kAll);
  EXPECT_EQ(server.answer().at("served"), kAll);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.calls(), (Numbers{{"right", kAll}})) << report.summary << report.error;
}

}  // namespace
}  // namespace clew::live
