// SPDX-License-Identifier: Apache-2.0
// What is wrong with a cluster's server, or with how one comes to it: each command that talks to it
// says that in one line, soon, and with what to do. Debian's server, and ports that are none.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "base/run_program.h"
#include "cluster/nats_server.h"
#include "live/child.h"
#include "live/server.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::string>;

// A port where somebody says something first, and answers each PING: an old server, or none.
class Speaker {
 public:
  explicit Speaker(std::string first) : first_(std::move(first)) {
    listener_ = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_EQ(listen(listener_.get(), 64), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Speaker() {
    is_over_ = true;
    thread_.join();
  }
  Speaker(const Speaker&) = delete;
  Speaker& operator=(const Speaker&) = delete;

  // As nats-server of this version greets.
  static std::string greeting(const std::string& version, const std::string& more = "") {
    return fmt::format("INFO {{\"version\":\"{}\",\"max_payload\":1048576{}}}\r\n", version, more);
  }
  [[nodiscard]] std::string place() const { return fmt::format("127.0.0.1:{}", port_); }
  // Another one is there in its place: all connections are lost.
  void become(std::string first) {
    const std::lock_guard lock(mutex_);
    first_ = std::move(first);
    is_another_ = true;
  }

 private:
  void serve() {
    std::vector<FileDescriptor> ends;
    while (!is_over_) {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_another_, false)) ends.clear();
      std::vector<pollfd> waits = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
      for (const FileDescriptor& end : ends)
        waits.push_back({.fd = end.get(), .events = POLLIN, .revents = 0});
      if (poll(waits.data(), waits.size(), 20) <= 0) continue;
      for (size_t i = ends.size(); i > 0; --i) {
        if (waits[i].revents != 0 && !answer(ends[i - 1]))
          ends.erase(ends.begin() + static_cast<ptrdiff_t>(i) - 1);
      }
      if (waits[0].revents == 0) continue;
      ends.emplace_back(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      (void)!write(ends.back().get(), first_.data(), first_.size());
    }
  }
  static bool answer(const FileDescriptor& end) {
    std::string said(4096, '\0');
    const ssize_t size = read(end.get(), said.data(), said.size());
    if (size <= 0) return false;
    if (said.find("PING") != std::string::npos) (void)!write(end.get(), "PONG\r\n", 6);
    return true;
  }

  std::mutex mutex_;
  std::string first_;
  bool is_another_ = false;
  FileDescriptor listener_;
  int port_ = 0;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

// Accounts with JetStream, without, and with too little of it; users who lack one right each.
constexpr const char* kServer = R"(
jetstream { store_dir: FOLDER/js, max_file: 8G }
accounts {
  A { jetstream: enabled, users: [
    { user: all, password: p }
    { user: nobeat, password: p, permissions: {
        publish: [ "clew.default.part.>", "$JS.>" ], subscribe: [ "clew.>", "_INBOX.>" ] } }
    { user: noctl, password: p, permissions: {
        publish: [ "clew.>", "$JS.>" ], subscribe: [ "clew.default.again.>", "_INBOX.>" ] } }
    { user: noinbox, password: p, permissions: { publish: ">", subscribe: "clew.>" } }
    { user: noapi, password: p, permissions: { publish: "clew.>", subscribe: ">" } }
    { user: nokeys, password: p, permissions: {
        publish: [ "clew.>", "$JS.>" ], subscribe: ">" } }
    { user: noask, password: p, permissions: { publish: "clew.default.read", subscribe: ">" } }
    { user: noread, password: p, permissions: { publish: "clew.default.ask", subscribe: ">" } }
    { user: nostatus, password: p, permissions: {
        publish: ">", subscribe: [ "clew.default.row.*", "_INBOX.>" ] } }
  ] }
  B { users: [ { user: nojetstream, password: p } ] }
  C { jetstream: { max_file: 1M }, users: [ { user: nodisk, password: p } ] }
  D { jetstream: { max_file: 2G, max_streams: 1 }, users: [ { user: nostreams, password: p } ] }
}
)";

class ClusterErrors : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!cluster::NatsServer::is_installed()) return;
    server_ = new cluster::NatsServer(kServer, cluster::NatsServer::Keeps::Nothing);
    server_->start();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  void SetUp() override {
    if (!cluster::NatsServer::is_installed()) GTEST_SKIP() << "nats-server is not installed";
  }

  static std::string url_of(const std::string& user) {
    return fmt::format("nats://{}:p@{}", user, server_->place());
  }
  static std::string shown_url() { return "nats://" + server_->place(); }
  [[nodiscard]] Words command(const std::string& verb, const std::string& url) const {
    Words words = {verb, "--cluster", url};
    if (verb == "node" || verb == "root") words.insert(words.end(), {"--name", "n1"});
    if (verb == "root") words.insert(words.end(), {"--store", folder_.file("store")});
    if (verb == "run")
      words.emplace_back(
          "from e in cluster.Function(\"no-such!*\") group by e.host select count()");
    return words;
  }
  static Child::End end_of(const Words& words) {
    const auto begun = steady_clock::now();
    const Child::End end = clew(words);
    EXPECT_LT(steady_clock::now() - begun, std::chrono::seconds(8)) << words[0];
    return end;
  }
  // One line, and no secret in it.
  static void expect_line(const std::string& error, const std::string& text) {
    EXPECT_THAT(error, HasSubstr(text));
    EXPECT_EQ(error.find('\n'), error.size() - 1) << error;
    EXPECT_THAT(error, Not(HasSubstr(":p@")));
  }
  void expect_of(const Words& verbs, const std::string& url, const std::string& text,
                 const Words& more = {}) const {
    for (const std::string& verb : verbs) {
      SCOPED_TRACE(verb + " " + url);
      Words words = command(verb, url);
      words.insert(words.end(), more.begin(), more.end());
      const Child::End end = end_of(words);
      EXPECT_EQ(end.status, 1);
      expect_line(end.error, text);
    }
  }
  // Of those that go on, and try again.
  void expect_told(const std::string& verb, const std::string& url, const std::string& text) const {
    SCOPED_TRACE(verb + " " + url);
    Words words = command(verb, url);
    words.insert(words.begin(), CLEW_COMMAND);
    Child child({.arguments = words});
    std::optional<std::string> line = child.read_error_line();
    while (line && line->find(text) == std::string::npos)
      line = child.read_error_line();
    EXPECT_TRUE(line) << text;
    child.signal(SIGTERM);
    EXPECT_EQ(child.wait_for_end().status, 0);
  }

  TemporaryFolder folder_;
  static cluster::NatsServer* server_;
};

