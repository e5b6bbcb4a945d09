// SPDX-License-Identifier: Apache-2.0
// Pictures of a request that was made up. tests/golden/graph has what JSON and Graphviz's text are
// of it; with CLEW_GOLDEN_UPDATE=1 in the environment they are written instead of compared.
#include "output/request_graph.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace clew::output {
namespace {

namespace fs = std::filesystem;
using aggregate::ColumnType;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

GraphValue number(const std::string& name, int64_t value) {
  return {.column = {.name = name, .type = ColumnType::Integer}, .value = value};
}

GraphValue text(const std::string& name, const std::string& value) {
  return {.column = {.name = name, .type = ColumnType::String}, .value = value};
}

// A shop's request that a worker goes on with, and a child process.
RequestGraph shop() {
  RequestGraph graph;
  graph.query = "from w in entry(\"shop!work\")\n  join r in First(shop.request) on r -> w";
  graph.host = "vega";
  graph.requests = 9;
  graph.with_rows = 7;
  graph.over = 6;
  graph.number = 4;
  graph.is_over = true;
  graph.begin_ns = 1'700'000'000'000'000'000;
  graph.duration_ns = 2'500'000;
  graph.begun_by = "shop.request";
  graph.rows = 2;
  graph.lanes = {{.pid = 17, .tid = 17, .process = "shop", .thread = "shop"},
                 {.pid = 17, .tid = 18, .process = "shop", .thread = "worker"},
                 {.pid = 30, .tid = 30}};
  graph.segments = {{.lane = 0, .begin_ns = 0, .end_ns = 400'000, .left_ns = 450'000},
                    {.lane = 1, .begin_ns = 1'000'000, .end_ns = 1'800'000, .left_ns = 1'900'000},
                    {.lane = 2, .begin_ns = 1'500'000, .end_ns = 2'500'000},
                    {.lane = 1, .begin_ns = 1'800'000, .end_ns = 1'800'000}};
  graph.events = {
      {.segment = 0,
       .ns = 0,
       .source = "shop.request",
       .is_named = true,
       .function = "handle",
       .values = {text("line", "GET /tea HTTP/1.1\r\nHost: shop.example.org"),
                  text("str((void*)(*(uint64_t*)((uint64_t)r.arg0 + 16)), 24)", "green")}},
      {.segment = 1,
       .ns = 1'200'000,
       .source = "entry(\"shop!work\")",
       .function = "work",
       .values = {number("item", 3), text("name", "tea")},
       .rows = 1},
      {.segment = 2, .ns = 2'500'000, .source = "entry(\"shop!work\")", .rows = 1}};
  graph.edges = {{.from = 0,
                  .to = 1,
                  .from_ns = 400'000,
                  .to_ns = 1'000'000,
                  .how = "recipe",
                  .put = "shop.submit",
                  .take = "shop.run"},
                 {.from = 1,
                  .to = 2,
                  .from_ns = 1'500'000,
                  .to_ns = 1'500'000,
                  .how = "sound",
                  .take = "tracepoint(\"task:task_newtask\")"},
                 {.from = 1, .to = 3, .from_ns = 1'800'000, .to_ns = 1'800'000},
                 {.from = 0,
                  .to = 3,
                  .from_ns = 300'000,
                  .to_ns = 1'800'000,
                  .how = "heuristic",
                  .put = "shop.submit",
                  .take = "shop.wait"}};
  graph.not_taken = 1;
  return graph;
}

// With a name that tries to get out of where it stands, everywhere.
RequestGraph hostile(const std::string& name) {
  RequestGraph graph = shop();
  graph.query = name;
  graph.host = name;
  graph.begun_by = name;
  for (GraphLane& lane : graph.lanes) {
    lane.process = name;
    lane.thread = name;
  }
  for (GraphEvent& event : graph.events) {
    event.source = name;
    event.function = name;
    event.values = {text(name, name)};
  }
  for (GraphEdge& edge : graph.edges) {
    edge.put = name;
    edge.take = name;
  }
  return graph;
}

std::string all_bytes() {
  std::string bytes =
      "</title><script>alert(1)</script>\"]; evil [label=\"\\\" ]]> --> \xef\xbf\xbe";
  for (int byte = 0; byte < 256; ++byte)
    bytes += static_cast<char>(byte);
  return bytes + "\\";
}

void expect_golden(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(CLEW_SOURCE_DIR) / "tests/golden/graph" / name;
  if (std::getenv("CLEW_GOLDEN_UPDATE") != nullptr) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string expected{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, expected) << name;
}

// Whether a command that reads it says that it is well.
bool is_read_by(const std::string& command, const std::string& text) {
  FILE* const reader = popen(command.c_str(), "w");
  if (reader == nullptr) return false;
  const bool is_written = fwrite(text.data(), 1, text.size(), reader) == text.size();
  return pclose(reader) == 0 && is_written;
}

bool is_xml(const std::string& text) {
  return is_read_by("python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.stdin.buffer)'",
                    text);
}

TEST(RequestGraph, IsJson) {
  expect_golden("shop.json", graph_json(shop()));
}

TEST(RequestGraph, IsTextForGraphviz) {
  expect_golden("shop.dot", graph_dot(shop()));
}

TEST(RequestGraph, SaysWhatItIsOf) {
  EXPECT_EQ(describe(shop()),
            "request 4, 2.50 ms: the slowest of 6 that gave the answer a row and were over, of 9 "
            "requests");
  RequestGraph open = shop();
  open.is_over = false;
  open.over = 0;
  open.choice = GraphChoice::First;
  EXPECT_EQ(describe(open),
            "request 4, 2.50 ms: the first of 7 that gave the answer a row and were not yet over, "
            "of 9 requests");
  EXPECT_THAT(left_out(shop()), testing::ElementsAre("1 hand-over was taken by nobody"));
}

TEST(RequestGraph, IsAsItsFileIsNamed) {
  EXPECT_EQ(*graph_writer_of("a.json"), &graph_json);
  EXPECT_EQ(*graph_writer_of("/tmp/a.b/c.dot"), &graph_dot);
  EXPECT_EQ(*graph_writer_of("x.svg"), &graph_svg);
  for (const char* const name : {"", "a", "a.svgz", ".svg", "a/.json", "json", "a.json/b", "-"}) {
    const auto writer = graph_writer_of(name);
    ASSERT_FALSE(writer.has_value()) << name;
    EXPECT_THAT(writer.error().message, HasSubstr(".json, .dot or .svg"));
  }
}

TEST(RequestGraph, IsADrawingWithALineForEachThread) {
  const std::string svg = graph_svg(shop());
  EXPECT_TRUE(is_xml(svg));
  EXPECT_THAT(svg, AllOf(HasSubstr(">shop 17</text>"), HasSubstr(">worker 18</text>"),
                         HasSubstr(">process 30</text>"), HasSubstr(">thread 30</text>"),
                         HasSubstr(">work item=3 name=tea</text>"),
                         HasSubstr("recipe, 600 us\nshop.submit -&gt; shop.run</title>"),
                         HasSubstr("prefers-color-scheme: dark"), HasSubstr("of 9 requests"),
                         HasSubstr("1 hand-over was taken by nobody")));
  // The worker is under the other thread, and takes what was handed over later.
  const std::regex path("d=\"M([0-9.]+) ([0-9.]+)C.* ([0-9.]+) ([0-9.]+)\" stroke=\"#a860d8\"");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(svg, found, path));
  EXPECT_NEAR(std::stod(found[1]), 200 + 980 * 0.4 / 2.5, 0.1);
  EXPECT_NEAR(std::stod(found[3]), 200 + 980 * 1.0 / 2.5, 0.1);
  EXPECT_LT(std::stod(found[2]), std::stod(found[4]));
}

