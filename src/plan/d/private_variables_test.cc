// SPDX-License-Identifier: Apache-2.0
#include "plan/d/private_variables.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "query/d/check_testing.h"

namespace clew::plan::d {
namespace {

constexpr std::string_view kEntry = "pid7:prog:f:entry ";
constexpr std::string_view kReturn = "pid7:prog:f:return ";

// Names of the private variables; those that are ticks in brackets.
std::string found_in(const std::string& text) {
  const auto script = query::d::compiled(text);
  EXPECT_TRUE(script.has_value()) << text << ": " << script.error().message;
  if (!script) return {};
  const PrivateVariables found = find_private(*script);
  std::string names;
  for (const auto& [variable, word] : found.words) {
    const std::string& name = script->variables[variable].name;
    names += found.times.contains(variable) ? "[" + name + "]" : name;
  }
  return names;
}

std::string at_return(std::string_view clause) {
  return fmt::format("{} {{ self->a = timestamp; }} {} {}", kEntry, kReturn, clause);
}

TEST(PrivateVariables, AreThoseThatOnlyProbesOfOnePlaceName) {
  const auto beside = [](std::string_view probe) {
    return found_in(
        fmt::format("{} {{ self->a = arg0; }} {} {{ trace(self->a); }}", kEntry, probe));
  };
  EXPECT_EQ(beside("pid7:prog:f:return"), "a");
  EXPECT_EQ(beside("pid8:prog:g*:return, pid7:libc.so.6:write:entry"), "a");
  for (const std::string_view shared :
       {"BEGIN", "END", "ERROR", "profile-97", "syscall::read:entry", "pid7::f:return",
        "pid7:lib*:f:return", "pid*:prog:f:return", "pid:prog:f:return", "prog7:prog:f:return",
        "pid7:prog:f:return, syscall::read:entry"}) {
    EXPECT_EQ(beside(shared), "") << shared;
  }
}

TEST(PrivateVariables, AreScalarsOfThreads) {
  const auto body = [](std::string_view text) {
    return found_in(fmt::format("{} {{ {} }}", kEntry, text));
  };
  EXPECT_EQ(body("self->a = arg0; self->b[1] = 2; self->c = \"x\"; x = 1; this->d = 2;"), "a");
  EXPECT_EQ(body("this->a = 1; a = 2;"), "");
}

TEST(PrivateVariables, AreTicksWhereOnlyDifferencesAreSeen) {
  for (const std::string_view clause :
       {"/self->a/ { @ = sum(timestamp - self->a); self->a = 0; }",
        "/arg0 && !self->a/ { trace(1); }",
        "/arg0 && self->a != 0/ { trace((timestamp - self->a) / 1000); @ = avg(timestamp - "
        "self->a); }",
        "/self->a/ { @ = sum(timestamp - self->a); self->a = timestamp; }",
        "/self->a/ { if (self->a && arg0) { trace(timestamp - self->a); } }"}) {
    EXPECT_EQ(found_in(at_return(clause)), "[a]") << clause;
  }
  EXPECT_EQ(found_in(at_return("/self->a/ { @ = sum(timestamp - self->a); }") +
                     "BEGIN { start = timestamp; } END { trace(timestamp - start); }"),
            "[a]");
}

TEST(PrivateVariables, AreTimesOfTheMachineWhereTheyAreSeen) {
  for (const std::string_view clause :
       {"{ trace(self->a); }", "{ trace(self->a - timestamp); }", "/self->a > 5/ { trace(1); }",
        "/self->a/ { trace(timestamp - self->a); trace(timestamp); }", "{ self->a += 1; }",
        "{ self->a = 5; }", "{ self->a = walltimestamp; }", "{ x = self->a = timestamp; }",
        "/self->a/ { trace(timestamp - (self->a + 1)); }", "{ @[self->a] = count(); }"}) {
    EXPECT_EQ(found_in(at_return(clause)), "a") << clause;
  }
  EXPECT_EQ(found_in("self int a; " + at_return("/self->a/ { trace(timestamp - self->a); }")), "a");
}

// Since when the machine runs, not the counter.
TEST(PrivateVariables, AreTimesOfTheMachineWhereTheyMayBeZero) {
  for (const std::string_view clause :
       {"{ trace(timestamp - self->a); }", "/!self->a/ { trace(timestamp - self->a); }",
        "/arg0 || self->a/ { trace(timestamp - self->a); }",
        "/self->a/ { self->a = 0; trace(timestamp - self->a); }"}) {
    EXPECT_EQ(found_in(at_return(clause)), "a") << clause;
  }
}

// Differences of two clocks do not add up.
TEST(PrivateVariables, AreAllOfOneClockInAScript) {
  const std::string both = fmt::format(
      "{} {{ self->a = timestamp; self->b = timestamp; }} {} /self->a/ {{ trace(timestamp - "
      "self->a); }}",
      kEntry, kReturn);
  EXPECT_EQ(found_in(both), "[a][b]");
  EXPECT_EQ(found_in(both + std::string(kReturn) + "{ trace(self->b); }"), "ab");
  EXPECT_EQ(found_in(both + "syscall::read:entry { self->c = timestamp; }"), "ab");
  EXPECT_EQ(found_in(both + std::string(kReturn) + "{ trace(vtimestamp); }"), "ab");
}

TEST(PrivateVariables, OfAScriptWithManyAreNone) {
  std::string text = fmt::format("{} {{ ", kEntry);
  for (size_t i = 0; i <= PrivateVariables::kWordsMax; ++i)
    text += fmt::format("self->v{} = 1; ", i);
  EXPECT_EQ(found_in(text + "}"), "");
}

}  // namespace
}  // namespace clew::plan::d