cluster::NatsServer* ClusterErrors::server_ = nullptr;

const Words kAll = {"node", "root", "run", "results", "doctor"};
const Words kMembers = {"node", "root", "run", "results"};

TEST_F(ClusterErrors, OfTheUrl) {
  expect_of(kAll, "http://127.0.0.1:4222", "it begins with http://; one is nats://host:4222");
  expect_of(kMembers, "localhost", "nats:// or tls:// is missing in front");
  expect_of({"doctor"}, "localhost", "'localhost' is no file, which a server's configuration is");
  expect_of(kAll, "nats://127.0.0.1:x", "its port is no number from 1 to 65535");
  expect_of(kAll, "nats://no-such-host.invalid", "no machine is known as 'no-such-host.invalid'");
  expect_of(kAll, "nats://127.0.0.1:1", "no NATS server listens there; is it started");
  expect_of(
      {"node"}, "nats://127.0.0.1:1,nats://no-such-host.invalid",
      "no NATS server listens there; is it started, and is that its port?; no bus answers at");
}

TEST_F(ClusterErrors, OfPortsThatAreNotOfNats) {
  const Speaker ssh("SSH-2.0-OpenSSH_9.2\r\n");
  expect_of(kAll, "nats://" + ssh.place(), "what listens there is no NATS server");
  // As one of HTTP.
  const Speaker silent("");
  expect_of({"node", "doctor"}, "nats://" + silent.place(),
            "something listens there that says nothing, where NATS speaks first");
}

TEST_F(ClusterErrors, OfOldServers) {
  const Speaker oldest(Speaker::greeting("2.1.9"));
  expect_of(kMembers, "nats://" + oldest.place(),
            "is too old: it is NATS 2.1.9, and 2.9 or newer is needed");
  const Speaker old(Speaker::greeting("2.8.4", ",\"headers\":true,\"jetstream\":true"));
  expect_of(kMembers, "nats://" + old.place(),
            "is too old: it is NATS 2.8.4, and 2.9 or newer is needed");
  const Child::End told = end_of(command("doctor", "nats://" + old.place()));
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.output,
              HasSubstr("PROBLEM  server             it is too old: it is NATS 2.8.4"));
}

