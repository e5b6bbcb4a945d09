// SPDX-License-Identifier: Apache-2.0
// A whole cluster on Debian's server with the configuration that comes with Clew
// (examples/cluster/nats-server.conf): it works, and nobody can do what is another one's.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "base/run_program.h"
#include "cluster/bus_nats.h"
#include "cluster/names.h"
#include "cluster/nats_server.h"
#include "cluster/world_testing.h"

namespace clew::cluster {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void run_tool(const std::vector<std::string>& words) {
  const auto finished = run_program(words, "");
  ASSERT_TRUE(finished) << finished.error().message;
  ASSERT_TRUE(finished->succeeded) << words[1] << ": " << finished->messages;
}

class Hardened : public testing::Test {
 protected:
  void SetUp() override {
    if (!NatsServer::is_installed()) GTEST_SKIP() << "nats-server is not installed";
    server_ = std::make_unique<NatsServer>(shipped());
    make_authority();
    make("server", "DNS:localhost");
    server_->start();
  }

  // With the places that a test has, and nothing else changed.
  static std::string shipped() {
    std::ifstream file(CLEW_SOURCE_DIR "/examples/cluster/nats-server.conf");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"/etc/clew/tls", "FOLDER"},
                                                          {"/var/lib/nats/clew", "FOLDER/js"},
                                                          {"listen: \"0.0.0.0:4222\"", ""}}) {
      size_t found = 0;
      for (size_t at = text.find(from); at != std::string::npos; at = text.find(from), ++found)
        text.replace(at, from.size(), to);
      EXPECT_GE(found, 1U) << from;
    }
    return text;
  }

  [[nodiscard]] std::string file(const std::string& name) const {
    return (server_->folder() / name).string();
  }
  void make_authority() const {
    run_tool({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
              "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=ca", "-keyout",
              file("ca.key"), "-out", file("ca.pem")});
  }
  void make(const std::string& name, const std::string& who) const {
    run_tool({"openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
              "-nodes", "-subj", "/CN=" + name, "-keyout", file(name + ".key"), "-out",
              file(name + ".csr")});
    std::ofstream(file(name + ".ext")) << "subjectAltName=" << who << "\n";
    run_tool({"openssl", "x509", "-req", "-days", "2", "-in", file(name + ".csr"), "-CA",
              file("ca.pem"), "-CAkey", file("ca.key"), "-CAcreateserial", "-extfile",
              file(name + ".ext"), "-out", file(name + ".pem")});
  }

  // Whose certificate has the URI `who`; as the commands connect.
  Expected<std::unique_ptr<Bus>> try_connect(const std::string& who, const std::string& inbox) {
    const std::string name = fmt::format("cert{}", certificates_++);
    make(name, "URI:" + who);
    return connect_nats({.url = "tls://" + server_->place("localhost"),
                         .name = who,
                         .ca_file = file("ca.pem"),
                         .certificate_file = file(name + ".pem"),
                         .key_file = file(name + ".key"),
                         .inbox_prefix = inbox});
  }
  std::unique_ptr<Bus> connect(const std::string& who, const std::string& inbox) {
    auto connected = try_connect(who, inbox);
    EXPECT_TRUE(connected) << connected.error().message;
    return std::move(*connected);
  }
  std::unique_ptr<Bus> node_end(const std::string& name) {
    return connect("clew:node:" + name, "_INBOX.node." + name);
  }

  // What `bus` is told that it may not, within a while.
  static std::string complaint(Bus& bus) {
    for (int turn = 0; turn < 100; ++turn) {
      const auto complaints = bus.take_complaints();
      if (!complaints.empty()) return complaints[0];
      pollfd one{.fd = bus.descriptor(), .events = POLLIN, .revents = 0};
      (void)poll(&one, 1, 50);
      (void)bus.next();
    }
    return "";
  }
  static void expect_no_publish(Bus& bus, const std::string& subject) {
    ASSERT_TRUE(bus.publish(subject, to_bytes(Leader{.root = "x"})));
    EXPECT_THAT(complaint(bus), HasSubstr("'" + subject + "'")) << subject;
  }

  std::unique_ptr<NatsServer> server_;
  int certificates_ = 0;
};