TEST(RequestGraph, LetsNoNameOutOfItsPlace) {
  const RequestGraph graph = hostile(all_bytes());
  const std::string svg = graph_svg(graph);
  EXPECT_TRUE(is_xml(svg));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  const auto json = nlohmann::json::parse(graph_json(graph));
  EXPECT_EQ(json.at("threads").size(), 3U);
  EXPECT_TRUE(json.at("query").contains("hex"));
  // Of each line only what stands in quotes is from outside.
  const std::string dot = graph_dot(graph);
  const std::regex quoted(R"re("([^"\\]|\\[^\n])*")re");
  const std::string bare = std::regex_replace(dot, quoted, "T");
  EXPECT_THAT(bare, Not(HasSubstr("evil")));
  EXPECT_THAT(bare, Not(HasSubstr("\"")));
  EXPECT_THAT(bare, HasSubstr("s0 [label=T];"));
  if (std::system("command -v dot >/dev/null") != 0)
    GTEST_SKIP() << "NOT TESTED: Graphviz is not installed";
  EXPECT_TRUE(is_read_by("dot -Tcanon >/dev/null", dot));
  EXPECT_TRUE(is_read_by("dot -Tsvg >/dev/null", graph_dot(shop())));
}

TEST(RequestGraph, OfNothingSaysSo) {
  RequestGraph none;
  none.query = "from …";
  none.requests = 3;
  const auto json = nlohmann::json::parse(graph_json(none));
  EXPECT_TRUE(json.at("request").is_null());
  EXPECT_EQ(json.at("chosen").at("requests"), 3);
  EXPECT_THAT(graph_dot(none), HasSubstr("none of 3 requests gave the answer a row"));
  const std::string svg = graph_svg(none);
  EXPECT_TRUE(is_xml(svg));
  EXPECT_THAT(svg, HasSubstr("none of 3 requests gave the answer a row"));
}

// What was taken before it was handed over, and a request without any time.
TEST(RequestGraph, IsDrawnWhateverTheTimesAre) {
  RequestGraph graph = shop();
  graph.edges[0].from_ns = INT64_MAX;
  graph.events[0].ns = INT64_MIN;
  EXPECT_TRUE(is_xml(graph_svg(graph)));
  for (GraphSegment& segment : graph.segments)
    segment = {.lane = segment.lane};
  graph.edges.clear();
  EXPECT_TRUE(is_xml(graph_svg(graph)));
}

TEST(RequestGraph, OfManyThreadsHasALineForEach) {
  RequestGraph graph = shop();
  for (int64_t tid = 100; tid < 600; ++tid) {
    graph.lanes.push_back({.pid = 30, .tid = tid});
    graph.segments.push_back({.lane = graph.lanes.size() - 1, .begin_ns = tid, .end_ns = 2 * tid});
    for (int64_t i = 0; i < 10; ++i) {
      graph.events.push_back(
          {.segment = graph.segments.size() - 1, .ns = tid + i, .source = "shop.request"});
    }
  }
  const std::string svg = graph_svg(graph);
  EXPECT_TRUE(is_xml(svg));
  EXPECT_THAT(svg, HasSubstr(">thread 599</text>"));
}

}  // namespace
}  // namespace clew::output