// While a node counts: what it cannot send it keeps.
TEST_F(ClusterErrors, OfAServerThatIsSetBack) {
  Speaker speaker(Speaker::greeting("2.9.10", ",\"headers\":true"));
  Words words = command("node", "nats://" + speaker.place());
  words.insert(words.begin(), CLEW_COMMAND);
  Child node({.arguments = words});
  EXPECT_THAT(node.read_error_line().value_or(""), HasSubstr("node n1 is there"));
  speaker.become(Speaker::greeting("2.8.4", ",\"headers\":true"));
  std::optional<std::string> line = node.read_error_line();
  while (line && line->find("is too old") == std::string::npos)
    line = node.read_error_line();
  EXPECT_THAT(line.value_or(""), HasSubstr("is too old: it is NATS 2.8.4, and 2.9 or newer is"));
  EXPECT_TRUE(node.running());
}

TEST_F(ClusterErrors, OfWhoIsNotLetIn) {
  expect_of(kMembers, "nats://all:wrong@" + server_->place(),
            "does not let user 'all' in: the name or the password is wrong");
  expect_of(kMembers, shown_url(), "wants to know who this is: USER:PASSWORD@");
  expect_of({"node"}, "nats://token@" + server_->place(), "does not take this token");
  expect_of({"node"}, shown_url(), "'/absent.creds' cannot be read",
            {"--credentials", "/absent.creds"});
  std::ofstream(folder_.file("no.creds")) << "nothing\n";
  expect_of({"node"}, shown_url(), "no.creds' has no credentials of NATS",
            {"--credentials", folder_.file("no.creds")});
  expect_of({"results"}, url_of("all"), "--ca is for TLS, and " + shown_url() + " has none",
            {"--ca", "/etc/hosts"});
  const Child::End told = end_of(command("doctor", "nats://all:wrong@" + server_->place()));
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.output, HasSubstr("PROBLEM  way-in "));
}

TEST_F(ClusterErrors, OfWhatIsNotPermitted) {
  const auto may_not = [](const std::string& what) {
    return fmt::format("this end may not {}': the server's list for its user lacks that", what);
  };
  expect_of({"node"}, url_of("noctl"), may_not("subscribe to 'clew.default.ctl.all"));
  expect_of({"node"}, url_of("noinbox"), may_not("subscribe to '_INBOX.node.n1.>"));
  expect_of({"run", "results"}, url_of("noinbox"), "this end may not subscribe to '_INBOX.");
  expect_of({"root"}, url_of("noapi"),
            may_not("publish to '$JS.API.STREAM.CREATE.clew_default_part"));
  expect_of({"run"}, url_of("noask"), may_not("publish to 'clew.default.ask"));
  expect_of({"run"}, url_of("nostatus"), "this end may not subscribe to 'clew.default.status.");
  expect_of({"results"}, url_of("noread"), may_not("publish to 'clew.default.read"));
  // These go on: what is not permitted may be so later.
  expect_told("node", url_of("nobeat"), may_not("publish to 'clew.default.beat.n1"));
  expect_told("node", url_of("noapi"),
              may_not("publish to '$JS.API.STREAM.MSG.GET.KV_clew_default"));
  expect_told(
      "root", url_of("nokeys"),
      "this root cannot do its work at present: " + may_not("publish to '$KV.clew_default.root"));
}

TEST_F(ClusterErrors, OfServersThatKeepNothing) {
  expect_of({"root", "run", "results"}, url_of("nojetstream"),
            "the server keeps no logs for this user: its account needs 'jetstream: enabled'");
  expect_told("node", url_of("nojetstream"), "its account needs 'jetstream: enabled'");
  expect_of({"root", "run"}, url_of("nodisk"),
            "insufficient storage resources available; it takes 1024 MiB of each server's disk");
  expect_told(
      "root", url_of("nostreams"),
      "maximum number of streams reached; each tenant needs two: max_streams of its account");
  const Child::End told = end_of(command("doctor", url_of("nojetstream")));
  EXPECT_EQ(told.status, 1);
  EXPECT_THAT(told.output, HasSubstr("PROBLEM  jetstream "));
}

