// SPDX-License-Identifier: Apache-2.0
#include "recorder/python_calls.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "recorder/python_testing.h"

namespace clew::recorder {
namespace {

using namespace python_testing;

Scripts sound(PythonWorld& world) {
  Scripts scripts = world.read();
  EXPECT_TRUE(is_sound(scripts));
  return scripts;
}

std::string problem_of(const Scripts& scripts) {
  EXPECT_EQ(scripts.interpreters.size(), 1U);
  EXPECT_TRUE(scripts.stacks.empty());
  return scripts.interpreters.front().problem;
}

TEST(PythonCalls, AreThoseOfTheThread) {
  PythonWorld world;
  const uint64_t file = world.text("/opt/app.py");
  const uint64_t outer = world.code(world.text("<module>"), file, 1);
  const uint64_t inner = world.code(world.text("Box.open"), file, 20);
  const uint64_t first = world.frame(outer, 5, 0, true);
  const uint64_t second = world.frame(inner, 0, first, false);
  world.thread(kThread, world.frame(inner, 15, second, true));
  world.thread(12, first);   // Of nobody that is wanted,
  world.thread(kThread, 0);  // and one that runs nothing.
  const Scripts scripts = sound(world);
  ASSERT_EQ(scripts.interpreters.size(), 1U);
  EXPECT_EQ(scripts.interpreters[0],
            (Interpreter{.name = "Python 3.11.2", .problem = "", .loop = kEvaluates}));
  EXPECT_EQ(scripts.functions, (std::vector<ScriptFunction>{{"Box.open", "/opt/app.py"},
                                                            {"<module>", "/opt/app.py"}}));
  EXPECT_EQ(scripts.stacks,
            (std::vector<ScriptStack>{{.thread = kThread,
                                       .interpreter = 0,
                                       .calls = {{0, 27, true}, {0, 20, false}, {1, 3, true}},
                                       .is_whole = true}}));
}

TEST(PythonCalls, OneThatHasNotBegunIsInItsFirstLine) {
  PythonWorld world;
  const uint64_t code = world.code(world.text("f"), world.text("f.py"), 9);
  world.thread(kThread, world.frame(code, -1, 0, true));
  EXPECT_EQ(sound(world).stacks.at(0).calls, (std::vector<ScriptCall>{{0, 9, true}}));
}

TEST(PythonCalls, OfOtherVersionsAreNotKnown) {
  PythonWorld world;
  world.thread(kThread,
               world.frame(world.code(world.text("f"), world.text("f.py"), 9), 1, 0, true));
  world.put<uint64_t>(kVersionPlace, 0x030d01f0);
  const Scripts scripts = world.read();
  EXPECT_EQ(problem_of(scripts), "only those of Python 3.11 are");
  EXPECT_EQ(scripts.interpreters[0].name, "Python 3.13.1");
  const Scripts old = world.read({kCode, kRuntime, 0, kText, kBytes, kEvaluates});
  EXPECT_EQ(problem_of(old), "only those of Python 3.11 are");
  EXPECT_EQ(old.interpreters[0].name, "Python");
}

TEST(PythonCalls, OfAnotherLayoutAreNotKnown) {
  for (const uint64_t type : {kCode, kText, kBytes}) {
    PythonWorld world;
    world.put<uint64_t>(type + 32, 200);
    EXPECT_EQ(problem_of(world.read()), "its objects are not laid out as those of Python 3.11");
  }
  PythonWorld world;
  EXPECT_NE(problem_of(world.read({kCode, kRuntime, kVersionPlace, kText, 0, kEvaluates})), "");
}

TEST(PythonCalls, EndWhereAFrameHasNoSense) {
  for (const uint64_t field : {uint64_t{32}, uint64_t{56}}) {  // Its code, or the instruction.
    PythonWorld world;
    const uint64_t code = world.code(world.text("f"), world.text("f.py"), 9);
    const uint64_t outer = world.frame(code, 1, 0, true);
    world.thread(kThread, world.frame(code, 1, outer, true));
    world.put<uint64_t>(outer + field, kRuntime);
    const ScriptStack stack = sound(world).stacks.at(0);
    EXPECT_EQ(stack.calls.size(), 1U) << field;
    EXPECT_FALSE(stack.is_whole);
  }
}

TEST(PythonCalls, ThatLeadToThemselvesEnd) {
  PythonWorld world;
  const uint64_t code = world.code(world.text("f"), world.text("f.py"), 9);
  const uint64_t outer = world.frame(code, 1, 0, false);
  const uint64_t inner = world.frame(code, 1, outer, false);
  world.put(outer + 48, inner);
  world.thread(kThread, inner);
  const ScriptStack stack = sound(world).stacks.at(0);
  EXPECT_EQ(stack.calls.size(), 2U);
  EXPECT_FALSE(stack.is_whole);
}

TEST(PythonCalls, ListsThatLeadToThemselvesEnd) {
  PythonWorld world;
  const uint64_t code = world.code(world.text("f"), world.text("f.py"), 9);
  world.thread(kThread, world.frame(code, 1, 0, true));
  world.put(kFirstInterpreter, kFirstInterpreter);
  EXPECT_LE(sound(world).stacks.size(), 64U);
}

TEST(PythonCalls, OfADeepStackAreTheInnermostOnes) {
  PythonWorld world;
  const uint64_t code = world.code(world.text("f"), world.text("f.py"), 9);
  uint64_t frame = 0;
  for (size_t i = 0; i < kPythonCallsMax + 1; ++i)
    frame = world.frame(code, 1, frame, false);
  world.thread(kThread, frame);
  const ScriptStack stack = sound(world).stacks.at(0);
  EXPECT_EQ(stack.calls.size(), kPythonCallsMax);
  EXPECT_FALSE(stack.is_whole);
}

TEST(PythonCalls, TextsAreUtf8WithoutControlCharacters) {
  PythonWorld world;
  const uint64_t name = world.wide_text(U"h\u00e4\u20ac\U0001d4d0\x1b[2J\u009b\xd800");
  const uint64_t code = world.code(name, world.text(std::string(3000, 'x')), 9);
  world.thread(kThread, world.frame(code, 1, 0, true));
  const ScriptFunction function = sound(world).functions.at(0);
  EXPECT_EQ(function.name, "hä€𝓐\ufffd[2J\ufffd\ufffd");
  EXPECT_EQ(function.file, std::string(1024, 'x') + "…");
}

}  // namespace
}  // namespace clew::recorder
