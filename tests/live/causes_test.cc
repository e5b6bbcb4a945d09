// SPDX-License-Identifier: Apache-2.0
// Joins by cause in processes that run: what is joined is compared with what the victims know.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

namespace fs = std::filesystem;

// Few enough for the rings, whatever else the machine does.
constexpr uint64_t kRequests = 60;

// What the victim `handoffs` does not say itself.
class HandOffs {
 public:
  // `how` the takes of jobs are known.
  explicit HandOffs(const std::string& how = "recipe")
      : path_(fs::path(testing::TempDir()) / ("handoffs." + std::to_string(getpid()))) {
    path_ += ".toml";
    std::ofstream(path_) << R"(
[[tracepoint]]
name = "handoffs.receive"
function = "handoffs!receive"
cause = "begin"

[[tracepoint]]
name = "handoffs.submit"
function = "handoffs!submit"
exports = { job = "arg0" }
cause = "put job"

[[tracepoint]]
name = "handoffs.run_job"
function = "handoffs!run_job"
exports = { job = "arg0" }
cause = "take job"
how = ")" << how << R"("

[[tracepoint]]
name = "handoffs.send"
function = "handoffs!send_message"
exports = { message = "arg0" }
cause = "send message"

[[tracepoint]]
name = "handoffs.on_message"
function = "handoffs!on_message"
exports = { message = "arg0" }
cause = "receive message"
)";
  }
  HandOffs(const HandOffs&) = delete;
  HandOffs& operator=(const HandOffs&) = delete;
  ~HandOffs() { fs::remove(path_); }

  [[nodiscard]] std::vector<std::string> arguments() const {
    return {"--vocabulary", path_.string()};
  }

 private:
  fs::path path_;
};

// Work by whether its request is the one that was joined.
std::string by_request(const std::string& victim) {
  return "from w in entry(\"" + victim + "!work\") join r in First(entry(\"" + victim +
         "!receive\")) on r -> w select new { name = r.arg0 == w.arg0 ? \"right\" : \"wrong\", "
         "calls = count() }";
}

// Work by whether it was made by the job that was joined: the last one that happened before.
std::string by_maker(const std::string& victim) {
  return "from w in entry(\"" + victim + "!work\") join m in MostRecent(entry(\"" + victim +
         "!work\")) on m -> w select new { name = m.arg1 == w.arg2 ? \"right\" : \"wrong\", "
         "calls = count() }";
}

Traced trace_causes(const std::string& name, const std::string& query,
                    const std::vector<std::string>& more = {}) {
  Victim victim(name);
  return trace_rounds(victim, name, query, kRequests, more);
}

TEST(Causes, OfAProgramThatSaysThem) {
  const Traced traced = trace_causes("causes", by_request("causes"));
  EXPECT_EQ(traced.counted, (Numbers{{"right", traced.truth.at("work")}}));
  const auto& known = traced.report.summary.at("by_cause");
  EXPECT_EQ(known.at("requests"), kRequests);
  EXPECT_EQ(known.at("explicit"), traced.truth.at("work"));
  EXPECT_FALSE(known.contains("recipe"));
}

TEST(Causes, InAChainThatGoesOnFromAnother) {
  const Traced traced = trace_causes(
      "causes",
      "var works = entry(\"causes!work\").After(First(entry(\"causes!receive\")), (w, r) => new { "
      "w, r }); works.Select(x => new { name = x.r.arg0 == x.w.arg0 ? \"right\" : \"wrong\", calls "
      "= count() })");
  EXPECT_EQ(traced.counted, (Numbers{{"right", traced.truth.at("work")}}));
}

TEST(Causes, OfAProgramThatAVocabularyKnows) {
  const HandOffs vocabulary;
  const Traced traced = trace_causes("handoffs", by_request("handoffs"), vocabulary.arguments());
  EXPECT_EQ(traced.counted, (Numbers{{"right", traced.truth.at("work")}}));
  EXPECT_EQ(traced.report.summary.at("by_cause").at("recipe"), traced.truth.at("work"));
}

