// SPDX-License-Identifier: Apache-2.0
// Joins by cause whose requests travel by TCP or UNIX sockets: between a front and a back server
// that say nothing of them, each of which knows the request's number from the message alone.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kEach = 100;  // Of each of three clients.

class Streams : public testing::Test {
 protected:
  Streams() : path_(fs::path(testing::TempDir()) / ("relay." + std::to_string(getpid()))) {
    path_ += ".toml";
    say("last", "recipe");
  }
  ~Streams() override { fs::remove(path_); }

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "the kernel tells root alone who sends what";
  }

  // How the victim hands its requests on.
  void say(const std::string& onward, const std::string& how) const {
    std::ofstream(path_) << "[[program]]\nname = \"relay\"\nonward = \"" << onward << "\"\nhow = \""
                         << how << "\"\n";
  }
  [[nodiscard]] std::vector<std::string> arguments() const {
    return {"--vocabulary", path_.string()};
  }

  // Work of the back server by whether the first work of its request in front was for the same.
  static std::string back_by_front() {
    return "from b in entry(\"relay!back_request\") join f in "
           "First(entry(\"relay!front_request\")) "
           "on f -> b select new { name = f.arg0 == b.arg0 ? \"right\" : \"wrong\", "
           "calls = count() }";
  }
  // And what the front one does with an answer, by the work that was done for it.
  static std::string answer_by_back() {
    return "from a in entry(\"relay!front_answer\") join b in "
           "MostRecent(entry(\"relay!back_request\")) on b -> a select new { name = b.arg0 == "
           "a.arg0 ? \"right\" : \"wrong\", calls = count() }";
  }

  // Messages that travel so.
  Traced trace(uint64_t how, const std::string& query, uint64_t rounds = kEach) {
    Victim victim("relay");
    victim.ask("how " + std::to_string(how));
    return trace_lossy_rounds(victim, "relay", query, rounds, arguments());
  }

  fs::path path_;
};

class StreamsOf : public Streams, public testing::WithParamInterface<uint64_t> {};

// All by TCP. Of bytes that are counted, those of a call that is seen behind their read are not
// known where another thread has sent before: few, and told.
void expect_right(const Report& report, bool is_counted) {
  const Numbers counted = report.calls();
  EXPECT_FALSE(counted.contains("wrong")) << report.summary;
  const uint64_t unplaced = report.summary.at("missed").value("unplaced", uint64_t{0});
  EXPECT_EQ(report.lost(), is_counted ? unplaced : 0) << report.summary;
  const uint64_t missing = 3 * kEach - counted.at("right");
  EXPECT_LE(missing, is_counted ? 3 * kEach / 50 : 0) << report.summary;
  if (missing == 0) return;
  uint64_t told = report.summary.at("by_cause").value("unjoined", uint64_t{0});
  for (const auto& [cause, count] : report.summary.at("missed").items())
    told += count.get<uint64_t>();
  EXPECT_GE(told, missing) << report.summary;
}

constexpr uint64_t kCounted = 256 | 512 | 1024 | 4096;  // By UNIX sockets.

TEST_P(StreamsOf, BringTheRequestThere) {
  const Traced traced = trace(GetParam(), back_by_front());
  EXPECT_EQ(traced.truth.at("back_request"), 3 * kEach);
  expect_right(traced.report, (GetParam() & kCounted) != 0);
}

TEST_P(StreamsOf, BringItBackWithTheAnswer) {
  expect_right(trace(GetParam(), answer_by_back()).report, (GetParam() & kCounted) != 0);
}

// As the victim's `how` says: whole, looked at, in parts, spliced, from a file, in vectors, with a
// connection for each, with the same port each time, by IPv6, and some of these together.
INSTANTIATE_TEST_SUITE_P(Streams, StreamsOf,
                         testing::Values(0, 1, 2, 4, 8, 16, 32, 64, 128, 1 | 2 | 16, 128 | 64 | 2));
// By UNIX sockets; those that keep messages apart; those of clients that have an address, too;
// pairs.
INSTANTIATE_TEST_SUITE_P(StreamsByUnix, StreamsOf,
                         testing::Values(256, 256 | 1, 256 | 2, 256 | 4, 256 | 8, 256 | 16,
                                         256 | 32, 256 | 64, 256 | 1 | 2 | 16, 512, 512 | 32, 1024,
                                         1024 | 32 | 2, 4096, 4096 | 2 | 256));

