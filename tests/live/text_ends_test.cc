// SPDX-License-Identifier: Apache-2.0
// Texts and bytes that end at the last byte that can be read: with their NUL there they are whole;
// without one they are cut, or unreadable and counted. In probes inside processes, at uprobes and
// at system calls, of queries and of D.
#include <algorithm>
#include <array>
#include <csignal>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAreArray;
using Words = std::vector<std::string>;

// Around words, pages and the sizes that are asked for. The victim has three pages.
constexpr std::array<uint64_t, 18> kSizes = {0,   1,   3,   6,   7,    8,    62,   63,   64,
                                             254, 255, 256, 257, 4094, 4095, 4096, 5000, 8192};
// Programs of the kernel read as many bytes as a text may have with its NUL, probes inside
// processes one less: what is there then is a NUL in any case.
enum class Reader : uint8_t { Process, Kernel };

// As the victim makes it.
std::string ended_text(uint64_t size) {
  std::string text;
  for (uint64_t left = size; left > 0; --left)
    text += static_cast<char>('a' + left * left % 26);
  return text;
}

// What has room for so many bytes with a NUL; and whether a text without one can be read.
std::string shown_at_end(uint64_t size, uint64_t room) {
  return ended_text(size).substr(0, room - 1);
}

bool is_readable(uint64_t size, uint64_t room, Reader reader) {
  return reader == Reader::Process ? size >= room - 1 : size >= room;
}

// All texts that can be read of those that the victim gives, and how many cannot.
struct Truth {
  Words lines;
  uint64_t unreadable = 0;
};
Truth truth(uint64_t room, Reader reader) {
  Truth result;
  for (const uint64_t size : kSizes) {
    const std::string line = fmt::format("{} {}", size, shown_at_end(size, room));
    result.lines.push_back(line);
    if (is_readable(size, room, reader)) {
      result.lines.push_back(line);
    } else {
      ++result.unreadable;
    }
  }
  return result;
}

// Begins of the texts that have no NUL, by their sizes.
std::vector<uint64_t> give_all(Victim& victim) {
  std::vector<uint64_t> cut;
  for (const uint64_t size : kSizes) {
    EXPECT_EQ(victim.ask(fmt::format("whole {}", size)).count("text"), 1U);
    cut.push_back(victim.ask(fmt::format("cut {}", size)).at("text"));
  }
  return cut;
}

void open_all(Victim& victim) {
  for (const uint64_t size : kSizes) {
    victim.ask(fmt::format("opens_whole {}", size));
    victim.ask(fmt::format("opens_cut {}", size));
  }
}

// The victim goes on as it would.
void expect_unharmed(Victim& victim) {
  EXPECT_EQ(victim.run(100), untraced_result("edges", 100));
  expect_text_equals_file(victim.pid());
}

void expect_texts(const std::string& function, uint64_t room, Reader reader) {
  Victim victim("edges");
  Tracer tracer = Tracer::attach(
      victim.pid(),
      fmt::format("from e in entry(\"edges!{}\") select e.arg1 as size, str(e.arg0, {}) as text",
                  function, room));
  give_all(victim);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  Words lines;
  for (const nlohmann::json& row : report.rows)
    lines.push_back(
        fmt::format("{} {}", row.at("size").get<uint64_t>(), row.at("text").get<std::string>()));
  const Truth expected = truth(room, reader);
  EXPECT_THAT(lines, UnorderedElementsAreArray(expected.lines));
  EXPECT_EQ(report.unreadable(), expected.unreadable) << report.summary;
  EXPECT_EQ(report.summary.contains("uprobes"), reader == Reader::Kernel) << report.summary;
  expect_unharmed(victim);
}

TEST(TextsAtAnEnd, AreWholeOrUnreadableInProcesses) {
  for (const uint64_t room : {2, 8, 256, 4096})
    expect_texts("by_jump", room, Reader::Process);
}

TEST(TextsAtAnEnd, AreWholeOrUnreadableAtUprobes) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: uprobes need root";
  for (const uint64_t room : {2, 8, 256, 4096})
    expect_texts("by_uprobe", room, Reader::Kernel);
}