// Of work by request, which happened before: there is the group of its own request alone, where
// there was any.
TEST(Causes, OfGroupsAreOfTheirOwnRequest) {
  const Traced traced = trace_causes("causes",
                                     "from w in entry(\"causes!work\") join b in (from x in "
                                     "entry(\"causes!work\") groupby x.arg0 as "
                                     "request select request, count() as n where n > 0) on b -> w "
                                     "select new { name = b.request == w.arg0 ? "
                                     "\"right\" : \"wrong\", calls = count() }");
  const uint64_t made_by_jobs = traced.truth.at("work") - traced.truth.at("work_of_first_jobs");
  EXPECT_EQ(traced.counted, (Numbers{{"right", made_by_jobs}}));
}

// A guess is believed where the query says so, live and from a file of the same events.
TEST(Causes, ThatAreGuessedAreUnknownUnlessTheQueryBelievesThem) {
  const HandOffs vocabulary("heuristic");
  const std::string file =
      (fs::path(testing::TempDir()) / ("guessed." + std::to_string(getpid()))).string();
  std::vector<std::string> more = vocabulary.arguments();
  more.insert(more.end(), {"--spill", file});
  const std::string query = by_request("handoffs");
  Victim victim("handoffs");
  Tracer tracer = Tracer::attach(victim.pid(), query, more);
  const Numbers before = victim.counts();
  victim.run(kRequests);
  const Numbers truth = difference(before, victim.counts());
  const Report live = tracer.finish();
  EXPECT_EQ(live.calls(), Numbers{}) << live.summary;
  // Whoever takes a first job works for no request then, so that nobody can go on behind it.
  EXPECT_EQ(live.summary.at("missed").at("weak_cause"), truth.at("work_of_first_jobs"));
  EXPECT_FALSE(live.summary.at("by_cause").contains("heuristic")) << live.summary;

  std::vector<std::string> from = {"run", "--from", file, "--json"};
  const std::vector<std::string> arguments = vocabulary.arguments();
  from.insert(from.end(), arguments.begin(), arguments.end());
  from.push_back(query + " with cause >= heuristic");
  const Report believed = run_clew(from);
  EXPECT_EQ(believed.status, 0) << believed.error;
  EXPECT_EQ(believed.calls(), (Numbers{{"right", truth.at("work")}})) << believed.error;
  EXPECT_EQ(believed.summary.at("by_cause").at("heuristic"), truth.at("work"));
  EXPECT_EQ(believed.lost(), 0) << believed.summary;
  fs::remove(file);
}

TEST(Causes, ThatTheProgramSaysAreKnownBest) {
  const Traced traced = trace_causes("causes", by_request("causes") + " with cause >= explicit");
  EXPECT_EQ(traced.counted, (Numbers{{"right", traced.truth.at("work")}}));
}

TEST(Causes, NeedABeginThatIsKnownWellEnough) {
  const HandOffs vocabulary;
  Victim victim("handoffs");
  std::vector<std::string> arguments = vocabulary.arguments();
  arguments.insert(arguments.begin(), {"run", "-p", std::to_string(victim.pid())});
  arguments.insert(arguments.end(), {by_request("handoffs") + " with cause >= explicit", "--json"});
  const Report report = run_clew(arguments);
  EXPECT_EQ(report.status, 1);
  EXPECT_NE(report.error.find("is known here as recipe at best"), std::string::npos)
      << report.error;
}

TEST(Causes, ReachFromJobToJob) {
  const Traced traced = trace_causes("causes", by_maker("causes"));
  const uint64_t made_by_jobs = traced.truth.at("work") - traced.truth.at("work_of_first_jobs");
  EXPECT_EQ(traced.counted, (Numbers{{"right", made_by_jobs}}));
}