// Time goes in steps, faster than the real one.
TEST_F(Hardened, ClustersWork) {
  TestClock clock;
  Truth truth;
  TestRoot root(connect("clew:root:r1", "_INBOX.root.r1"), "r1", clock);
  ASSERT_TRUE(root.root.begin());
  TestNode first(node_end("n1"), "n1", clock, truth);
  ASSERT_TRUE(first.node.begin());
  TestNode second(node_end("n2"), "n2", clock, truth);
  ASSERT_TRUE(second.node.begin());
  TestAsker asker(connect("clew:ask", "_INBOX.run"), clock,
                  {.query = "q1", .text = kFakeText, .width_ns = kSecond});
  ASSERT_TRUE(asker.asker.begin());
  const auto reader = connect("clew:read", "_INBOX.results");
  const auto run_until = [&](const std::function<bool()>& is_so) {
    for (int turn = 0; turn < 3000 && !is_so(); ++turn) {
      clock.now += kSecond / 50;
      root.root.turn();
      first.node.turn();
      second.node.turn();
      asker.asker.turn();
      asker.take();
      pollfd one{.fd = asker.asker.descriptor(), .events = POLLIN, .revents = 0};
      (void)poll(&one, 1, 1);
    }
    return is_so();
  };
  EXPECT_TRUE(run_until([&] { return asker.rows.size() >= 6; }));
  asker.asker.end();
  EXPECT_TRUE(run_until([&] { return asker.asker.is_done(); }));
  EXPECT_EQ(asker.rows, truth);
  for (Bus* const bus : {root.bus.get(), first.bus.get(), second.bus.get(), asker.bus.get()})
    EXPECT_THAT(bus->take_complaints(), IsEmpty());
  EXPECT_THAT(first.node.take_notes(), ElementsAre(HasSubstr("query q1 is wanted: ")));
}

TEST_F(Hardened, ServersLetInWhoTheirListHas) {
  EXPECT_FALSE(try_connect("clew:node:n9", "_INBOX.node.n9"));
  EXPECT_FALSE(connect_nats({.url = "tls://" + server_->place("localhost"),
                             .name = "nobody",
                             .ca_file = file("ca.pem")}));
  EXPECT_FALSE(connect_nats({.url = "nats://" + server_->place("localhost"), .name = "nobody"}));
  // Nor does a node hear what another one is answered.
  EXPECT_FALSE(try_connect("clew:node:n1", "_INBOX.node.n2"));
  EXPECT_FALSE(try_connect("clew:node:n1", "_INBOX"));
}

TEST_F(Hardened, NodesDoWhatIsTheirsAlone) {
  const auto root = connect("clew:root:r1", "_INBOX.root.r1");
  const Subjects subjects("default");
  ASSERT_TRUE(root->make_log(partials_log("default"), subjects.all_partials(), 1 << 20));
  const auto node = node_end("n1");
  for (const std::string& subject :
       {subjects.beat("n2"), subjects.partial("q1", "0", "n2"), subjects.control_of_all(),
        subjects.control("n2"), subjects.again("n2"), subjects.row("q1"), subjects.status("q1"),
        subjects.ask(), std::string("clew.other.beat.n1")})
    expect_no_publish(*node, subject);
  EXPECT_EQ(node->append(subjects.partial("q1", "0", "n2"), "id", {}).error().code,
            ErrorCode::Refused);
  EXPECT_TRUE(node->append(subjects.partial("q1", "0", "n1"), "id", {}));
  for (const std::string& pattern : {subjects.control("n2"), subjects.beat("*"), subjects.ask(),
                                     subjects.row("*"), subjects.all_partials(), std::string(">")})
    EXPECT_EQ(node->subscribe(pattern).error().code, ErrorCode::Refused) << pattern;
  const std::string log = partials_log("default");
  EXPECT_EQ(node->put(bucket_of("default"), kWantKey, {}, 0).error().code, ErrorCode::Refused);
  EXPECT_EQ(node->read(log, 0, 1).error().code, ErrorCode::Refused);
  EXPECT_EQ(node->forget(log, 1).error().code, ErrorCode::Refused);
  EXPECT_EQ(node->make_log(log, subjects.all_partials(), 1 << 20).error().code, ErrorCode::Refused);
}

TEST_F(Hardened, AskersAndReadersDoWhatIsTheirsAlone) {
  const Subjects subjects("default");
  const auto asker = connect("clew:ask", "_INBOX.run");
  for (const std::string& subject : {subjects.control_of_all(), subjects.beat("n1"),
                                     subjects.partial("q1", "0", "n1"), subjects.row("q1")})
    expect_no_publish(*asker, subject);
  EXPECT_EQ(asker->put(bucket_of("default"), kWantKey, {}, 0).error().code, ErrorCode::Refused);
  EXPECT_EQ(asker->get(bucket_of("default"), kWantKey).error().code, ErrorCode::Refused);
  const auto reader = try_connect("clew:read", "_INBOX.results");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_TRUE((*reader)->subscribe(subjects.found("r1")));
  EXPECT_TRUE((*reader)->publish(subjects.read(), {}));
  for (const std::string& subject : {subjects.ask(), subjects.beat("n1"), std::string("a")})
    expect_no_publish(**reader, subject);
  for (const std::string& pattern : {subjects.ask(), subjects.row("*")})
    EXPECT_EQ((*reader)->subscribe(pattern).error().code, ErrorCode::Refused) << pattern;
}

// One who is to be a node, and has another name than its certificate says, is told so.
TEST_F(Hardened, NodesOfAnotherNameAreToldSo) {
  TestClock clock;
  Truth truth;
  TestNode node(node_end("n1"), "n2", clock, truth);
  const auto begun = node.node.begin();
  ASSERT_FALSE(begun);
  EXPECT_THAT(begun.error().message,
              HasSubstr("this end may not subscribe to 'clew.default.ctl.n2'"));
}

}  // namespace
}  // namespace clew::cluster