TEST_F(ClusterErrors, OfLabelsAndFolders) {
  for (const char* label :
       {"zone", "=a", "zone=", "zone=a b", "zo ne=a", "zone=\x1b[31m", "zone=\xc3\xa4"})
    expect_of({"node"}, url_of("all"), "is no label: one is NAME=VALUE, as in zone=a",
              {"--label", label});
  expect_of({"node"}, url_of("all"), "label zone is given twice: a and b",
            {"--label", "zone=a", "--label", "zone=b"});
  expect_of({"run"}, url_of("all"), "is no label", {"--on", "zone"});
  const Child::End end =
      end_of({"root", "--cluster", url_of("all"), "--store", folder_.file("no/such/folder")});
  expect_line(end.error, "cannot make " + folder_.file("no/such/folder"));
  std::ofstream(folder_.file("letter")) << "dear root\n";
  expect_line(end_of({"root", "--cluster", url_of("all"), "--store", folder_.path()}).error,
              "has no store of a root, but other files");
  expect_line(end_of({"node", "--cluster", url_of("all"), "--spill", folder_.file("letter")}).error,
              "letter: Not a directory");
}

// Two machines of one name, by one image: the one that came later ends, and says why.
TEST_F(ClusterErrors, OfTwoNodesOfOneName) {
  const Child root({.arguments = {CLEW_COMMAND, "root", "--cluster", url_of("all")}});
  Child first({.arguments = {CLEW_COMMAND, "node", "--name", "twin", "--cluster", url_of("all"),
                             "--label", "zone=a"}});
  (void)first.read_error_line();
  // Meanwhile: what --on may name.
  expect_of({"run"}, url_of("all"), "no node has the label zone=b; there are zone=a",
            {"--on", "zone=b"});
  const Child::End second =
      end_of({"node", "--name", "twin", "--quiet", "--cluster", url_of("all")});
  EXPECT_EQ(second.status, 1);
  expect_line(second.error, "another node is called twin, and has been there longer");
  EXPECT_TRUE(first.running());
}

// --- TLS -----------------------------------------------------------------------------------------

class ClusterErrorsTls : public ClusterErrors {
 protected:
  static void run_tool(const Words& words) {
    const auto finished = run_program(words, "");
    ASSERT_TRUE(finished && finished->succeeded) << words[1];
  }
  [[nodiscard]] static std::string file(const std::string& name) {
    return (tls_->folder() / name).string();
  }
  static void make_authority(const std::string& name) {
    run_tool({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
              "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=" + name,
              "-keyout", file(name + ".key"), "-out", file(name + ".pem")});
  }
  static void make(const std::string& name, const std::string& who, const std::string& by = "ca",
                   const std::string& days = "2") {
    run_tool({"openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
              "-nodes", "-subj", "/CN=" + name, "-keyout", file(name + ".key"), "-out",
              file(name + ".csr")});
    std::ofstream(file(name + ".ext")) << "subjectAltName=" << who << "\n";
    run_tool({"openssl", "x509", "-req", "-days", days, "-in", file(name + ".csr"), "-CA",
              file(by + ".pem"), "-CAkey", file(by + ".key"), "-CAcreateserial", "-extfile",
              file(name + ".ext"), "-out", file(name + ".pem")});
  }
  static std::string settings(const std::string& certificate) {
    return fmt::format(R"(
jetstream {{ store_dir: FOLDER/js }}
tls {{ cert_file: "{0}.pem", key_file: "{0}.key", ca_file: "{1}", verify_and_map: true }}
accounts {{ A {{ jetstream: enabled, users: [ {{ user: "clew:node:n1" }} ] }} }}
)",
                       file(certificate), file("ca.pem"));
  }
  static void SetUpTestSuite() {
    ClusterErrors::SetUpTestSuite();
    if (!cluster::NatsServer::is_installed()) return;
    tls_ = new cluster::NatsServer("", cluster::NatsServer::Keeps::Nothing);
    make_authority("ca");
    make_authority("other");
    make("server", "DNS:localhost");
    make("n1", "URI:clew:node:n1");
    make("n9", "URI:clew:node:n9");
    make("late", "URI:clew:node:n1", "ca", "-1");
    make("strange", "URI:clew:node:n1", "other");
    tls_->configure(settings("server"));
    tls_->start();
  }
  static void TearDownTestSuite() {
    delete tls_;
    tls_ = nullptr;
    ClusterErrors::TearDownTestSuite();
  }
  static std::string tls_url(const std::string& host = "localhost") {
    return "tls://" + tls_->place(host);
  }
  static Words with(const std::string& certificate, const std::string& authority = "ca") {
    return {"--ca",  file(authority + ".pem"),  "--certificate", file(certificate + ".pem"),
            "--key", file(certificate + ".key")};
  }

  static cluster::NatsServer* tls_;
};