TEST(Causes, ReachAChildProcess) {
  const HandOffs vocabulary;
  for (const std::string name : {"causes", "handoffs"}) {
    std::vector<std::string> more = {"--follow"};
    if (name == "handoffs") {
      const std::vector<std::string> arguments = vocabulary.arguments();
      more.insert(more.end(), arguments.begin(), arguments.end());
    }
    Victim victim(name);
    Tracer tracer = Tracer::attach(
        victim.pid(),
        "from w in entry(\"" + name + "!work_elsewhere\") join r in First(entry(\"" + name +
            "!receive\")) on r -> w select new { name = r.arg0 == w.arg0 && r.pid != w.pid ? "
            "\"right\" : \"wrong\", calls = count() }",
        more);
    EXPECT_EQ(victim.ask("messages 100").at("messages"), 100);
    const Report report = tracer.finish();
    EXPECT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.calls(), (Numbers{{"right", 100}})) << report.summary << report.error;
    expect_text_equals_file(victim.pid());
  }
}

// A thread that works for no request is no loss: the file has all events.
TEST(Causes, OfNoRequestAreNoLossOfAFile) {
  const std::string file =
      (fs::path(testing::TempDir()) / ("outside." + std::to_string(getpid()))).string();
  const std::string query =
      "from w in entry(\"causes!work_elsewhere\") left join r in First(entry(\"causes!receive\")) "
      "on r -> w select new { name = \"all\", calls = count(), requests = sum(r.arg0) }";
  Victim victim("causes");
  Tracer tracer = Tracer::attach(victim.pid(), query, {"--spill", file, "--follow"});
  victim.ask("threads 5");
  const Report live = tracer.finish();
  EXPECT_GT(live.summary.at("missed").at("no_request"), 0) << live.summary;
  const Report again = run_clew({"run", "--from", file, query, "--json"});
  EXPECT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(again.rows, live.rows);
  fs::remove(file);
}

TEST(Causes, JoinSystemCallsAlone) {
  Victim victim("causes");
  Tracer tracer = Tracer::attach(victim.pid(),
                                 "from w in syscall(\"write\") join r in First(syscall(\"write\")) "
                                 "on r -> w select new { name "
                                 "= \"second\", calls = count() }");
  EXPECT_EQ(victim.ask("messages 5").at("messages"), 5);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.summary.at("by_cause").at("requests"), 5) << report.summary;
  EXPECT_EQ(report.calls()["second"], 0) << report.summary;  // One write in each request.
}

TEST(Causes, OfAVocabularyThatNamesNoFunctionAreRefused) {
  const fs::path path = fs::path(testing::TempDir()) / ("wrong." + std::to_string(getpid()));
  std::ofstream(path) << "[[tracepoint]]\nname = \"w.begin\"\nfunction = \"handoffs!recieve\"\n"
                         "cause = \"begin\"\n";
  Victim victim("handoffs");
  const Report report = run_clew({"run", "-p", std::to_string(victim.pid()), "--vocabulary",
                                  path.string(), by_request("handoffs"), "--json"});
  EXPECT_EQ(report.status, 1);
  EXPECT_NE(report.error.find("did you mean 'receive'"), std::string::npos) << report.error;
  fs::remove(path);
}

// Bytes in its middle.
void spoil(const std::string& file) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
  bytes.write("\xa5\xa5\xa5\xa5\xa5\xa5\xa5\xa5", 8);
}

// The same answer from the file of its events.
TEST(Causes, AreInAFileOfEvents) {
  const std::string file =
      (fs::path(testing::TempDir()) / ("causes." + std::to_string(getpid()))).string();
  const std::string query = by_maker("causes");
  const Traced traced = trace_causes("causes", query, {"--spill", file});
  const Report again = run_clew({"run", "--from", file, query, "--json"});
  EXPECT_EQ(again.status, 0) << again.error;
  EXPECT_EQ(again.calls(), traced.counted);
  const Report other = run_clew({"run", "--from", file, by_request("causes"), "--json"});
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.error.find("events of another query"), std::string::npos) << other.error;
  spoil(file);
  const Report damaged = run_clew({"run", "--from", file, query, "--json"});
  EXPECT_EQ(damaged.status, 1);
  EXPECT_NE(damaged.error.find("damaged"), std::string::npos) << damaged.error;
  fs::remove(file);
}

