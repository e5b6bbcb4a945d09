// SPDX-License-Identifier: Apache-2.0
// What only a bus over NATS has: servers that are not there, or are not to be trusted, or do not
// let an end in.
#include "cluster/bus_nats.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nats/nats.h>

#include "base/run_program.h"
#include "cluster/bus_world.h"
#include "cluster/nats_server.h"

namespace clew::cluster {
namespace {

using Connected = Expected<std::unique_ptr<Bus>>;

Error error_of(const NatsOptions& options) {
  auto connected = connect_nats(options);
  EXPECT_FALSE(connected) << "it was let in";
  Error error = connected ? Error{} : connected.error();
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find("secret"), std::string::npos) << error.message;
  return error;
}

class NatsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!NatsServer::is_installed()) GTEST_SKIP() << "nats-server is not installed";
  }
};

void run(const std::vector<std::string>& words) {
  const auto finished = run_program(words, "");
  ASSERT_TRUE(finished) << finished.error().message;
  ASSERT_TRUE(finished->succeeded) << words[1] << ": " << finished->messages;
}

// An authority, and certificates by it for the server and a client, in a folder.
class Certificates {
 public:
  explicit Certificates(std::filesystem::path folder) : folder_(std::move(folder)) {
    make_authority("ca");
    make_authority("other-ca");
    make("server", "subjectAltName=DNS:localhost");
    make("client", "subjectAltName=DNS:client");
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return (folder_ / name).string();
  }

 private:
  void make_authority(const std::string& name) const {
    run({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=" + name, "-keyout", file(name + ".key"), "-out", file(name + ".pem")});
  }
  void make(const std::string& name, const std::string& extension) const {
    run({"openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout",
         file(name + ".key"), "-out", file(name + ".csr")});
    std::ofstream(file(name + ".ext")) << extension << "\n";
    run({"openssl", "x509", "-req", "-days", "2", "-in", file(name + ".csr"), "-CA", file("ca.pem"),
         "-CAkey", file("ca.key"), "-CAcreateserial", "-extfile", file(name + ".ext"), "-out",
         file(name + ".pem")});
  }

  std::filesystem::path folder_;
};

constexpr const char* kTls = R"(
    tls { cert_file: "FOLDER/server.pem", key_file: "FOLDER/server.key" })";
constexpr const char* kMutualTls = R"(
    tls { cert_file: "FOLDER/server.pem", key_file: "FOLDER/server.key", ca_file: "FOLDER/ca.pem",
          verify: true })";
constexpr const char* kOneUser = R"(
    authorization { users: [ { user: joe, password: secret } ] })";

TEST_F(NatsTest, WithABadUrlSaysSo) {
  const Error error = error_of({.url = "nats//joe:secret@host", .name = "test"});
  EXPECT_EQ(error.code, ErrorCode::InvalidQuery);
}

TEST_F(NatsTest, WithoutAServerIsIo) {
  const NatsServer server("");  // Never started.
  const Error error = error_of({.url = "nats://joe:secret@" + server.place(), .name = "test"});
  EXPECT_EQ(error.code, ErrorCode::Io);
  EXPECT_NE(error.message.find(server.place()), std::string::npos) << error.message;
}

TEST_F(NatsTest, WithAWrongPasswordIsRefused) {
  NatsServer server(kOneUser);
  server.start();
  EXPECT_TRUE(connect_nats({.url = "nats://joe:secret@" + server.place(), .name = "test"}));
  const Error error = error_of({.url = "nats://joe:secret2@" + server.place(), .name = "test"});
  EXPECT_EQ(error.code, ErrorCode::Refused);
  EXPECT_EQ(error.message,
            fmt::format("nats://{} does not let user 'joe' in: the name or the password is wrong",
                        server.place()));
  EXPECT_EQ(error_of({.url = "nats://" + server.place(), .name = "test"}).code, ErrorCode::Refused);
}