cluster::NatsServer* ClusterErrorsTls::tls_ = nullptr;

TEST_F(ClusterErrorsTls, OfTheOtherWayToTalk) {
  expect_of(kMembers, "tls://" + server_->place("localhost"), "has no TLS: its URL begins nats://");
  expect_of(kMembers, "nats://" + tls_->place(), "wants TLS: its URL begins tls://");
}

TEST_F(ClusterErrorsTls, OfTheServersCertificate) {
  expect_of(kMembers, tls_url(), "other.pem' (--ca) has not signed it", with("n1", "other"));
  expect_of({"node"}, tls_url(), "no authority that this system knows has signed it; --ca FILE");
  expect_of({"node"}, tls_url("127.0.0.1"), "is for another host than '127.0.0.1'", with("n1"));
  expect_of({"node"}, tls_url(), "absent.pem' cannot be read", {"--ca", "/absent.pem"});
  cluster::NatsServer expired("", cluster::NatsServer::Keeps::Nothing);
  make("expired", "DNS:localhost", "ca", "-1");
  expired.configure(settings("expired"));
  expired.start();
  expect_of(kMembers, "tls://" + expired.place("localhost"), "has expired, or this machine's clock",
            with("n1"));
}

TEST_F(ClusterErrorsTls, OfOnesOwnCertificate) {
  expect_of(kMembers, tls_url(),
            "wants a certificate of this end: --certificate FILE and --key FILE",
            {"--ca", file("ca.pem")});
  expect_of({"node"}, tls_url(), "late.pem': it has expired", with("late"));
  expect_of({"node"}, tls_url(), "strange.pem': the server does not know who signed it",
            with("strange"));
  expect_of(kMembers, tls_url(), "n9.pem': none of its users is clew:node:n9", with("n9"));
  expect_of({"node"}, tls_url(), "are no certificate and its key",
            {"--ca", file("ca.pem"), "--certificate", file("n1.pem"), "--key", file("n9.key")});
  const Child::End lone = end_of({"node", "--cluster", tls_url(), "--certificate", file("n1.pem")});
  EXPECT_EQ(lone.status, 2);
  expect_line(lone.error, "--certificate requires --key");
}

TEST_F(ClusterErrorsTls, AreFoundByTheDoctor) {
  const auto told = [&](const std::string& url, const Words& more) {
    Words words = {"doctor", "--cluster", url};
    words.insert(words.end(), more.begin(), more.end());
    return end_of(words);
  };
  const Child::End fine = told(tls_url(), with("n1"));
  EXPECT_EQ(fine.status, 0) << fine.output << fine.error;
  EXPECT_THAT(fine.output, HasSubstr("its certificate is trusted and has the name 'localhost'"));
  const Child::End bad = told(tls_url(), with("n9"));
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.output, HasSubstr("PROBLEM  way-in "));
  EXPECT_THAT(told(tls_url(), {}).output,
              HasSubstr("note     way-in             it was not tried"));
  // Of several each, and whether they are one.
  const Child::End several = told(tls_url() + ",tls://localhost:1", with("n1"));
  EXPECT_EQ(several.status, 1);
  EXPECT_THAT(several.output, HasSubstr("server " + tls_url()));
  EXPECT_THAT(several.output, HasSubstr("server tls://localhost:1"));
  EXPECT_THAT(several.output, HasSubstr("no NATS server listens there"));
}

// --- three servers, with the configuration that comes with Clew
// ------------------------------------