// --- pictures of a request -----------------------------------------------------------------------

// A file of a picture, which goes with it.
class Picture {
 public:
  explicit Picture(const std::string& name)
      : path_(fs::path(testing::TempDir()) / (std::to_string(getpid()) + name)) {}
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;
  ~Picture() { fs::remove(path_); }

  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(text()); }

 private:
  fs::path path_;
};

// Work, with its request, its own number, and that of the work that made it.
constexpr const char* kWork =
    "from w in entry(\"causes!work\") join r in First(entry(\"causes!receive\")) on r -> w "
    "select w.arg0, w.arg1, w.arg2, r.tid";

Report trace_work(const std::vector<std::string>& more) {
  Victim victim("causes");
  Tracer tracer = Tracer::attach(victim.pid(), kWork, more);
  victim.run(kRequests);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_EQ(report.lost(), 0) << report.summary;
  return report;
}

// All work is in segments that go on behind the work that made them, as the victim says.
void expect_made_as_said(const nlohmann::json& graph) {
  std::map<size_t, nlohmann::json> work;  // By segment.
  std::set<int64_t> requests;
  for (const nlohmann::json& event : graph.at("events")) {
    if (event.at("function") != "work") continue;
    EXPECT_TRUE(work.emplace(event.at("segment"), event.at("values")).second);
    EXPECT_EQ(event.at("rows"), 1);
    requests.insert(event.at("values").at("arg0").get<int64_t>());
  }
  EXPECT_EQ(requests.size(), 1U);
  EXPECT_EQ(work.size(), graph.at("request").at("rows"));
  EXPECT_EQ(work.size(), graph.at("edges").size());
  for (const nlohmann::json& edge : graph.at("edges")) {
    const auto maker = work.find(edge.at("from"));
    const int64_t made_by = maker == work.end() ? 0 : maker->second.at("arg1").get<int64_t>();
    EXPECT_EQ(work.at(edge.at("to")).at("arg2"), made_by) << edge;
    EXPECT_EQ(edge.at("class"), "explicit");
    EXPECT_EQ(edge.at("put"), "clew.put");
    EXPECT_EQ(edge.at("take"), "clew.take");
    EXPECT_GT(edge.at("latency_ns"), 0);
  }
}

TEST(Causes, OfOneRequestAreDrawn) {
  const Picture json(".json");
  const Picture svg(".svg");
  const Picture dot(".dot");
  const Report report =
      trace_work({"--graph", json.path(), "--graph", svg.path(), "--graph", dot.path()});
  const nlohmann::json graph = json.json();
  EXPECT_EQ(graph.at("chosen").at("by"), "slowest");
  EXPECT_EQ(graph.at("chosen").at("requests"), kRequests);
  EXPECT_EQ(graph.at("chosen").at("with_rows"), kRequests);
  EXPECT_EQ(graph.at("request").at("begun_by"), "clew.begin");
  EXPECT_EQ(graph.at("threads")[0].at("procName"), "causes");
  EXPECT_GT(graph.at("threads").size(), 1U);
  expect_made_as_said(graph);
  EXPECT_TRUE(svg.text().ends_with("</svg>\n"));
  EXPECT_TRUE(dot.text().starts_with("digraph request {"));
  EXPECT_THAT(report.error, testing::HasSubstr("the slowest of"));
}

TEST(Causes, OfTheFirstOrLastRequestAreDrawn) {
  const auto draw = [](const std::string& which) {
    const Picture json(".json");
    trace_work({"--graph", json.path(), "--graph-of", which});
    const nlohmann::json graph = json.json();
    expect_made_as_said(graph);
    return graph.at("request").at("number").get<uint64_t>();
  };
  EXPECT_EQ(draw("first"), 1);
  // The pool's threads stay in the last ones, which are not over.
  EXPECT_GT(draw("last"), kRequests / 2);
}

