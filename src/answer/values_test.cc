// SPDX-License-Identifier: Apache-2.0
// Text, bytes and addresses from a probe's program to the answer: what their lengths say, and where
// memory ends.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "answer/fake_machine.h"
#include "plan/shown_text.h"
#include "query/parse.h"

namespace clew::answer {
namespace {

constexpr uint64_t kEnd = kFakeMemoryStart + kFakeMemoryBytes;

std::string memory_at(uint64_t address, uint64_t size) {
  const std::span<const uint8_t> all = fake_memory();
  const uint64_t at = address - kFakeMemoryStart;
  return {reinterpret_cast<const char*>(all.data()) + at, std::min(size, kFakeMemoryBytes - at)};
}

std::string text_at(uint64_t address, uint64_t size) {
  const std::string bytes = memory_at(address, size);
  return bytes.substr(0, bytes.find('\0'));
}

// An entry of "m!work" with these arguments.
Hit hit_with(uint64_t first, uint64_t second) {
  Hit hit{.time = 1024};
  hit.context.arguments[0] = first;
  hit.context.arguments[1] = second;
  return hit;
}

// The first column of the query, in order.
struct Shown {
  std::vector<std::string> texts;
  uint64_t unreadable = 0;
};
Shown shown(const std::string& text, const std::vector<Hit>& hits) {
  const Expected<query::Query> query = query::parse({.name = "query", .text = text}, {});
  EXPECT_TRUE(query.has_value()) << query.error().message;
  if (!query) return {};
  const FakeThread thread{.hits = hits};
  const Expected<FakeAnswer> answer = answer_of(plan::make(*query), {&thread, 1});
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  if (!answer) return {};
  Shown result;
  result.unreadable = answer->unreadable;
  for (const aggregate::Row& row : answer->rows) {
    const auto* value = std::get_if<std::string>(row.data());
    result.texts.push_back(value == nullptr ? "no text" : *value);
  }
  std::sort(result.texts.begin(), result.texts.end());
  return result;
}

std::vector<std::string> sorted(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  return texts;
}

TEST(ValuesOfProbes, TextHasTheLengthThatIsComputed) {
  const uint64_t address = kFakeMemoryStart + 128;  // A text of 24 bytes.
  std::vector<Hit> hits;
  std::vector<std::string> whole;
  std::vector<std::string> cut;
  for (const int64_t length : {-5, 0, 1, 3, 7, 8, 9, 64, 255, 256, 5000}) {
    hits.push_back(hit_with(address, static_cast<uint64_t>(length)));
    const auto size = static_cast<uint64_t>(std::clamp<int64_t>(length, 0, 255));
    whole.push_back(text_at(address, size));
    cut.push_back(text_at(address, std::min<uint64_t>(size, 7)));
  }
  EXPECT_EQ(shown(R"(from e in entry("m!work") select str(e.arg0, e.arg1))", hits).texts,
            sorted(whole));
  EXPECT_EQ(shown(R"(from e in entry("m!work") select str(e.arg0, e.arg1, 8))", hits).texts,
            sorted(cut));
}

// Of nothing, no byte has to be there; of text its end.
TEST(ValuesOfProbes, NoMoreIsReadThanTheLengthSays) {
  const Shown read = shown(R"(from e in entry("m!work") select str(e.arg0, e.arg1))",
                           {hit_with(0, 0), hit_with(kEnd - 2, 2), hit_with(0, 1)});
  EXPECT_EQ(read.texts, sorted({"", text_at(kEnd - 2, 2)}));
  EXPECT_EQ(read.unreadable, 1U);
  const Shown bytes = shown(R"(from e in entry("m!work") select hex(buf(e.arg0, e.arg1, 64)))",
                            {hit_with(0, 0), hit_with(kEnd - 8, 8), hit_with(kEnd - 8, 9)});
  EXPECT_EQ(bytes.texts, sorted({"", plan::hex_digits(memory_at(kEnd - 8, 8))}));
  EXPECT_EQ(bytes.unreadable, 1U);
}

TEST(ValuesOfProbes, BytesAreCutInTheTracer) {
  const uint64_t address = kFakeMemoryStart + 100;
  const Shown read = shown(R"(from e in entry("m!work") select hex(buf(e.arg0, e.arg1, 16)))",
                           {hit_with(address, 3), hit_with(address, 100), hit_with(address, ~0UL)});
  EXPECT_EQ(read.texts, sorted({plan::hex_digits(memory_at(address, 3)),
                                plan::hex_digits(memory_at(address, 16)), ""}));
}

TEST(ValuesOfProbes, WideTextEndsWhereMemoryDoes) {
  const Shown read =
      shown(R"(from e in entry("m!work") select str16(e.arg0, 20))",
            {hit_with(kFakeMemoryStart + 64, 0), hit_with(kEnd - 6, 0), hit_with(kEnd, 0)});
  EXPECT_EQ(read.texts, sorted({plan::wide_text(memory_at(kFakeMemoryStart + 64, 40), 2),
                                plan::wide_text(memory_at(kEnd - 6, 6), 2)}));
  EXPECT_EQ(read.unreadable, 1U);
}

TEST(ValuesOfProbes, ConditionsAndKeysUseThem) {
  const uint64_t address = kFakeMemoryStart + 128;  // A text of 24 bytes.
  const std::string two = text_at(address, 2);
  const std::vector<Hit> hits = {hit_with(address, 2), hit_with(address, 0), hit_with(address, 2)};
  const std::string same = R"(from e in entry("m!work") where str(e.arg0, e.arg1, 9) != "" )";
  EXPECT_EQ(shown(same + "select str(e.arg0, e.arg1, 9)", hits).texts, sorted({two, two}));
  EXPECT_EQ(shown(same + "groupby str(e.arg0, e.arg1, 9) as t select t, count()", hits).texts,
            std::vector<std::string>{two});
  EXPECT_EQ(
      shown(R"(from e in entry("m!work") groupby ip((uint32_t)e.arg1) as a select a, count())",
            {hit_with(0, 0x0100000A), hit_with(0, 0x0100000A)})
          .texts,
      std::vector<std::string>{"10.0.0.1"});
}

}  // namespace
}  // namespace clew::answer