class ClusterErrorsThree : public ClusterErrorsTls {
 protected:
  // Of one of the examples, with the places that a test has.
  static std::string shipped(const std::string& name,
                             const std::vector<std::pair<std::string, std::string>>& changes) {
    std::ifstream example(CLEW_EXAMPLES "/cluster/" + name);
    std::string text{std::istreambuf_iterator<char>(example), {}};
    for (const auto& [from, to] : changes) {
      size_t found = 0;
      for (size_t at = text.find(from); at != std::string::npos; ++found)
        at = text.replace(at, from.size(), to).find(from, at + to.size());
      EXPECT_GE(found, 1U) << from;
    }
    return text;
  }
  void begin_servers() {
    make_authority("routes-ca");
    make("route", "IP:127.0.0.1", "routes-ca");
    for (const char* user : {"root:r1", "ask"})
      make(std::string(user).substr(0, 3), fmt::format("URI:clew:{}", user));
    std::vector<int> ports;
    while (ports.size() < 3)
      ports.push_back(cluster::NatsServer::free_port());
    for (size_t i = 0; i < 3; ++i) {
      auto server = std::make_unique<cluster::NatsServer>("", cluster::NatsServer::Keeps::Nothing);
      const std::string folder = server->folder().string();
      std::ofstream(folder + "/nats-server.conf")
          << shipped("nats-server.conf", {{"/etc/clew/tls", tls_->folder().string()},
                                          {"/var/lib/nats/clew", folder + "/js"},
                                          {"listen: \"0.0.0.0:4222\"", ""}});
      server->configure(shipped("three-servers.conf",
                                {{"/etc/clew/tls", tls_->folder().string()},
                                 {"\"nats1\"", fmt::format("\"s{}\"", i)},
                                 {"0.0.0.0:6222", fmt::format("127.0.0.1:{}", ports[i])},
                                 {"nats1.example:6222", fmt::format("127.0.0.1:{}", ports[0])},
                                 {"nats2.example:6222", fmt::format("127.0.0.1:{}", ports[1])},
                                 {"nats3.example:6222", fmt::format("127.0.0.1:{}", ports[2])}}));
      server->start();
      url_ += (i == 0 ? "tls://" : ",tls://") + server->place("localhost");
      servers_.push_back(std::move(server));
    }
  }
  [[nodiscard]] Words as(const std::string& certificate, Words words) const {
    const Words identity = with(certificate);
    words.insert(words.end(), identity.begin(), identity.end());
    words.insert(words.end(), {"--cluster", url_});
    return words;
  }
  // Until one of the servers leads what they keep.
  std::unique_ptr<Child> begin_root() {
    Words words = as("roo", {CLEW_COMMAND, "root", "--name", "r1", "--replicas", "3"});
    for (const auto end = steady_clock::now() + kPatience; steady_clock::now() < end;) {
      auto root = std::make_unique<Child>(ChildOptions{.arguments = words});
      last_ = root->read_error_line().value_or("");
      if (last_.find("a root is there") != std::string::npos) return root;
    }
    return nullptr;
  }

  std::vector<std::unique_ptr<cluster::NatsServer>> servers_;
  std::string url_;
  std::string last_;
};

TEST_F(ClusterErrorsThree, ServersAreOneAndCountRight) {
  begin_servers();
  const std::string name = fmt::format("three_{}", getpid());
  fs::copy_file(victim_path("sites"), victim_path(name));
  Victim victim(name);
  const auto root = begin_root();
  ASSERT_TRUE(root) << last_;
  Child node({.arguments = as("n1", {CLEW_COMMAND, "node", "--name", "n1"})});
  (void)node.read_error_line();
  Tracer tracer = Tracer::start("from e in cluster.Function(\"" + name +
                                    "!*\") group by e.function select new { name = e.function, "
                                    "calls = count() }",
                                as("ask", {"--wait", "30s"}));
  const Numbers start = victim.counts();
  victim.run(10);
  const Numbers truth = difference(start, victim.counts());
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.summary.at("lost").size(), 0U) << report.summary;
  const Numbers calls = report.calls();
  size_t compared = 0;
  for (const auto& [function, count] : truth) {
    if (!calls.contains(function)) continue;
    ++compared;
    EXPECT_EQ(calls.at(function), count) << function;
  }
  EXPECT_GT(compared, 10U) << report.error;
  const Child::End told = end_of(as("n1", {"doctor"}));
  EXPECT_EQ(told.status, 0) << told.output;
  EXPECT_THAT(told.output, HasSubstr("it keeps logs and keys"));
  EXPECT_THAT(told.output, HasSubstr("ok       cluster            all 3 are in 'clew'"));
  fs::remove(victim_path(name));
}

}  // namespace
}  // namespace clew::live