// Of each traced program, what becomes of its messages.
TEST_F(Streams, AreExplained) {
  const Victim relay("relay");
  const Victim other("relay");
  const Victim unknown("sites");
  const auto explained = [&](const std::string& query) {
    std::vector<std::string> all = {"explain", "--vocabulary", path_.string(), query};
    for (const Victim* victim : {&relay, &other, &unknown})
      all.insert(all.end(), {"-p", std::to_string(victim->pid())});
    return clew(all).output;
  };
  const std::string unsaid = fmt::format(
      "node     sites ({}): no [[program]] says what it does with messages", unknown.pid());
  const std::string recipe = explained(back_by_front());
  EXPECT_THAT(recipe, HasSubstr("node     relay (2 processes): writes onward for the message read "
                                "last (recipe)\n"));
  EXPECT_THAT(recipe, HasSubstr(unsaid + ": requests end there\n"));
  // The kernel's probes are none of the edges that the answer counts.
  EXPECT_THAT(recipe, HasSubstr("node     tracepoint(\"rawtp:sock_recv_length\") takes the request "
                                "over that the bytes are of (the class is its program's)\n"));
  EXPECT_THAT(recipe, HasSubstr("(\"rawtp:sock_send_length\") hands the request over with its bytes"
                                "\n"));
  EXPECT_THAT(recipe, HasSubstr("(\"sock:inet_sock_set_state\") connects for the request\n"));
  EXPECT_THAT(recipe,
              HasSubstr("(\"rawtp:sock_send_length\") hands the request over with its bytes, "
                        "of UNIX sockets\n"));
  EXPECT_THAT(recipe,
              HasSubstr("takes the request over that the bytes are of, of UNIX sockets (the "
                        "class is its program's)\n"));
  say("slice", "heuristic");
  const std::string heuristic = explained(
      "from b in entry(\"relay!back_request\") join f in First(entry(\"relay!front_request\")) "
      "on f -> b with cause >= heuristic select count()");
  EXPECT_THAT(heuristic, HasSubstr("node     relay (2 processes): writes onward for the only "
                                   "message between two waits for events (heuristic)\n"));
  EXPECT_THAT(heuristic, HasSubstr(unsaid + ": writes onward for the only message"));
}

// Whoever is not believed is named, where another is.
TEST_F(Streams, OfAProgramThatIsNotBelievedAreExplained) {
  std::ofstream(path_, std::ios::app)
      << "[[program]]\nname = \"sites\"\nonward = \"oldest\"\nhow = \"heuristic\"\n";
  const Victim relay("relay");
  const Victim sites("sites");
  const std::string output =
      clew({"explain", "--vocabulary", path_.string(), "-p", std::to_string(relay.pid()), "-p",
            std::to_string(sites.pid()), back_by_front()})
          .output;
  EXPECT_THAT(output, HasSubstr("writes onward for the oldest message that nothing was written for "
                                "(heuristic), not believed: requests end there\n"));
}

// It is not missing: it is known, and not well enough.
TEST_F(Streams, OfAProgramThatIsNotBelievedSayHowItWouldBe) {
  say("last", "heuristic");
  Victim relay("relay");
  EXPECT_THAT(run_clew({"run", back_by_front(), "-p", std::to_string(relay.pid()), "--vocabulary",
                        path_.string()})
                  .error,
              HasSubstr("what relay does with messages is known by a guess alone, which 'with "
                        "cause >= heuristic' believes\n"));
  // Where another one is believed, its messages end requests.
  std::ofstream(path_, std::ios::app) << "[[program]]\nname = \"sites\"\nonward = \"last\"\n";
  const Victim sites("sites");
  std::vector<std::string> more = arguments();
  more.insert(more.end(), {"-p", std::to_string(sites.pid())});
  Tracer tracer = Tracer::attach(relay.pid(), back_by_front(), more);
  relay.run(1);
  const Report report = tracer.finish();
  EXPECT_THAT(report.error, HasSubstr("known by a guess alone, which 'with cause >= heuristic' "
                                      "believes: requests end there\n"));
  EXPECT_THAT(report.error, Not(HasSubstr("no [[program]]")));
}

// There and back: what the front one does with an answer, and the work that was done for it.
TEST_F(Streams, AreDrawn) {
  const fs::path picture =
      fs::path(testing::TempDir()) / ("relay." + std::to_string(getpid()) + ".json");
  Victim victim("relay");
  std::vector<std::string> more = arguments();
  more.insert(more.end(), {"--graph", picture.string()});
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from a in entry(\"relay!front_answer\") join b in MostRecent(entry(\"relay!back_request\")) "
      "on b -> a select a.arg0, b.arg0",
      more);
  victim.run(20);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  std::ifstream file(picture);
  const auto graph = nlohmann::json::parse(file);
  fs::remove(picture);
  ASSERT_EQ(graph.at("edges").size(), 2U) << graph;
  ASSERT_EQ(graph.at("events").size(), 2U) << graph;
  for (const nlohmann::json& edge : graph.at("edges")) {
    EXPECT_EQ(edge.at("class"), "recipe");
    EXPECT_EQ(edge.at("put"), "tracepoint(\"rawtp:sock_send_length\")");
    EXPECT_EQ(edge.at("take"), "tracepoint(\"rawtp:sock_recv_length\")");
  }
  const nlohmann::json& there = graph.at("events")[0];
  const nlohmann::json& back = graph.at("events")[1];
  EXPECT_EQ(there.at("function"), "back_request");
  EXPECT_EQ(back.at("function"), "front_answer");
  EXPECT_EQ(there.at("values"), back.at("values"));
  EXPECT_EQ(graph.at("edges")[0].at("to"), there.at("segment"));
  EXPECT_EQ(graph.at("edges")[1].at("from"), there.at("segment"));
  EXPECT_EQ(graph.at("edges")[1].at("to"), back.at("segment"));
}