TEST(TextsAtAnEnd, AreWholeOrUnreadableAtSystemCalls) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: events of the kernel are root's";
  for (const uint64_t room : {2, 8, 256, 4096}) {
    Victim victim("edges");
    Tracer tracer = Tracer::attach(
        victim.pid(),
        fmt::format("from e in syscall(\"openat\") select str(e.filename, {}) as text", room));
    open_all(victim);
    const Report report = tracer.finish();
    ASSERT_EQ(report.status, 0) << report.error;
    Words texts;
    for (const nlohmann::json& row : report.rows)
      texts.push_back(row.at("text"));
    const Truth expected = truth(room, Reader::Kernel);
    Words wanted;
    for (const std::string& line : expected.lines)
      wanted.push_back(line.substr(line.find(' ') + 1));
    EXPECT_THAT(texts, UnorderedElementsAreArray(wanted));
    EXPECT_EQ(report.unreadable(), expected.unreadable) << report.summary;
    expect_unharmed(victim);
  }
}

// Of 64 bytes, as long as nothing else is said.
void expect_keys(const std::string& function, Reader reader) {
  constexpr uint64_t kRoom = 64;
  Victim victim("edges");
  Tracer tracer = Tracer::attach(
      victim.pid(), fmt::format("from e in entry(\"edges!{}\") group by str(e.arg0) as name "
                                "select name, count() as calls",
                                function));
  give_all(victim);
  const Report report = tracer.finish();
  ASSERT_EQ(report.status, 0) << report.error;
  Numbers wanted;
  for (const uint64_t size : kSizes)
    wanted[shown_at_end(size, kRoom)] += is_readable(size, kRoom, reader) ? 2 : 1;
  EXPECT_EQ(report.calls(), wanted);
  EXPECT_EQ(report.unreadable(), truth(kRoom, reader).unreadable) << report.summary;
}

TEST(TextsAtAnEnd, AreKeysInProcesses) {
  expect_keys("by_jump", Reader::Process);
}

TEST(TextsAtAnEnd, AreKeysAtUprobes) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: uprobes need root";
  expect_keys("by_uprobe", Reader::Kernel);
}

// A text that begins as the wanted one does, and then cannot be read, is neither equal nor other.
TEST(TextsAtAnEnd, AreComparedOrUnreadable) {
  for (const uint64_t size : {7, 8, 62, 255, 4095}) {
    Victim victim("edges");
    Tracer tracer = Tracer::attach(
        victim.pid(),
        fmt::format("from e in entry(\"edges!by_jump\") where str(e.arg0, 4096) == \"{}\" "
                    "select e.arg1 as size",
                    ended_text(std::min<uint64_t>(size, 255))));
    victim.ask(fmt::format("whole {}", size));
    victim.ask(fmt::format("cut {}", size));
    const Report report = tracer.finish();
    ASSERT_EQ(report.status, 0) << report.error;
    EXPECT_EQ(report.rows.size(), size <= 255 ? 1U : 0U) << size;
    EXPECT_EQ(report.unreadable(), size <= 255 ? 1U : 0U) << size << ": " << report.summary;
  }
}

// --- D -------------------------------------------------------------------------------------------

struct Script {
  Words lines;        // Without empty ones.
  std::string error;  // Of the tracer.
};

class Dtrace {
 public:
  Dtrace(Victim& victim, const std::string& text, const Words& flags)
      : command_({.arguments = arguments(victim, text, flags)}) {
    for (auto line = command_.read_line(); line != "armed"; line = command_.read_line()) {
      if (!line) break;  // How stable it is comes first.
    }
  }
  Script finish() {
    command_.signal(SIGINT);
    const Child::End end = command_.wait_for_end();
    EXPECT_EQ(end.status, 0) << end.error;
    Script result{.lines = {}, .error = end.error};
    std::istringstream lines(end.output);
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) result.lines.push_back(line);
    return result;
  }

 private:
  static Words arguments(Victim& victim, const std::string& text, const Words& flags) {
    Words all = {CLEW_COMMAND, "dtrace",
                 "-q",         "-v",
                 "-p",         std::to_string(victim.pid()),
                 "-n",         "BEGIN { printf(\"armed\\n\"); } " + text};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }
  Child command_;
};

struct Engine {
  const char* name;
  Reader reader;
  Words flags;
  std::string told;  // Which engine it was.
};

class DBytesAtAnEnd : public testing::TestWithParam<Engine> {
 public:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
  }
};