TEST_F(NatsTest, TrustsNoOtherCertificate) {
  NatsServer server(kTls);
  const Certificates certificates(server.folder());
  server.start();
  const std::string url = "tls://" + server.place("localhost");
  const std::string ca = certificates.file("ca.pem");
  const auto trusted = connect_nats({.url = url, .name = "test", .ca_file = ca});
  ASSERT_TRUE(trusted) << trusted.error().message;
  EXPECT_TRUE((*trusted)->put("keys", "key", bytes_of("over TLS"), 0));

  const Error other =
      error_of({.url = url, .name = "test", .ca_file = certificates.file("other-ca.pem")});
  EXPECT_EQ(other.code, ErrorCode::Refused);
  EXPECT_NE(other.message.find("certificate"), std::string::npos) << other.message;
  // The system's certificates do not have it either.
  EXPECT_EQ(error_of({.url = url, .name = "test"}).code, ErrorCode::Refused);
  // The right authority, and another name.
  const std::string by_number = "tls://" + server.place("127.0.0.1");
  EXPECT_EQ(error_of({.url = by_number, .name = "test", .ca_file = ca}).code, ErrorCode::Refused);
  EXPECT_EQ(error_of({.url = "nats://" + server.place(), .name = "test"}).code, ErrorCode::Refused);
}

TEST_F(NatsTest, ShowsItsCertificate) {
  NatsServer server(kMutualTls);
  const Certificates certificates(server.folder());
  server.start();
  NatsOptions options = {.url = "tls://" + server.place("localhost"),
                         .name = "test",
                         .ca_file = certificates.file("ca.pem")};
  const Error without = error_of(options);
  EXPECT_EQ(without.code, ErrorCode::Refused);
  EXPECT_NE(without.message.find("certificate"), std::string::npos) << without.message;
  options.certificate_file = certificates.file("client.pem");
  options.key_file = certificates.file("client.key");
  const auto connected = connect_nats(options);
  EXPECT_TRUE(connected) << connected.error().message;
  options.key_file = certificates.file("server.key");
  EXPECT_EQ(error_of(options).code, ErrorCode::Refused);
}

TEST_F(NatsTest, WithoutItsFilesSaysWhich) {
  NatsOptions options = {.url = "tls://localhost:1", .name = "test", .ca_file = "/absent/ca.pem"};
  const Error error = error_of(options);
  EXPECT_EQ(error.code, ErrorCode::NotFound);
  EXPECT_NE(error.message.find("/absent/ca.pem"), std::string::npos);
  options = {.url = "nats://localhost:1", .name = "test"};
  options.credentials_file = "/absent/node.creds";
  EXPECT_EQ(error_of(options).code, ErrorCode::NotFound);
}

TEST_F(NatsTest, OfAServerWithoutTlsIsRefusedWhereItIsWanted) {
  NatsServer server("");
  server.start();
  const Error error = error_of({.url = "tls://" + server.place("localhost"), .name = "test"});
  EXPECT_EQ(error.code, ErrorCode::Refused);
  EXPECT_NE(error.message.find("has no TLS"), std::string::npos) << error.message;
}

// A server that stands still: each call ends in its time, and nothing is lost.
TEST_F(NatsTest, EndsEachCallInItsTime) {
  NatsServer server("");
  server.start();
  const auto connected = connect_nats({.url = "nats://" + server.place(),
                                       .name = "test",
                                       .timeout = std::chrono::milliseconds(200)});
  ASSERT_TRUE(connected);
  Bus& bus = **connected;
  ASSERT_TRUE(bus.make_log("parts", "part.>", 1 << 20));
  server.pause();
  const auto appended = bus.append("part.a", "id", bytes_of("late"));
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, ErrorCode::Io);
  EXPECT_EQ(appended.error().message, "no answer of the bus within 200 ms");
  EXPECT_EQ(bus.get("keys", "key").error().code, ErrorCode::Io);
  server.resume();
  // It had happened, or happens now, and once.
  ASSERT_TRUE(
      try_until(bus, [&] { return bus.append("part.a", "id", bytes_of("late")).has_value(); }));
  const auto entries = bus.read("parts", 0, 10);
  ASSERT_TRUE(entries);
  EXPECT_EQ(entries->size(), 1U);
}