// What the victim does with a child, whose name is the command's.
void expect_in_child(const std::string& command, const std::string& query,
                     std::vector<std::string> more) {
  more.emplace_back("--follow");
  for (const uint64_t how : {0, 256, 512}) {
    Victim victim("relay");
    victim.ask("how " + std::to_string(how));
    Tracer tracer = Tracer::attach(victim.pid(), query, more);
    EXPECT_EQ(victim.ask(command + " " + std::to_string(kEach)).at(command), kEach);
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    expect_right(report, how != 0);
  }
}

TEST_F(Streams, LeadIntoAnotherProcess) {
  expect_in_child("elsewhere", back_by_front(), arguments());
}

// With a descriptor that the one sends to the other, over a pair of UNIX sockets.
TEST_F(Streams, GoOnWhereAConnectionIsHandedToAnotherProcess) {
  expect_in_child("handed", back_by_front(), arguments());
}

// The connections are older than the session.
TEST_F(Streams, OfConnectionsThatWereThereBefore) {
  for (const uint64_t how : {0, 256, 256 | 2, 512}) {
    Victim victim("relay");
    victim.ask("how " + std::to_string(how));
    victim.tell("run 20000");
    const Report report = run_clew({"run", "-p", std::to_string(victim.pid()), back_by_front(),
                                    "--json", "--for", "200ms", "--vocabulary", path_.string()});
    victim.answer();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_FALSE(report.calls().contains("wrong")) << report.summary;
    EXPECT_GT(report.calls().at("right"), 100) << report.summary;
  }
}

// What is read by splice() nobody sees. That shifts nothing: the rest is right or missing.
TEST_F(Streams, OfUnixBehindWhatIsSplicedOutAreMissingAndNotWrong) {
  Victim victim("relay");
  victim.ask("how " + std::to_string(256 | 2048));
  Tracer tracer = Tracer::attach(victim.pid(), back_by_front(), arguments());
  victim.run(kEach);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_FALSE(report.calls().contains("wrong")) << report.summary;
  EXPECT_GT(report.calls().at("right"), kEach) << report.summary;
}

TEST_F(Streams, OfAProgramThatNobodyKnowsAreNotTaken) {
  say("last", "heuristic");
  Victim victim("relay");
  Report report = run_clew({"run", "-p", std::to_string(victim.pid()), back_by_front(), "--json",
                            "--for", "1s", "--vocabulary", path_.string()});
  EXPECT_NE(report.status, 0);
  EXPECT_NE(report.error.find("no request begins"), std::string::npos) << report.error;
}

// A loop that says of itself that it looks at one message before the next one, and does not.
TEST_F(Streams, WithARuleThatDoesNotFitAreMissingAndNotWrong) {
  for (const std::string onward : {"slice", "none"}) {
    say(onward, "recipe");
    Victim victim("relay");
    Tracer tracer = Tracer::attach(victim.pid(), back_by_front(), arguments());
    victim.run(kEach);
    const Report report = tracer.finish();
    EXPECT_FALSE(report.calls().contains("wrong")) << report.summary;
    const uint64_t right = report.calls().contains("right") ? report.calls().at("right") : 0;
    EXPECT_LT(right, 3 * kEach);
    EXPECT_EQ(report.summary.at("missed").contains("ambiguous"), onward == "slice");
  }
}

TEST_F(Streams, AreLeftAloneWhenTheTracerIsKilled) {
  Victim victim("relay");
  Tracer tracer = Tracer::attach(victim.pid(), back_by_front(), arguments());
  victim.tell("run 300");
  tracer.child().signal(SIGKILL);
  EXPECT_TRUE(tracer.child().wait_for_end().by_signal);
  victim.answer();
  EXPECT_EQ(clew({"detach", std::to_string(victim.pid())}).status, 0);
  expect_text_equals_file(victim.pid());
}

}  // namespace
}  // namespace clew::live
