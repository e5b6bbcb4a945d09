// SPDX-License-Identifier: Apache-2.0
// Memory that probes must not read by loads, in real processes: a file of a file system in user
// space, a stack of the program's own, and what a followed child maps. Where this machine's vDSO
// can have the load (tests/kernel_machine/loads/odd.sh), it is not used there.
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/server.h"
#include "live/slow_file.h"
#include "live/tracer.h"
#include "live/victim.h"
#include "target/odd_mappings.h"
#include "target/process.h"

namespace clew::live {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::Optional;

constexpr uint64_t kCalls = 50;
constexpr const char* kNoMoreLoads = "its memory is read by the kernel from now on";
constexpr const char* kValuesQuery =
    "from e in entry(\"pointers!take_node\") group by e.args.node->value "
    "select new { value = e.args.node->value, n = count() }";

bool has_loads() {
  const Child::End end = Child({.arguments = {CLEW_COMMAND, "doctor"}}).wait_for_end();
  return end.output.find("probes read memory by loads") != std::string::npos;
}

std::optional<std::string> odd_mapping_of(pid_t pid) {
  return target::find_odd_mapping(pid, target::read_memory_map(pid).value());
}

std::string read_to(Tracer& tracer, const std::string& part) {
  std::optional<std::string> line = tracer.child().read_error_line();
  while (line && line->find(part) == std::string::npos)
    line = tracer.child().read_error_line();
  return line.value_or("the tracer has ended");
}

uint64_t unreadable_of(const Report& report) {
  return report.summary.at("missed").value("unreadable", uint64_t{0});
}

void expect_told_to_load_nothing(const Report& report, const std::string& reason) {
  EXPECT_THAT(report.error, Not(HasSubstr("its memory is read by loads")));
  if (!has_loads()) return;  // Then that is the reason.
  EXPECT_THAT(report.error, HasSubstr("its memory is read by the kernel: " + reason));
}

// A file with a node, served by this process to itself and to what it starts.
class ServedNode {
 public:
  static constexpr uint64_t kValue = 77;
  static constexpr uint64_t kBytes = 4096;

  [[nodiscard]] bool is_there() const { return served_.is_there(); }
  [[nodiscard]] const std::string& path() const { return served_.path(); }
  [[nodiscard]] ChildOptions victim() const {
    return {.arguments = {victim_path("pointers")}, .environment = {"NODE_FILE=" + path()}};
  }

 private:
  static std::string write_node(const std::string& path) {
    std::string bytes(kBytes, '\0');
    bytes[0] = static_cast<char>(kValue);
    std::ofstream(path) << bytes;
    return path;
  }

  TemporaryFolder folder_;
  SlowFile served_{write_node(folder_.file("node")), kBytes};  // Nothing of it is held.
};

TEST(OddMemory, OfAFileThatAProcessServesIsReadByTheKernel) {
  const ServedNode node;
  if (!node.is_there()) GTEST_SKIP() << "NOT TESTED: no FUSE for us on this machine";
  Victim victim(node.victim(), Victim::Place::Started);
  EXPECT_EQ(odd_mapping_of(victim.pid()), std::nullopt);
  victim.ask("in_file 0");
  const std::string reason = fmt::format("it maps {}, of a file system of type fuse", node.path());
  EXPECT_THAT(odd_mapping_of(victim.pid()), Optional(reason));
  Tracer tracer = Tracer::attach(victim.pid(), kValuesQuery, {"-vv"});
  victim.ask(fmt::format("in_file {}", kCalls));
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_EQ(report.rows[0].at("value"), ServedNode::kValue);
  EXPECT_EQ(report.rows[0].at("n"), kCalls);
  expect_told_to_load_nothing(report, reason);
}

TEST(OddMemory, BelowAStackOfTheProgramsOwnIsReadByTheKernelAndStaysAsItIs) {
  Victim victim("pointers");
  victim.ask("below_own 0");
  Tracer tracer = Tracer::attach(victim.pid(), kValuesQuery, {"-vv"});
  EXPECT_EQ(victim.ask(fmt::format("below_own {}", kCalls)).at("grown"), 0U);
  const Report report = tracer.finish();
  EXPECT_EQ(unreadable_of(report), kCalls);
  expect_told_to_load_nothing(report, "it maps memory that grows down (MAP_GROWSDOWN)");
  EXPECT_EQ(victim.ask("load_below_own").at("grown"), 4096U);  // So it could have grown.
}

class LaterOddMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_loads()) GTEST_SKIP() << "NOT TESTED: probes read memory by the kernel here";
  }

  static Tracer attach(const Victim& victim) {
    return Tracer::attach(victim.pid(), kValuesQuery, {"-v", "--follow"});
  }
};

TEST_F(LaterOddMemory, OfAFileThatAProcessServesEndsLoads) {
  const ServedNode node;
  if (!node.is_there()) GTEST_SKIP() << "NOT TESTED: no FUSE for us on this machine";
  Victim victim(node.victim(), Victim::Place::Started);
  Tracer tracer = attach(victim);
  victim.ask("in_file 0");
  EXPECT_THAT(read_to(tracer, kNoMoreLoads), HasSubstr("of a file system of type fuse"));
  victim.ask(fmt::format("in_file {}", kCalls));
  const Report report = tracer.finish();
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_EQ(report.rows[0].at("n"), kCalls);
}

TEST_F(LaterOddMemory, BelowAStackOfTheProgramsOwnEndsLoads) {
  Victim victim("pointers");
  Tracer tracer = attach(victim);
  victim.ask("below_own 0");
  EXPECT_THAT(read_to(tracer, kNoMoreLoads), HasSubstr("MAP_GROWSDOWN"));
  EXPECT_EQ(victim.ask(fmt::format("below_own {}", kCalls)).at("grown"), 0U);
  EXPECT_EQ(unreadable_of(tracer.finish()), kCalls);
}

TEST_F(LaterOddMemory, OfAFollowedChildEndsLoads) {
  Victim victim("pointers");
  Tracer tracer = attach(victim);
  const uint64_t child = victim.ask("stray").at("child");
  EXPECT_THAT(read_to(tracer, kNoMoreLoads), HasSubstr(fmt::format("pid {}  ", child)));
  EXPECT_EQ(tracer.finish().status, 0);
}

}  // namespace
}  // namespace clew::live
