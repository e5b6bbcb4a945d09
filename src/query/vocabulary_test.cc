// SPDX-License-Identifier: Apache-2.0
#include "query/vocabulary.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/parse.h"
#include "query/print.h"

namespace clew::query {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(const std::string& text) {
  Vocabulary vocabulary;
  const Expected<void> loaded = vocabulary.load_text("v.toml", text);
  return loaded ? "" : loaded.error().message;
}

std::string tracepoint(const std::string& rest) {
  return "[[tracepoint]]\nname = \"a.b\"\n" + rest;
}

TEST(Vocabulary, ADefinitionHasPlacesAndExports) {
  Vocabulary vocabulary;
  const Expected<void> loaded = vocabulary.load_text("v.toml", tracepoint(R"(
doc = "what it is"
function = ["m!f", "m!g"]
at = "return"
exports = { size = "entry.arg0", result = "(int)retval" }
)"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const TracepointDefinition* found = vocabulary.find("A.B");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->doc, "what it is");
  ASSERT_EQ(found->places.size(), 2U);
  EXPECT_EQ(print(found->places[1].source), "return(\"m!g\")");
  ASSERT_EQ(found->places[1].exports.size(), 2U);
}

TEST(Vocabulary, ATracepointCanBeAtASystemCall) {
  Vocabulary vocabulary;
  const Expected<void> loaded =
      vocabulary.load_text("v.toml", tracepoint("syscall = [\"read\", \"pread64\"]\nat = "
                                                "\"return\"\nexports = { n = \"retval\" }\n") +
                                         tracepoint("syscall = \"write\"\nexports = { n = "
                                                    "\"count\" }\n"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  const TracepointDefinition* found = vocabulary.find("a.b");
  ASSERT_NE(found, nullptr);
  ASSERT_EQ(found->places.size(), 3U);
  EXPECT_EQ(print(found->places[1].source), "syscall_return(\"pread64\")");
  EXPECT_EQ(print(found->places[2].source), "syscall(\"write\")");
}

TEST(Vocabulary, ASystemCallIsInNoProgram) {
  EXPECT_THAT(error_of(tracepoint("syscall = \"read\"\nfunction = \"m!f\"\n")),
              HasSubstr("v.toml:4:12: error: a tracepoint is at a system call or in a program"));
  EXPECT_THAT(error_of(tracepoint("syscall = \"read\"\nat = \"exception\"\n")),
              HasSubstr("v.toml:4:6: error: 'at' of a system call is entry or return"));
  EXPECT_THAT(error_of(tracepoint("syscall = []\n")), HasSubstr("'syscall' lists from 1 to"));
}

TEST(Vocabulary, ARepeatedNameIsOneMorePlace) {
  Vocabulary vocabulary;
  const Expected<void> loaded = vocabulary.load_text(
      "v.toml", tracepoint("function = \"m!f\"\n") + tracepoint("line = \"a.c:3\"\n"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(vocabulary.tracepoints().size(), 1U);
  EXPECT_EQ(print(vocabulary.tracepoints()[0].places[1].source), "line(\"a.c:3\")");
}

TEST(Vocabulary, AnErrorInAnExpressionHasItsPlaceInTheFile) {
  EXPECT_EQ(error_of(tracepoint("function = \"m!f\"\nexports = { size = \"arg0 + * 3 +\" }\n")),
            "v.toml:4:33: error: expected an expression, found the end of the text\n"
            "exports = { size = \"arg0 + * 3 +\" }\n"
            "                                ^");
  // With escapes the value does not stand in the file as it is; then the line must do.
  EXPECT_THAT(error_of(tracepoint("function = \"m!f\"\nexports = { size = \"arg0 +\\t\" }\n")),
              StartsWith("v.toml:4:1:7: error: expected an expression"));
}

TEST(Vocabulary, EveryMistakeHasAMessageWithAPlace) {
  EXPECT_THAT(error_of("[[tracepoint\n"), StartsWith("v.toml:1:13: error: "));
  EXPECT_THAT(error_of("[("), StartsWith("v.toml:1:2: error: "));
  EXPECT_THAT(error_of("[other]\n"), HasSubstr("unknown table 'other'"));
  EXPECT_THAT(error_of("tracepoint = 3\n"), HasSubstr("expected [[tracepoint]]"));
  EXPECT_THAT(error_of("tracepoint = [3]\n"), HasSubstr("expected a table"));
  EXPECT_THAT(error_of("[[tracepoint]]\nfunction = \"f\"\n"), HasSubstr("needs 'name'"));
  EXPECT_THAT(error_of("[[tracepoint]]\nname = 3\n"),
              HasSubstr("'name' must be a non-empty string"));
  EXPECT_THAT(error_of("[[tracepoint]]\nname = \"a b\"\nfunction = \"f\"\n"),
              HasSubstr("v.toml:2:8: error: 'a b' is not a dotted name"));
  EXPECT_THAT(error_of("[[tracepoint]]\nname = \"a.\"\nfunction = \"f\"\n"),
              HasSubstr("not a dotted name"));
  EXPECT_THAT(error_of(tracepoint("")), HasSubstr("needs 'function'"));
  EXPECT_THAT(error_of(tracepoint("at = \"line\"\nfunction = \"f\"\n")), HasSubstr("needs 'line'"));
  EXPECT_THAT(error_of(tracepoint("funtcion = \"f\"\n")), HasSubstr("did you mean 'function'?"));
  EXPECT_THAT(error_of(tracepoint("function = 3\n")),
              HasSubstr("'function' must be a non-empty string"));
  EXPECT_THAT(error_of(tracepoint("function = []\n")), HasSubstr("lists from 1 to"));
  EXPECT_THAT(error_of(tracepoint("function = \"m!\"\n")), HasSubstr("'!' stands between"));
  EXPECT_THAT(error_of(tracepoint("line = \"a.c\"\n")), HasSubstr("expected a file and a line"));
  EXPECT_THAT(error_of(tracepoint("function = \"f\"\nat = \"retrun\"\n")),
              HasSubstr("did you mean 'return'?"));
  EXPECT_THAT(error_of(tracepoint("function = \"f\"\nexports = 3\n")),
              HasSubstr("'exports' is a table"));
  EXPECT_THAT(error_of(tracepoint("function = \"f\"\nexports = { x = 3 }\n")),
              HasSubstr("expression is a string"));
  EXPECT_THAT(error_of(tracepoint("function = \"f\"\nexports = { x = \"arg0\" }\n") +
                       tracepoint("function = \"g\"\n")),
              HasSubstr("must export the same names"));
}

TEST(Vocabulary, PlacesAndExportsAreBounded) {
  std::string exports;
  for (int i = 0; i < 65; ++i) {
    exports += (i == 0 ? "x" : ", x") + std::to_string(i) + " = \"arg0\"";
  }
  EXPECT_THAT(error_of(tracepoint("function = \"f\"\nexports = { " + exports + " }\n")),
              HasSubstr("at most 64 exports"));
  std::string places;
  for (int i = 0; i < 65; ++i) {
    places += tracepoint("function = \"f\"\n");
  }
  EXPECT_THAT(error_of(places), HasSubstr("at most 64 places"));
  EXPECT_THAT(error_of(tracepoint("function = \"f\"\nexports = { x = \"arg0 arg1\" }\n")),
              HasSubstr("expected an operator or the end, found 'arg1'"));
}

TEST(Vocabulary, ANameOfAnotherFileIsRefused) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.load_text("one.toml", tracepoint("function = \"f\"\n")));
  const Expected<void> loaded = vocabulary.load_text("two.toml", tracepoint("function = \"g\"\n"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().message,
            "two.toml: error: tracepoint 'a.b' is already defined in one.toml");
}

TEST(Vocabulary, TheSameDefinitionTwiceIsOne) {
  Vocabulary vocabulary;
  const std::string text = tracepoint("function = \"f\"\nexports = { x = \"arg0\" }\n");
  ASSERT_TRUE(vocabulary.load_text("one.toml", text));
  EXPECT_TRUE(vocabulary.load_text("./one.toml", text));
  EXPECT_EQ(vocabulary.tracepoints().size(), 1U);
  EXPECT_FALSE(vocabulary.load_text("two.toml", tracepoint("function = \"f\"\n")));
}

TEST(Vocabulary, FilesThatCannotBeReadAreErrors) {
  Vocabulary vocabulary;
  const Expected<void> missing = vocabulary.load("/nonexistent/v.toml");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("cannot open /nonexistent/v.toml"));
  const std::filesystem::path large = std::filesystem::path(testing::TempDir()) / "large.toml";
  std::ofstream(large) << std::string(kVocabularyFileMaxBytes + 1, '#');
  const Expected<void> loaded = vocabulary.load(large);
  std::filesystem::remove(large);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::Limit);
}

// What ships must also have a type: each tracepoint with each of its exports, without DWARF.
TEST(Vocabulary, EveryShippedExportIsTyped) {
  Vocabulary vocabulary;
  const Expected<void> loaded =
      vocabulary.load(std::filesystem::path(CLEW_SOURCE_DIR) / "vocabulary");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_GT(vocabulary.tracepoints().size(), 50U);
  for (const TracepointDefinition& each : vocabulary.tracepoints()) {
    EXPECT_FALSE(each.doc.empty()) << each.name;
    std::string text = "from e in " + each.name + " select e.time";
    for (const TracepointExport& exported : each.places[0].exports) {
      text += ", e." + exported.name + " as x_" + exported.name;
    }
    const Expected<Query> query =
        parse({.name = each.name, .text = text}, {.vocabulary = &vocabulary, .types = nullptr});
    EXPECT_TRUE(query) << query.error().message;
  }
}

const char* const kLive =
    "[[tracepoint]]\nname = \"a.opened\"\nfunction = \"m!open\"\nat = \"return\"\nexports = { id = "
    "\"retval\" }\n[[tracepoint]]\nname = \"a.closed\"\nfunction = \"m!close\"\nexports = { id = "
    "\"arg0\" }\n[[outstanding]]\nname = \"a.live\"\nopened = \"a.opened\"\nuntil = "
    "[\"a.closed\"]\non = \"id\"\n";

std::string printed_of(const Vocabulary& vocabulary, const std::string& text) {
  const Expected<Query> query =
      parse({.name = "q", .text = text}, {.vocabulary = &vocabulary, .types = nullptr});
  return query ? print(*query) : query.error().message;
}

TEST(Vocabulary, WhatIsOutstandingHasAName) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.load_text("v.toml", kLive));
  ASSERT_TRUE(vocabulary.load_text("again.toml", std::string(kLive)));
  ASSERT_EQ(vocabulary.outstandings().size(), 1U);
  EXPECT_EQ(printed_of(vocabulary, "from x in a.live one in 8 select x.id, x.weight"),
            "from e in outstanding(return(\"m!open\") as \"a.opened\" until entry(\"m!close\") as "
            "\"a.closed\" on retval equals arg0) one in 8\nselect e.retval as id, 8l as weight");
  EXPECT_THAT(printed_of(vocabulary, "from x in a.lvie select x.id"),
              HasSubstr("did you mean 'a.live'?"));
  EXPECT_THAT(printed_of(vocabulary, "from x in a.opened one in 8 select x.id"),
              HasSubstr("'one in' is of what is outstanding"));
}

TEST(Vocabulary, WhatIsWrongWithSomethingOutstandingIsSaid) {
  EXPECT_THAT(error_of("[[outstanding]]\nname = \"a.b\"\nopened = \"x.y\"\nuntil = \"x.z\"\n"),
              HasSubstr("the table needs 'on'"));
  EXPECT_THAT(
      error_of("[[outstanding]]\nname = \"a.b\"\nopened = []\nuntil = \"x.z\"\non = \"k\"\n"),
      HasSubstr("'opened' lists from 1 to 64 names"));
  EXPECT_THAT(error_of("[[outstanding]]\nname = \"a.b\"\nopend = \"x\"\n"),
              HasSubstr("did you mean 'opened'?"));
  EXPECT_THAT(error_of(tracepoint("function = \"m!f\"\n") +
                       "[[outstanding]]\nname = \"a.b\"\nopened = \"a.b\"\nuntil = \"a.b\"\non = "
                       "\"k\"\n"),
              HasSubstr("'a.b' is already defined in v.toml"));
}

}  // namespace
}  // namespace clew::query
