// SPDX-License-Identifier: Apache-2.0
// The queries of the Pivot Tracing paper (sections 2 and 3), and the execution of its figure 3,
// with rows that were worked out by hand.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "answer/join_scene.h"

namespace clew::answer {
namespace {

namespace fs = std::filesystem;

const fs::path kGoldens = fs::path(CLEW_SOURCE_DIR) / "tests/golden/query";

// --- figure 3 of the paper -----------------------------------------------------------------------

// a1 and a2 happen before b2, b1 before c1 and c2, b2 before c2, and a3 before none of B.
void run_figure3(Scene& scene) {
  const auto at = [](int64_t time) { return Exports{{"time", time}}; };
  scene.begin(1);
  scene.branch(1, 2);
  scene.hit(1, "A", at(1));  // a1
  scene.branch(1, 3);
  scene.hit(2, "B", at(11));  // b1
  scene.put(2, 5);
  scene.hit(2, "C", at(21));  // c1
  scene.hit(2, "A", at(3));   // a3
  scene.hit(3, "A", at(2));   // a2
  scene.put(3, 6);
  scene.join(1, 6);
  scene.hit(1, "B", at(12));  // b2
  scene.join(1, 5);
  scene.hit(1, "C", at(22));  // c2
}

TEST(PivotFigure3, A) {
  Scene scene("from a in A left join c in C on c -> a select a.time");
  run_figure3(scene);
  EXPECT_EQ(scene.lines(), (Strings{"1", "2", "3"}));
}

TEST(PivotFigure3, AJoinedB) {
  Scene scene("from b in B join a in A on a -> b select a.time, b.time");
  run_figure3(scene);
  EXPECT_EQ(scene.lines(), (Strings{"1 12", "2 12"}));
}

TEST(PivotFigure3, BJoinedC) {
  Scene scene("from c in C join b in B on b -> c select b.time, c.time");
  run_figure3(scene);
  EXPECT_EQ(scene.lines(), (Strings{"11 21", "11 22", "12 22"}));
}

TEST(PivotFigure3, AJoinedBJoinedC) {
  Scene scene(
      "from c in C join b in B on b -> c join a in A on a -> b select a.time, b.time, "
      "c.time");
  run_figure3(scene);
  EXPECT_EQ(scene.lines(), (Strings{"1 12 22", "2 12 22"}));
}

// --- the queries of the paper --------------------------------------------------------------------

std::string golden(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(kGoldens / (name + ".clew"), std::ios::binary).rdbuf();
  return text.str();
}

// Each query as the paper writes it, and as a chain.
class PivotQueries : public testing::TestWithParam<const char*> {
 protected:
  // A scene of the query in this spelling.
  [[nodiscard]] static Scene scene_of(const std::string& name) {
    return Scene(golden(name + GetParam()));
  }
};

INSTANTIATE_TEST_SUITE_P(Spelling, PivotQueries, testing::Values("", "_chain"),
                         [](const auto& spelling) {
                           return *spelling.param == 0 ? "Clauses" : "Chain";
                         });

TEST(PivotChains, AreTheSameQueries) {
  for (const std::string name : {"pivot_q2", "pivot_q7", "pivot_q8", "pivot_q9"})
    EXPECT_EQ(Scene(golden(name + "_chain")).printed(), Scene(golden(name)).printed());
}

TEST_P(PivotQueries, Q2SumsByTheFirstClient) {
  Scene scene = scene_of("pivot_q2");
  const auto protocol = [](const char* name) { return Exports{{"procName", std::string(name)}}; };
  const auto read = [](int64_t bytes) { return Exports{{"arg1", bytes}}; };
  scene.begin(1);
  scene.hit(1, "ClientService", protocol("hbase"));
  scene.branch(1, 2);
  scene.hit(2, "DataTransferProtocol", protocol("hdfs"));  // The second one does not count.
  scene.hit(2, "DataNodeMetrics.incrBytesRead", read(100));
  scene.hit(2, "DataNodeMetrics.incrBytesRead", read(30));
  scene.begin(3);
  scene.hit(3, "DataTransferProtocol", protocol("hdfs"));
  scene.hit(3, "DataNodeMetrics.incrBytesRead", read(7));
  scene.hit(4, "DataNodeMetrics.incrBytesRead", read(1000));  // Of no request.
  EXPECT_EQ(scene.lines(), (Strings{"hbase 130", "hdfs 7"}));
  EXPECT_EQ(scene.counts().graph.orphans, 1);
}

// Two clients of hosts A and B ask the name node, then read from data nodes.
void run_reads(Scene& scene) {
  const auto client = [&](int64_t tid, const char* host) {
    scene.begin(tid);
    scene.hit(tid, "StressTest.DoNextOp", {{"host", std::string(host)}});
    scene.branch(tid, tid + 10);  // The name node answers,
    scene.hit(tid + 10, "NN.GetBlockLocations", {{"arg1", tid}, {"arg2", tid + 100}});
    scene.put(tid + 10, tid);
    scene.join(tid, tid);  // and its answer comes back.
  };
  const auto data_node = [&](int64_t tid, const char* host) {
    scene.hit(tid, "DN.DataTransferProtocol", {{"host", std::string(host)}});
  };
  client(1, "A");
  data_node(1, "C");
  data_node(1, "A");
  client(2, "B");
  data_node(2, "C");
  data_node(2, "C");
  data_node(3, "C");  // Of no request.
}

Strings pivot_answer_of(const std::string& name) {
  Scene scene(golden(name));
  run_reads(scene);
  return scene.lines();
}

TEST(PivotPaper, Q4CountsByClientAndFile) {
  EXPECT_EQ(pivot_answer_of("pivot_q4"), (Strings{"A A.txt 1", "B B.txt 1"}));
}

TEST(PivotPaper, Q5CountsByClientAndReplicas) {
  EXPECT_EQ(pivot_answer_of("pivot_q5"), (Strings{"A 101 1", "B 102 1"}));
}

TEST(PivotPaper, Q6CountsByClientAndDataNode) {
  EXPECT_EQ(pivot_answer_of("pivot_q6"), (Strings{"A A 1", "A C 1", "B C 2"}));
}

// Reads that were not local, by what the name node had said.
TEST_P(PivotQueries, Q7JoinsTwiceAndFilters) {
  EXPECT_EQ(pivot_answer_of(std::string("pivot_q7") + GetParam()), (Strings{"C 101 1", "C 102 2"}));
}

void serve(Scene& scene, int64_t tid, int64_t begin, int64_t end) {
  scene.hit(tid, "ReceiveRequest", {{"time", begin}});
  scene.hit(tid, "SendResponse", {{"time", end}});
}

TEST_P(PivotQueries, Q8TakesTheMostRecentRequest) {
  Scene scene = scene_of("pivot_q8");
  scene.begin(1);
  serve(scene, 1, 100, 140);
  serve(scene, 1, 200, 207);
  scene.hit(2, "SendResponse", {{"time", int64_t{300}}});  // Without a request.
  EXPECT_EQ(scene.lines(), (Strings{"40", "7"}));
}

TEST_P(PivotQueries, Q9AveragesAnotherQueryByJob) {
  Scene scene = scene_of("pivot_q9");
  for (const int64_t job : {1, 2}) {
    scene.begin(job);
    serve(scene, job, 0, 10 * job);
    scene.branch(job, job + 5);
    serve(scene, job + 5, 0, 30 * job);
    scene.put(job + 5, job);
    scene.join(job, job);
    scene.hit(job, "JobComplete", {{"arg0", job}});
  }
  EXPECT_EQ(scene.lines(), (Strings{"1 20", "2 40"}));
}

// What every tracepoint of the paper exports (section 3), by the paper's names, of either stream.
TEST(PivotQueries, HaveTheExportsOfEveryTracepoint) {
  Scene scene(golden("pivot_exports"));
  const auto exports = [](int64_t pid, int64_t time, const char* host, const char* process,
                          const char* probe) {
    return Exports{{"pid", pid},
                   {"time", time},
                   {"host", std::string(host)},
                   {"procName", std::string(process)},
                   {"probe", std::string(probe)}};
  };
  scene.begin(1);
  scene.hit(1, "ReceiveRequest", exports(7, 100, "A", "client", "ReceiveRequest"));
  scene.branch(1, 2);
  scene.hit(2, "SendResponse", exports(8, 142, "B", "server", "SendResponse"));
  EXPECT_EQ(scene.lines(), (Strings{"A client ReceiveRequest 1 B SendResponse 42"}));
}

}  // namespace
}  // namespace clew::answer
