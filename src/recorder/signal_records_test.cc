// SPDX-License-Identifier: Apache-2.0
#include "recorder/signal_records.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace clew::recorder {
namespace {

constexpr uint64_t kPlace = 0x7f12'3456'789a;

std::string text_of(std::span<const uint32_t> words) {
  std::string text;
  for (const Record& one : parse_records(words)) {
    if (one.kind == RecordKind::Dag) text += std::to_string(abi::dag_id(one.word)) + " ";
    if (one.kind == RecordKind::Gap) text += "gap ";
    if (one.kind == RecordKind::Signal) text += one.place == kPlace ? "signal " : "elsewhere ";
  }
  return text;
}

std::vector<uint32_t> between_others(std::span<const uint32_t> signal) {
  std::vector<uint32_t> words = {abi::dag_record(1)};
  words.insert(words.end(), signal.begin(), signal.end());
  words.push_back(abi::dag_record(2));
  return words;
}

TEST(SignalRecords, ASignalIsOne) {
  const auto signal = signal_record(14 | abi::kCursorInMemory, kPlace);
  EXPECT_EQ(text_of(signal), "signal ");
  EXPECT_EQ(text_of(between_others(signal)), "1 signal 2 ");
  EXPECT_TRUE(parse_records(signal).front().is_in_memory());
  EXPECT_FALSE(parse_records(signal_record(14, 0)).front().is_in_memory());
  EXPECT_EQ(text_of(signal_record(14, 0)), "elsewhere ");
}

TEST(SignalRecords, TheRestOfOneAtTheFrontIsLeftOut) {
  const std::vector<uint32_t> words = between_others(signal_record(1, kPlace));
  EXPECT_EQ(text_of(std::span(words).subspan(2)), "2 ");
  EXPECT_EQ(text_of(std::span(words).subspan(4)), "2 ");
}

// A whole one behind it is none of its words.
TEST(SignalRecords, TheRestOfOneEndsInFrontOfTheNext) {
  std::vector<uint32_t> words = between_others(signal_record(1, kPlace));
  const auto signal = signal_record(1, kPlace);
  words.insert(words.begin() + 5, signal.begin(), signal.end());
  EXPECT_EQ(text_of(std::span(words).subspan(4)), "signal 2 ");
}

TEST(SignalRecords, WhatIsNoWholeOneIsAGap) {
  for (size_t left_out = 1; left_out < 5; ++left_out) {
    std::vector<uint32_t> words = between_others(signal_record(1, kPlace));
    words.erase(words.begin() + static_cast<ptrdiff_t>(left_out));
    EXPECT_EQ(text_of(words), "1 gap gap gap 2 ") << left_out;
  }
  std::vector<uint32_t> words = between_others(signal_record(1, kPlace));
  words[2] &= ~abi::kExtendedBit;
  EXPECT_EQ(parse_records(words).size(), words.size());
  EXPECT_EQ(text_of(std::vector<uint32_t>{abi::dag_record(3), UINT32_MAX, 1}), "3 gap gap ");
}

}  // namespace
}  // namespace clew::recorder
