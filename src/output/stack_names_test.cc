// SPDX-License-Identifier: Apache-2.0
#include "output/stack_names.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace clew::output {
namespace {

using aggregate::Frame;
using target::SymbolPlace;

constexpr uint64_t kSomeProcess = 7;

// Process 7 and the kernel: `abort` at 0x1000, 0x20 bytes long, behind it `main`; the signal's way
// back at 0x3000, in no function. Counts what it is asked for.
class CountingSymbols final : public target::Symbolizer {
 public:
  [[nodiscard]] std::optional<SymbolPlace> kernel(uint64_t address) const override {
    ++questions;
    return SymbolPlace{"vmlinux", "schedule", address - 0x100};
  }
  [[nodiscard]] std::optional<SymbolPlace> user(uint64_t, uint64_t address) const override {
    ++questions;
    if (address >= 0x3000) return SymbolPlace{"libc.so.6", address == 0x3000 ? "restore" : "", 0};
    if (address >= 0x1020) return SymbolPlace{"app", "main", address - 0x1020};
    if (address >= 0x1000) return SymbolPlace{"app", "abort", address - 0x1000};
    return {};
  }
  [[nodiscard]] std::optional<target::CodePlace> code_at(uint64_t,
                                                         uint64_t address) const override {
    if (address < 0x1000) return {};
    return target::CodePlace{.address = address};
  }
  [[nodiscard]] bool is_signal_return(uint64_t, uint64_t address) const override {
    return address == 0x3000;
  }
  [[nodiscard]] std::vector<target::SourceCall> source(uint64_t, uint64_t address) const override {
    if (address != 0x1030) return {};
    return {{.function = "clamp", .place = {.file = "a.h", .line = 3}, .is_inlined = true},
            {.function = "main", .place = {.file = "a.c", .line = 9}, .is_inlined = false}};
  }
  mutable unsigned questions = 0;
};

std::vector<std::string> texts_of(const std::vector<uint64_t>& words) {
  const CountingSymbols symbols;
  std::vector<std::string> texts;
  for (const Frame& frame : StackNames(symbols).named(words).frames)
    texts.push_back(text_of(frame));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(StackNames, AThreadWithoutAStackHasNoFrames) {
  EXPECT_TRUE(texts_of({}).empty());
  EXPECT_TRUE(texts_of({kSomeProcess, 0, 0x1000}).empty());
}

TEST(StackNames, ACallBeforeTheEndOfItsFunctionIsOfThatFunction) {
  EXPECT_EQ(texts_of({kSomeProcess, 0x1008, 0x1020}), (Texts{"app!abort+0x8", "app!abort+0x20"}));
  EXPECT_EQ(texts_of({kSomeProcess, 0x1020}), Texts{"app!main"})
      << "where it stands, nothing called";
}

TEST(StackNames, WhatASignalInterruptedWasNotCalled) {
  EXPECT_EQ(texts_of({kSomeProcess, 0x1008, 0x3000, 0x1020, 0x1040}),
            (Texts{"app!abort+0x8", "libc.so.6!restore", "app!main", "app!main+0x20"}));
}

TEST(StackNames, InlinedCallsAreFramesWithLines) {
  EXPECT_EQ(texts_of({kSomeProcess, 0x1008, 0x1031}),
            (Texts{"app!abort+0x8", "app!clamp (a.h:3) [inlined]", "app!main+0x11 (a.c:9)"}));
}

TEST(StackNames, APlaceIsLookedUpOnce) {
  const CountingSymbols symbols;
  StackNames names(symbols);
  const std::array<uint64_t, 3> words = {kSomeProcess, 0x1008, 0x1030};
  const aggregate::Stack first = names.named(words);
  const unsigned asked = symbols.questions;
  EXPECT_EQ(names.named(words), first);
  EXPECT_EQ(symbols.questions, asked);
  EXPECT_EQ(names.named(std::array<uint64_t, 2>{0, 0x180}).frames[0].symbol, "schedule");
}

}  // namespace
}  // namespace clew::output