TEST(Causes, OfARequestThatReachesAChildAreDrawn) {
  const Picture json(".json");
  Victim victim("causes");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from w in entry(\"causes!work_elsewhere\") join r in First(entry(\"causes!receive\")) on r "
      "-> w select w.arg0",
      {"--follow", "--graph", json.path()});
  EXPECT_EQ(victim.ask("messages 20").at("messages"), 20);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  const nlohmann::json graph = json.json();
  ASSERT_EQ(graph.at("threads").size(), 2U) << graph;
  EXPECT_EQ(graph.at("threads")[0].at("pid"), victim.pid());
  EXPECT_NE(graph.at("threads")[1].at("pid"), victim.pid());
  ASSERT_EQ(graph.at("edges").size(), 1U);
  EXPECT_EQ(graph.at("edges")[0].at("put"), "clew.send");
  EXPECT_EQ(graph.at("edges")[0].at("take"), "clew.receive");
  expect_text_equals_file(victim.pid());
}

// The same picture of a file, also of one that was written without a thought of it.
TEST(Causes, OfAFileOfEventsAreDrawn) {
  const Picture file(".events");
  const Picture live(".json");
  const Picture again(".again.json");
  trace_work({"--spill", file.path(), "--graph", live.path()});
  const std::vector<std::string> ask = {"run",    "--from",  file.path(), kWork,
                                        "--json", "--graph", again.path()};
  EXPECT_EQ(run_clew(ask).status, 0);
  EXPECT_EQ(again.json(), live.json());
  trace_work({"--spill", file.path()});
  const Report report = run_clew(ask);
  EXPECT_EQ(report.status, 0) << report.error;
  const nlohmann::json graph = again.json();
  EXPECT_EQ(graph.at("threads")[0].at("procName"), "causes");
  nlohmann::json named = graph;
  for (nlohmann::json& event : named.at("events")) {
    event["function"] = event.at("source") == "entry(\"causes!work\")" ? "work" : "receive";
  }
  expect_made_as_said(named);
}

TEST(Causes, AreDrawnOfJoinsAlone) {
  const Picture json(".json");
  std::ofstream(json.path()) << "old";
  const std::string pid = std::to_string(getpid());
  const Report none = run_clew({"run", "-p", pid,
                                "from e in entry(\"libc.so.6!read\") select "
                                "count()",
                                "--graph", json.path()});
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.error.find("only a query with joins by cause"), std::string::npos) << none.error;
  EXPECT_EQ(json.text(), "old");
  const auto error_of = [&pid](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", "-p", pid, kWork};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Report report = run_clew(arguments);
    EXPECT_NE(report.status, 0);
    return report.error;
  };
  using testing::HasSubstr;
  EXPECT_THAT(error_of({"--graph", "picture.png"}), HasSubstr(".json, .dot or .svg"));
  EXPECT_THAT(error_of({"--graph", "/nowhere/picture.svg"}), HasSubstr("cannot write /nowhere"));
  EXPECT_THAT(error_of({"--graph", json.path(), "-o", json.path()}), HasSubstr("are one file"));
  EXPECT_THAT(error_of({"--graph", json.path(), "--graph", json.path()}),
              HasSubstr("are one file"));
  EXPECT_THAT(error_of({"--graph-of", "first"}), HasSubstr("--graph"));
  EXPECT_EQ(json.text(), "old");
}

// A request that gave no row is none, and the file says so.
TEST(Causes, OfNoRequestAreAPictureThatSaysSo) {
  const Picture svg(".svg");
  Victim victim("causes");
  const Report report = run_clew({"run", "-p", std::to_string(victim.pid()), kWork, "--for",
                                  "100ms", "--json", "--graph", svg.path()});
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_THAT(svg.text(), testing::HasSubstr("none of 0 requests gave the answer a row"));
}