// A fault ends the clause, is told, and fires ERROR with the address: 1 is a bad address.
TEST_P(DBytesAtAnEnd, AreTextsThatAreWholeOrFaults) {
  constexpr uint64_t kRoom = 257;  // strsize, which does not count the NUL.
  Victim victim("edges");
  Dtrace dtrace(victim,
                "pid$target:edges:by_jump:entry { printf(\"%d %s\\n\", arg1, copyinstr(arg0)); } "
                "ERROR { printf(\"fault %d %d\\n\", arg4, arg5); }",
                GetParam().flags);
  const std::vector<uint64_t> cut = give_all(victim);
  const Script script = dtrace.finish();
  Truth expected = truth(kRoom, GetParam().reader);
  for (size_t i = 0; i < kSizes.size(); ++i)
    if (!is_readable(kSizes[i], kRoom, GetParam().reader))
      expected.lines.push_back(fmt::format("fault 1 {}", cut[i]));
  EXPECT_THAT(script.lines, UnorderedElementsAreArray(expected.lines)) << script.error;
  EXPECT_THAT(script.error, HasSubstr(GetParam().told));
  expect_unharmed(victim);
}

// As many bytes, with the NUL, as the second argument says.
TEST_P(DBytesAtAnEnd, AreTextsOfASize) {
  constexpr uint64_t kRoom = 7;
  Victim victim("edges");
  Dtrace dtrace(
      victim, "pid$target:edges:by_jump:entry { printf(\"%d %s\\n\", arg1, copyinstr(arg0, 7)); }",
      GetParam().flags);
  give_all(victim);
  const Script script = dtrace.finish();
  EXPECT_THAT(script.lines, UnorderedElementsAreArray(truth(kRoom, GetParam().reader).lines))
      << script.error;
  EXPECT_THAT(script.error, HasSubstr(GetParam().told));
}

uint64_t word_of(const std::string& bytes) {
  uint64_t word = 0;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&word));
  return word;
}

// Eight bytes are there, or none.
TEST_P(DBytesAtAnEnd, AreBytesThatAreThereOrFaults) {
  Victim victim("edges");
  Dtrace dtrace(victim,
                "pid$target:edges:by_jump:entry /arg1 < 9/ "
                "{ printf(\"%x\\n\", *(uint64_t *)copyin(arg0, 8)); } "
                "pid$target:edges:by_jump:entry /arg1 < 9/ "
                "{ printf(\"end %d\\n\", *(char *)copyin(arg0 + arg1, 1)); } "
                "ERROR { printf(\"fault %d %x\\n\", arg4, arg5); }",
                GetParam().flags);
  Words expected;
  for (uint64_t size = 0; size < 9; ++size) {
    for (const bool has_end : {true, false}) {
      const uint64_t text =
          victim.ask(fmt::format("{} {}", has_end ? "whole" : "cut", size)).at("text");
      const bool are_there = size + (has_end ? 1 : 0) >= 8;
      expected.push_back(are_there ? fmt::format("{:x}", word_of(ended_text(size).substr(0, 8)))
                                   : fmt::format("fault 1 {:x}", text));
      expected.push_back(has_end ? "end 0" : fmt::format("fault 1 {:x}", text + size));
    }
  }
  const Script script = dtrace.finish();
  EXPECT_THAT(script.lines, UnorderedElementsAreArray(expected)) << script.error;
  EXPECT_THAT(script.error, HasSubstr(GetParam().told));
  expect_unharmed(victim);
}

INSTANTIATE_TEST_SUITE_P(
    Texts, DBytesAtAnEnd,
    testing::Values(Engine{"inline", Reader::Process, {}, " probes inline"},
                    Engine{
                        "uprobes", Reader::Kernel, {"-x", "useruprobes"}, "all probes by uprobes"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(TextsAtAnEnd, AreWholeOrFaultsOfDAtSystemCalls) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED: D needs root";
  constexpr uint64_t kRoom = 257;
  Victim victim("edges");
  Dtrace dtrace(victim,
                "syscall::openat:entry /pid == $target/ { printf(\"<%s>\\n\", copyinstr(arg1)); } "
                "ERROR { printf(\"fault %d\\n\", arg4); }",
                {});
  open_all(victim);
  const Script script = dtrace.finish();
  const Truth expected = truth(kRoom, Reader::Kernel);
  Words wanted(expected.unreadable, "fault 1");
  for (const std::string& line : expected.lines)
    wanted.push_back(fmt::format("<{}>", line.substr(line.find(' ') + 1)));
  EXPECT_THAT(script.lines, UnorderedElementsAreArray(wanted)) << script.error;
  expect_unharmed(victim);
}

}  // namespace
}  // namespace clew::live
