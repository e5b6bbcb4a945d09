// SPDX-License-Identifier: Apache-2.0
// What is there when sessions have left: text that is not its files', and memory of a thread that
// rests inside of a probe. The commands name it, and take out what is ours.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Bytes = std::vector<uint8_t>;

// A process's memory, as somebody else who may trace it sees it.
class Memory {
 public:
  explicit Memory(pid_t pid)
      : pid_(pid),
        file_(open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDWR | O_CLOEXEC)) {}

  [[nodiscard]] Bytes read(uint64_t address, size_t size) const {
    Bytes bytes(size);
    EXPECT_EQ(pread(file_.get(), bytes.data(), size, static_cast<off_t>(address)),
              static_cast<ssize_t>(size));
    return bytes;
  }
  void write(uint64_t address, const Bytes& bytes) const {
    EXPECT_EQ(pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(address)),
              static_cast<ssize_t>(bytes.size()));
  }
  // A long nop between functions of the C library.
  [[nodiscard]] uint64_t padding() const {
    std::ifstream maps("/proc/" + std::to_string(pid_) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("libc.so.6") == std::string::npos || line.find(" r-xp ") == std::string::npos)
        continue;
      uint64_t begin = 0;
      uint64_t end = 0;
      char dash = 0;
      std::istringstream(line) >> std::hex >> begin >> dash >> end;
      const Bytes text = read(begin, end - begin);
      const Bytes nop = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};
      const auto at = std::search(text.begin(), text.end(), nop.begin(), nop.end());
      EXPECT_NE(at, text.end());
      return begin + static_cast<uint64_t>(at - text.begin());
    }
    ADD_FAILURE() << "no C library";
    return 0;
  }

 private:
  pid_t pid_;
  FileDescriptor file_;
};

// What a session left that is gone with its arena: a jump of 1 GiB backwards, to nothing.
void leave_jump(const Memory& memory, uint64_t address) {
  memory.write(address, {0xe9, 0, 0, 0, 0xc0});
}

// The jump in a function that is traced.
uint64_t jump_in(const Memory& memory, uint64_t function) {
  const Bytes text = memory.read(function, 16);
  const auto at = std::find(text.begin(), text.end(), 0xe9);
  EXPECT_NE(at, text.end());
  return function + static_cast<uint64_t>(at - text.begin());
}

TEST(LeftText, AJumpWithoutAnArenaIsListedAndTakenOut) {
  Victim victim("forms_pie");
  const uint64_t expected = untraced_result("forms_pie", 100);
  const std::string pid = std::to_string(victim.pid());
  const Memory memory(victim.pid());
  EXPECT_THAT(clew({"ps"}).output, Not(HasSubstr("clew detach " + pid + "\n")));
  leave_jump(memory, memory.padding());
  EXPECT_THAT(clew({"ps"}).output, HasSubstr("residue: clew detach " + pid));
  EXPECT_THAT(clew({"doctor", "-p", pid}).output, HasSubstr("residue"));
  const Child::End end = clew({"detach", pid});
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output, HasSubstr("probes removed"));
  expect_text_equals_file(victim.pid());
  EXPECT_THAT(clew({"ps"}).output, Not(HasSubstr("clew detach " + pid + "\n")));
  EXPECT_EQ(victim.run(100), expected);
}

// Text is written to when that is asked for, and not because of what it looks like.
TEST(LeftText, OfAnEarlierSessionIsRefusedUntilItIsTakenOut) {
  Victim victim("forms_pie");
  const uint64_t expected = untraced_result("forms_pie", 100);
  const std::string pid = std::to_string(victim.pid());
  const Memory memory(victim.pid());
  leave_jump(memory, memory.padding());
  const Report refused = run_clew({"run", "-p", pid, entries_of("forms_pie!form_*")});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.error, AllOf(HasSubstr("clew detach " + pid), HasSubstr("[residue]")));
  EXPECT_EQ(clew({"detach", pid}).status, 0);
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("forms_pie!form_*"));
  EXPECT_EQ(victim.run(100), expected);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 0) << report.error;
  expect_text_equals_file(victim.pid());
}

TEST(LeftText, OfSomebodyElseWhereAQueryWasIsAnErrorWithItsPlace) {
  Victim victim("forms_pie");
  const uint64_t function = victim.ask("addresses 0").at("form_plain");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("forms_pie!form_*"));
  const Memory memory(victim.pid());
  memory.write(jump_in(memory, function), {0xe8, 1, 2, 3, 4});
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, AllOf(HasSubstr("is not its files'"), HasSubstr("form_plain"),
                                  HasSubstr("e8 01 02 03 04, not ")));
  EXPECT_FALSE(report.summary.is_null()) << "the answer comes all the same";
}

TEST(LeftText, OfSomebodyElseWhereAScriptWasIsAnErrorWithItsPlace) {
  if (geteuid() != 0) GTEST_SKIP() << "D needs root";
  Victim victim("forms_pie");
  const uint64_t function = victim.ask("addresses 0").at("form_plain");
  Child tracer(
      {.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", std::to_string(victim.pid()), "-n",
                     "BEGIN { printf(\"armed\\n\"); } "
                     "pid$target:forms_pie:form_plain:entry { @ = count(); }"}});
  ASSERT_EQ(tracer.read_line(), "armed");
  const Memory memory(victim.pid());
  memory.write(jump_in(memory, function), {0xe8, 1, 2, 3, 4});
  tracer.signal(SIGINT);
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, AllOf(HasSubstr("is not its files'"), HasSubstr("form_plain")));
}