TEST(Causes, NeedAPlaceWhereRequestsBegin) {
  Victim victim("handoffs");
  const Report report =
      run_clew({"run", "-p", std::to_string(victim.pid()), by_request("handoffs"), "--json"});
  EXPECT_EQ(report.status, 1);
  EXPECT_NE(report.error.find("no request begins"), std::string::npos) << report.error;
}

// What the kernel says of threads. Those that end take their requests along: another thread with
// the same number works for none.
TEST(Causes, FollowThreadsAndProcessesThatAreBegun) {
  Victim victim("causes");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from w in entry(\"causes!work_elsewhere\") left join r in First(entry(\"causes!receive\")) "
      "on r -> w groupby r == null as alone, w.arg0 == 0 as outside, r.arg0 == w.arg0 as same "
      "select new { name = alone ? (outside ? \"outside\" : \"unknown\") : same ? \"right\" : "
      "\"wrong\", calls = count() }",
      {"--follow"});
  EXPECT_GT(victim.ask("threads 40").at("same"), 20);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  EXPECT_FALSE(report.calls().contains("wrong")) << report.summary;
  // A hit can be missed where many processes begin; then some stay unknown.
  if (report.summary.at("missed").contains("beside_loss")) return;
  EXPECT_EQ(report.calls(), (Numbers{{"right", 80}, {"outside", 40}})) << report.summary;
  EXPECT_EQ(report.summary.at("missed").at("no_request"), 40) << report.summary;
}

// A function that hands over is an event before it does, and one that takes over behind it.
TEST(Causes, OfFunctionsThatHandOverThemselves) {
  const HandOffs vocabulary;
  const Traced traced = trace_causes(
      "handoffs",
      "from j in entry(\"handoffs!run_job\") join s in MostRecent(entry(\"handoffs!submit\")) on s "
      "-> j select new { name = s.arg0 == j.arg0 ? \"right\" : \"wrong\", calls = count() }",
      vocabulary.arguments());
  EXPECT_EQ(traced.counted, (Numbers{{"right", traced.truth.at("work")}}));
}

TEST(Causes, OfTwoPatternsWithAPlaceInCommonAreRefused) {
  Victim victim("causes");
  const Report report = run_clew(
      {"run", "-p", std::to_string(victim.pid()), "--json",
       "from w in entry(\"causes!work*\") join m in entry(\"causes!work\") on m -> w select "
       "count()"});
  EXPECT_EQ(report.status, 1);
  EXPECT_NE(report.error.find("both have 'work'"), std::string::npos) << report.error;
}

// A handler that hands over while a probe runs is missed; that is never taken for another request.
TEST(Causes, AreNeverWrongWhereHandlersHandOver) {
  Victim victim("causes");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      "from w in entry(\"causes!work_elsewhere\") join r in First(entry(\"causes!receive\")) on r "
      "-> w select new { name = r.arg0 == w.arg0 ? \"right\" : \"wrong\", calls = count() }");
  EXPECT_EQ(victim.ask("signals 3000").at("signals"), 3000);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  const Numbers counted = report.calls();
  EXPECT_FALSE(counted.contains("wrong")) << report.summary;
  EXPECT_TRUE(report.lost() > 0 || counted == (Numbers{{"right", 3000}})) << report.summary;
}

// More events than the rings hold: what is joined is right, and what is not is counted.
TEST(Causes, AreNeverWrongWhereEventsAreLost) {
  Victim victim("causes");
  Tracer tracer = Tracer::attach(victim.pid(), by_request("causes"));
  const Numbers before = victim.counts();
  victim.run(20'000);
  const Numbers truth = difference(before, victim.counts());
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  const Numbers counted = report.calls();
  EXPECT_FALSE(counted.contains("wrong")) << report.summary;
  const uint64_t right = counted.contains("right") ? counted.at("right") : 0;
  EXPECT_TRUE(right == truth.at("work") || report.lost() > 0) << report.summary;
}

}  // namespace
}  // namespace clew::live
