// SPDX-License-Identifier: Apache-2.0
#include "query/cause.h"

#include <string>

#include <gtest/gtest.h>

#include "query/print.h"
#include "query/vocabulary.h"

namespace clew::query {
namespace {

using causal::EdgeClass;

Expected<std::vector<Carrier>> read(const std::string& text) {
  Vocabulary vocabulary;
  CLEW_TRY(vocabulary.load_text("v.toml", text));
  return carriers_of(vocabulary, nullptr, [](const Source&) { return true; });
}

std::string error_of_cause(const std::string& lines) {
  const auto read_back = read("[[tracepoint]]\nname = \"p\"\nfunction = \"app!f\"\n" + lines);
  return read_back ? "no error" : read_back.error().message;
}

TEST(Cause, SaysWhereRequestsBegin) {
  const auto carriers = read(
      "[[tracepoint]]\nname = \"p\"\nfunction = [\"app!f\", \"app!g\"]\ncause = \"begin\"\n"
      "[[tracepoint]]\nname = \"other\"\nfunction = \"app!h\"\n");
  ASSERT_TRUE(carriers.has_value()) << carriers.error().message;
  ASSERT_EQ(carriers->size(), 2);
  EXPECT_EQ(print((*carriers)[1].source), "entry(\"app!g\")");
  EXPECT_EQ((*carriers)[1].cause.act, Act::Begin);
  EXPECT_EQ((*carriers)[1].cause.how, EdgeClass::Recipe);
  EXPECT_TRUE((*carriers)[1].keys.empty());
}

TEST(Cause, HandsOverByAnExport) {
  const auto carriers = read(
      "[[tracepoint]]\nname = \"p\"\nfunction = \"app!f\"\nat = \"return\"\n"
      "exports = { job = \"retval\", n = \"entry.arg1\" }\ncause = \"take job\"\n"
      "how = \"heuristic\"\n");
  ASSERT_TRUE(carriers.has_value()) << carriers.error().message;
  ASSERT_EQ(carriers->size(), 1);
  const Carrier& carrier = carriers->front();
  EXPECT_EQ(carrier.cause.act, Act::Take);
  EXPECT_EQ(carrier.cause.how, EdgeClass::Heuristic);
  EXPECT_FALSE(carrier.cause.across);
  ASSERT_EQ(carrier.keys.size(), 1);
  EXPECT_EQ(carrier.keys[0].field, Field::ReturnValue);
}

// Most calls are none of those that hand something over.
TEST(Cause, OfSystemCallsHasTheKeyZeroWhereThereIsNone) {
  const auto carriers = read(
      "[[tracepoint]]\nname = \"p\"\nsyscall = \"write\"\n"
      "exports = { n = \"arg2 == 8 ? u64(arg1) : 0\" }\ncause = \"put n\"\n"
      "[[tracepoint]]\nname = \"q\"\nfunction = \"app!f\"\n"
      "exports = { n = \"arg0\" }\ncause = \"put n\"\n");
  ASSERT_TRUE(carriers.has_value()) << carriers.error().message;
  ASSERT_EQ(carriers->size(), 2);
  const Carrier& call = carriers->front();
  ASSERT_EQ(call.conditions.size(), 1);
  EXPECT_EQ(call.conditions[0].binary, BinaryOperator::NotEqual);
  EXPECT_EQ(call.conditions[0].operands[0], call.keys[0]);
  EXPECT_EQ(call.conditions[0].operands[1].integer, 0);
  EXPECT_TRUE((*carriers)[1].conditions.empty());
}

TEST(Cause, SendsToOtherProcesses) {
  const auto carriers = read(
      "[[tracepoint]]\nname = \"p\"\nfunction = \"app!f\"\n"
      "exports = { id = \"arg0\" }\ncause = \"send id\"\n");
  ASSERT_TRUE(carriers.has_value()) << carriers.error().message;
  EXPECT_EQ(carriers->front().cause.act, Act::Put);
  EXPECT_TRUE(carriers->front().cause.across);
}

TEST(Cause, KnowsMessagesByTokensAndTexts) {
  const auto form = [](const std::string& exports, const std::string& cause) {
    const auto carriers = read("[[tracepoint]]\nname = \"p\"\nfunction = \"app!f\"\nexports = { " +
                               exports + " }\ncause = \"" + cause + "\"\n");
    EXPECT_TRUE(carriers.has_value()) << carriers.error().message;
    return carriers ? form_of(carriers->front()) : KeyForm::Number;
  };
  EXPECT_EQ(form("n = \"arg0\"", "send n"), KeyForm::Number);
  EXPECT_EQ(form("n = \"arg0\"", "put n"), KeyForm::Number);
  EXPECT_EQ(form("a = \"arg0\", b = \"arg1\"", "receive b a"), KeyForm::Token);
  EXPECT_EQ(form("id = \"str(arg0, 37)\"", "send id"), KeyForm::Text);
}

TEST(Cause, IsWrittenAsItIsRead) {
  for (const std::string text : {"begin", "end", "put a", "take a", "join a", "send a", "receive a",
                                 "send a b", "receive a b"}) {
    const Expected<Cause> cause = parse_cause(text, "heuristic");
    ASSERT_TRUE(cause.has_value());
    EXPECT_EQ(text_of(*cause), text);
    EXPECT_EQ(name_of(cause->how), "heuristic");
  }
}

TEST(Cause, IsWrongInThesePlaces) {
  EXPECT_NE(error_of_cause("cause = \"beginn\"\n").find("did you mean 'begin'"), std::string::npos);
  EXPECT_NE(error_of_cause("cause = \"put\"\n").find("needs the name of an export"),
            std::string::npos);
  EXPECT_NE(error_of_cause("cause = \"end x\"\n").find("has nothing behind it"), std::string::npos);
  EXPECT_NE(error_of_cause("how = \"recipe\"\n").find("belongs to a 'cause'"), std::string::npos);
  EXPECT_NE(error_of_cause("cause = \"begin\"\nhow = \"recipes\"\n").find("did you mean 'recipe'"),
            std::string::npos);
  EXPECT_NE(error_of_cause("exports = { job = \"arg1\" }\ncause = \"put jop\"\n")
                .find("no export 'jop'; did you mean 'job'"),
            std::string::npos);
  EXPECT_NE(
      error_of_cause("exports = { s = \"str(arg1)\" }\ncause = \"put s\"\n").find("is no number"),
      std::string::npos);
  // Two are one token; an object has one, and a token no text.
  EXPECT_NE(error_of_cause("exports = { a = \"arg0\" }\ncause = \"put a a\"\n").find("'a a'"),
            std::string::npos);
  EXPECT_NE(error_of_cause("exports = { a = \"arg0\" }\ncause = \"send a b\"\n").find("'b'"),
            std::string::npos);
  EXPECT_NE(error_of_cause("exports = { a = \"arg0\", s = \"str(arg1)\" }\ncause = \"send a s\"\n")
                .find("'s' is no number"),
            std::string::npos);
}

}  // namespace
}  // namespace clew::query