// libnats gives up a connection whose server refuses it twice; an end does not.
TEST_F(NatsTest, ComesBackToAServerThatDidNotLetItInForAWhile) {
  NatsServer server(kOneUser);
  server.start();
  auto connected = connect_nats({.url = "nats://joe:secret@" + server.place(), .name = "test"});
  ASSERT_TRUE(connected);
  Bus& bus = **connected;
  ASSERT_TRUE(bus.subscribe("news.*"));
  const std::string inbox = bus.inbox();
  server.kill();
  server.configure("authorization { users: [ { user: joe, password: another } ] }");
  server.start();
  std::vector<std::string> complaints;
  const auto has_complained = [&] {
    (void)bus.next();
    for (std::string& one : bus.take_complaints())
      complaints.push_back(std::move(one));
    return complaints.size() >= 2;
  };
  ASSERT_TRUE(wait_until(bus, has_complained));
  EXPECT_FALSE(bus.is_connected());
  EXPECT_TRUE(bus.subscribe("late.*"));
  EXPECT_NE(complaints[0].find("uthorization"), std::string::npos) << complaints[0];
  server.kill();
  server.configure(kOneUser);
  server.start();
  ASSERT_TRUE(wait_until(bus, [&] {
    (void)bus.next();
    return bus.is_connected();
  }));
  ASSERT_TRUE(bus.publish("news.a", bytes_of("fresh")));
  EXPECT_EQ(text_of(next_message(bus)->bytes), "fresh");
  ASSERT_TRUE(bus.publish("late.a", bytes_of("fresh, too")));
  EXPECT_EQ(text_of(next_message(bus)->bytes), "fresh, too");
  EXPECT_EQ(bus.inbox(), inbox);
}

TEST_F(NatsTest, SaysThatAServerKeepsNoLogs) {
  NatsServer server(R"(accounts: { A: { users: [ { user: joe, password: secret } ] } })");
  server.start();
  const auto connected =
      connect_nats({.url = "nats://joe:secret@" + server.place(), .name = "test"});
  ASSERT_TRUE(connected);
  const auto made = (*connected)->make_log("parts", "part.>", 1 << 20);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("jetstream: enabled"), std::string::npos)
      << made.error().message;
}