// The query's probe is of more instructions than a movable thread can stand at.
Tracer trace_interrupted(const Victim& victim) {
  return Tracer::attach(victim.pid(), R"(from e in return("resting!interrupted")
                                         select calls = count(), longest = max(e.elapsed))");
}

// Nobody can say when it goes on.
TEST(LeftText, MemoryThatACoroutineRestsInIsAnErrorUntilItHasGone) {
  Victim victim("resting");
  const std::string pid = std::to_string(victim.pid());
  Tracer tracer = trace_interrupted(victim);
  ASSERT_EQ(victim.ask("rest 6").at("rests"), 1U);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, AllOf(HasSubstr("error: process " + pid + " keeps a residue: "),
                                  HasSubstr("the probe at "), HasSubstr("see clew ps")));
  EXPECT_FALSE(report.summary.is_null()) << "the answer comes all the same";
  expect_text_equals_file(victim.pid());
  EXPECT_THAT(clew({"ps"}).output, HasSubstr("residue: clew detach " + pid));
  EXPECT_EQ(clew({"detach", pid}).status, 1);
  EXPECT_EQ(victim.ask("resume").at("result"), 1003U);
  EXPECT_EQ(clew({"detach", pid}).status, 0);
  EXPECT_EQ(victim.run(100), untraced_result("resting", 100));
}

TEST(LeftText, MemoryThatACoroutineRestsInAfterAScriptIsAnError) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
  Victim victim("resting");
  const std::string pid = std::to_string(victim.pid());
  Child tracer({.arguments = {CLEW_COMMAND, "dtrace", "-q", "-p", pid, "-n",
                              "BEGIN { printf(\"armed\\n\"); } "
                              "pid$target:resting:interrupted:entry { @ = sum(arg0); }"}});
  ASSERT_EQ(tracer.read_line(), "armed");
  ASSERT_EQ(victim.ask("rest 6").at("rests"), 1U);
  tracer.signal(SIGINT);
  const Child::End end = tracer.wait_for_end();
  EXPECT_EQ(end.status, 1);
  EXPECT_THAT(end.error, HasSubstr("process " + pid + " keeps a residue: "));
  EXPECT_EQ(victim.ask("resume").at("result"), 1003U);
  EXPECT_EQ(clew({"detach", pid}).status, 0);
}

// The child has the coroutine in its memory, too, and goes on in it when its parent has been left.
TEST(LeftText, MemoryThatAChildKeepsIsAnErrorWithItsName) {
  Victim victim("resting");
  const std::string pid = std::to_string(victim.pid());
  Tracer tracer = trace_interrupted(victim);
  ASSERT_EQ(victim.ask("rest 6").at("rests"), 1U);
  const std::string child = std::to_string(victim.ask("fork").at("child"));
  EXPECT_EQ(victim.ask("resume").at("result"), 1003U);
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error, AllOf(HasSubstr("process " + child + ", which process " + pid +
                                            " forked, keeps probes: "),
                                  HasSubstr("see clew ps"), Not(HasSubstr("keeps a residue"))));
  expect_text_equals_file(victim.pid());
  EXPECT_EQ(victim.ask("end_child 1").at("status"), 0U);
  EXPECT_EQ(victim.run(100), untraced_result("resting", 100));
}

TEST(LeftText, OfSomebodyElseInAChildIsAnErrorWithItsNameAndPlace) {
  Victim victim("resting");
  const uint64_t function = victim.ask("address").at("address");
  Tracer tracer = Tracer::attach(victim.pid(), entries_of("resting!interrupted"));
  const auto child = static_cast<pid_t>(victim.ask("fork").at("child"));
  const Memory memory(child);
  const uint64_t jump = jump_in(memory, function);
  const Bytes before = memory.read(jump, 5);
  memory.write(jump, {0xe8, 0x11, 0x12, 0x13, 0x14});
  const Report report = tracer.finish();
  EXPECT_EQ(report.status, 1);
  EXPECT_THAT(report.error,
              AllOf(HasSubstr("process " + std::to_string(child) + ", which process " +
                              std::to_string(victim.pid()) + " forked, keeps probes: "),
                    HasSubstr("interrupted"), HasSubstr("e8 11 12 13 14, not ")));
  expect_text_equals_file(victim.pid());
  EXPECT_EQ(victim.run(100), untraced_result("resting", 100));
}

TEST(LeftText, TrapsOfOthersAreNamedAndStay) {
  Victim victim("forms_pie");
  const uint64_t function = victim.ask("addresses 0").at("form_plain");
  const Memory memory(victim.pid());
  const Bytes before = memory.read(function, 1);
  memory.write(function, {0xcc});
  const Child::End end = clew({"detach", std::to_string(victim.pid())});
  EXPECT_EQ(end.status, 0) << end.error;
  EXPECT_THAT(end.output,
              AllOf(HasSubstr("uprobes or breakpoints of others"), HasSubstr("form_plain")));
  EXPECT_EQ(memory.read(function, 1), Bytes{0xcc});
  memory.write(function, before);
}

}  // namespace
}  // namespace clew::live