TEST_F(NatsTest, TellsTheLimitOfItsServer) {
  NatsServer server("max_payload: 65536");
  server.start();
  const auto connected = connect_nats({.url = "nats://" + server.place(), .name = "test"});
  ASSERT_TRUE(connected);
  const auto published = (*connected)->publish("a", Bytes(65'537));
  ASSERT_FALSE(published);
  EXPECT_EQ(published.error().code, ErrorCode::Limit);
  EXPECT_TRUE((*connected)->publish("a", Bytes(65'536)));
  EXPECT_TRUE((*connected)->is_connected());
}

// docs/decisions/bus.md lists these.
TEST_F(NatsTest, NeedsNoMorePermissionsThanAreListed) {
  NatsServer server(R"(
      authorization { users: [
        { user: maker, password: secret, permissions: {
            publish: ["$JS.API.STREAM.CREATE.parts", "$JS.API.STREAM.INFO.parts",
                      "$JS.API.STREAM.UPDATE.parts", "$JS.API.STREAM.CREATE.KV_want",
                      "$KV.want.query"],
            subscribe: "_INBOX.>" } }
        { user: node, password: secret, permissions: {
            publish: ["part.*.node", "$JS.API.STREAM.MSG.GET.KV_want"],
            subscribe: "_INBOX_node.>" } }
        { user: relay, password: secret, permissions: {
            publish: ["$JS.API.DIRECT.GET.parts", "$JS.API.STREAM.PURGE.parts"],
            subscribe: "_INBOX.>" } }
      ] })");
  server.start();
  const auto connect = [&](const std::string& user, const std::string& inbox_prefix) {
    auto end = connect_nats({.url = fmt::format("nats://{}:secret@{}", user, server.place()),
                             .name = user,
                             .inbox_prefix = inbox_prefix});
    EXPECT_TRUE(end) << end.error().message;
    return std::move(*end);
  };
  const auto maker = connect("maker", "_INBOX");
  ASSERT_TRUE(maker->make_log("parts", "part.>", 1 << 20));
  ASSERT_TRUE(maker->make_log("parts", "part.>", 2 << 20));
  ASSERT_TRUE(maker->put("want", "query", bytes_of("text"), 0));
  const auto node = connect("node", "_INBOX_node");
  EXPECT_EQ(node->inbox().rfind("_INBOX_node.", 0), 0U);
  EXPECT_EQ(text_of((*node->get("want", "query"))->bytes), "text");
  EXPECT_TRUE(node->append("part.q.node", "id", bytes_of("table")));
  const auto relay = connect("relay", "_INBOX");
  const auto entries = relay->read("parts", 0, 10);
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries->size(), 1U);
  EXPECT_TRUE(relay->forget("parts", 1));

  EXPECT_EQ(node->append("part.q.other", "id", {}).error().code, ErrorCode::Refused);
  EXPECT_EQ(node->put("want", "query", {}, 1).error().code, ErrorCode::Refused);
  EXPECT_EQ(node->read("parts", 0, 10).error().code, ErrorCode::Refused);
  EXPECT_EQ(relay->append("part.q.node", "id", {}).error().code, ErrorCode::Refused);
  for (Bus* end : {maker.get(), node.get(), relay.get()})
    EXPECT_TRUE(end->take_complaints().empty());
  const auto other_inbox = connect_nats(
      {.url = "nats://node:secret@" + server.place(), .name = "node", .inbox_prefix = "_INBOX"});
  ASSERT_FALSE(other_inbox);
  EXPECT_EQ(other_inbox.error().code, ErrorCode::Refused);
}

// As who uses a bus does: again, with the same id, until it is there.
uint64_t append_at_last(Bus& bus, std::string_view subject, const std::string& text) {
  uint64_t sequence = 0;
  const auto is_kept = [&] {
    (void)bus.next();
    const auto appended = bus.append(subject, text, bytes_of(text));
    sequence = appended.value_or(0);
    return appended.has_value();
  };
  EXPECT_TRUE(try_until(bus, is_kept));
  return sequence;
}

// Whether each of the three has all that the log has. Until then the death of another one is that
// of the second.
bool are_all_current(const std::string& url) {
  natsConnection* connection = nullptr;
  jsCtx* context = nullptr;
  jsStreamInfoList* streams = nullptr;
  jsErrCode code{};
  bool are_current = natsConnection_ConnectTo(&connection, url.c_str()) == NATS_OK &&
                     natsConnection_JetStream(&context, connection, nullptr) == NATS_OK &&
                     js_Streams(&streams, context, nullptr, &code) == NATS_OK;
  for (int i = 0; are_current && i < streams->Count; ++i) {
    const jsClusterInfo* const cluster = streams->List[i]->Cluster;
    are_current = cluster != nullptr && cluster->ReplicasLen == 2;
    for (int r = 0; are_current && r < 2; ++r)
      are_current = cluster->Replicas[r]->Current && !cluster->Replicas[r]->Offline;
  }
  jsStreamInfoList_Destroy(streams);
  jsCtx_Destroy(context);
  natsConnection_Destroy(connection);
  return are_current;
}

TEST_F(NatsTest, KeepsEachEntryOnceWhenServersOfThreeAreKilled) {
  NatsCluster cluster;
  cluster.start();
  auto connected = connect_nats({.url = cluster.url(), .name = "test", .replicas = 3});
  ASSERT_TRUE(connected) << connected.error().message;
  Bus& bus = **connected;
  ASSERT_TRUE(try_until(bus, [&] { return bus.make_log("parts", "part.>", 1 << 20).has_value(); }));
  std::vector<std::string> texts;
  for (size_t victim = 0; victim < 3; ++victim) {
    for (int i = 0; i < 20; ++i) {
      if (i == 10) cluster.server(victim).kill();
      texts.push_back(fmt::format("{} of {}", i, victim));
      append_at_last(bus, "part.a", texts.back());
    }
    cluster.server(victim).start();
    EXPECT_TRUE(try_until(bus, [&] { return are_all_current(cluster.url()); }));
  }
  std::vector<std::string> read;
  uint64_t last = 0;
  const auto are_all_read = [&] {
    (void)bus.next();
    const auto some = bus.read("parts", last, 100);
    if (!some) return false;
    for (const Entry& entry : *some) {
      EXPECT_EQ(entry.sequence, last + 1);
      last = entry.sequence;
      read.push_back(text_of(entry.bytes));
    }
    return read.size() >= texts.size();
  };
  ASSERT_TRUE(try_until(bus, are_all_read));
  EXPECT_EQ(read, texts);
}

}  // namespace
}  // namespace clew::cluster
