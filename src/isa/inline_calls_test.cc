// SPDX-License-Identifier: Apache-2.0
// A function that stands in its caller does what the call did: both are run by the interpreter.
#include "isa/inline_calls.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "isa/interpreter.h"
#include "isa/opcode.h"

namespace clew::isa {
namespace {

using Code = std::vector<Instruction>;

constexpr Instruction kExitOfBody = {0x95, 0, 0, 0};

constexpr Instruction set(uint8_t to, int32_t value) {
  return {0xB7, to, 0, value};
}
constexpr Instruction move(uint8_t to, uint8_t from) {
  return {0xBF, static_cast<uint8_t>(to | from << 4), 0, 0};
}
constexpr Instruction add(uint8_t to, uint8_t from) {
  return {0x0F, static_cast<uint8_t>(to | from << 4), 0, 0};
}
constexpr Instruction add_value(uint8_t to, int32_t value) {
  return {0x07, to, 0, value};
}
constexpr Instruction store(uint8_t base, int16_t offset, uint8_t from) {
  return {0x7B, static_cast<uint8_t>(base | from << 4), offset, 0};
}
constexpr Instruction load(uint8_t to, uint8_t base, int16_t offset) {
  return {0x79, static_cast<uint8_t>(to | base << 4), offset, 0};
}
constexpr Instruction skip_if_above(uint8_t reg, int32_t value, int16_t over) {
  return {0x25, reg, over, value};
}
constexpr Instruction kCall = {kCallOpcode, 1 << 4, 0, -1};

// Functions by name; calls name each other in the order in which they stand.
class Library {
 public:
  Library& put(const std::string& name, Code code, const std::vector<std::string>& calls = {}) {
    Body function;
    size_t next = 0;
    for (uint32_t at = 0; at < code.size(); ++at) {
      if (code[at].opcode == kCallOpcode) function.references.push_back({at, true, calls[next++]});
    }
    function.code = std::move(code);
    functions_[name] = std::move(function);
    return *this;
  }

  [[nodiscard]] const Body& at(const std::string& name) const { return functions_.at(name); }

  [[nodiscard]] Body inlined(const std::string& name) const {
    return with_inlined_calls(
        at(name), [this](const std::string& callee) { return &functions_.at(callee); },
        [](std::string_view callee) { return !callee.starts_with("kept"); });
  }

  // The function and behind it all the others.
  [[nodiscard]] uint64_t run(const Body& function) const {
    Code code = function.code;
    std::map<std::string, size_t> begins;
    std::vector<std::pair<size_t, std::string>> calls;
    const auto note = [&calls](const Body& one, size_t begin) {
      for (const Reference& refers : one.references)
        calls.emplace_back(begin + refers.instruction, refers.symbol);
    };
    note(function, 0);
    for (const auto& [name, one] : functions_) {
      begins[name] = code.size();
      note(one, code.size());
      code.insert(code.end(), one.code.begin(), one.code.end());
    }
    for (const auto& [place, name] : calls)
      code[place].immediate = static_cast<int32_t>(begins[name]) - static_cast<int32_t>(place) - 1;
    Program program;
    program.code = std::move(code);
    std::vector<uint8_t> window(abi::kFrameEnd);
    const auto outcome = interpret(program, {.window = window});
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->result : 0;
  }

  // Gives the result, which is the same with the calls and without them.
  [[nodiscard]] uint64_t run_both(const std::string& name) const {
    const Body without = inlined(name);
    EXPECT_TRUE(std::none_of(without.references.begin(), without.references.end(),
                             [](const Reference& one) { return one.symbol == "short"; }));
    const uint64_t result = run(at(name));
    EXPECT_EQ(run(without), result);
    return result;
  }

 private:
  std::map<std::string, Body> functions_;
};

TEST(InlineCalls, TheCallersRegistersAndFrameAreKept) {
  Library library;
  library.put("short", {move(6, 1), set(2, 100), store(10, -8, 2), load(0, 10, -8), add(0, 6),
                        set(7, 1), kExitOfBody});
  library.put("main",
              {set(6, 5), set(7, 6), store(10, -8, 6), set(1, 7), kCall, add(0, 6), add(0, 7),
               load(1, 10, -8), add(0, 1), kExitOfBody},
              {"short"});
  EXPECT_EQ(library.run_both("main"), 100U + 7 + 5 + 6 + 5);
}

// The verifier refuses to read a register that has no value.
TEST(InlineCalls, ARegisterThatNobodyReadsAgainIsNotSaved) {
  Library library;
  library.put("short", {set(6, 2), set(7, 3), move(0, 6), kExitOfBody});
  library.put("main", {set(6, 1), kCall, skip_if_above(0, 5, 2), set(7, 1), add(0, 7), kExitOfBody},
              {"short"});
  EXPECT_EQ(library.run_both("main"), 3U);
  const Body made = library.inlined("main");
  EXPECT_TRUE(std::none_of(made.code.begin(), made.code.end(),
                           [](const Instruction& i) { return i.opcode == 0x7B; }));
}

// What a loop reads in its next turn is.
TEST(InlineCalls, ARegisterThatTheNextTurnReadsIsSaved) {
  Library library;
  library.put("short", {set(6, 50), set(7, 60), set(0, 1), kExitOfBody});
  library.put("main",
              {set(6, 0),
               set(7, 3),
               add(6, 7),
               kCall,
               add(6, 0),
               skip_if_above(6, 10, 1),
               {0x05, 0, -5, 0},
               move(0, 6),
               kExitOfBody},
              {"short"});
  EXPECT_EQ(library.run_both("main"), 12U);
}

TEST(InlineCalls, EachExitGoesOnBehindTheCall) {
  for (const int32_t argument : {1, 9}) {
    Library library;
    library.put("short",
                {skip_if_above(1, 5, 2), set(0, 10), kExitOfBody, set(0, 20), kExitOfBody});
    library.put("main", {set(1, argument), kCall, add_value(0, 1), kExitOfBody}, {"short"});
    EXPECT_EQ(library.run_both("main"), argument > 5 ? 21U : 11U);
  }
}

TEST(InlineCalls, BranchesOfTheCallerStillMeetTheirTargets) {
  for (const int32_t argument : {1, 9}) {
    Library library;
    library.put("short", {set(0, 10), kExitOfBody});
    // A loop backwards over the call, and a branch forwards over it.
    library.put("main",
                {set(6, 0),
                 set(7, argument),
                 skip_if_above(7, 5, 2),
                 kCall,
                 add(6, 0),
                 add_value(7, 1),
                 skip_if_above(7, 8, 1),
                 {0x05, 0, -6, 0},
                 move(0, 6),
                 kExitOfBody},
                {"short"});
    EXPECT_EQ(library.run_both("main"), argument > 5 ? 0U : 50U);
  }
}

TEST(InlineCalls, AddressesInTheFrameMoveWithIt) {
  Library library;
  library.put("short", {set(3, 9), move(2, 10), add_value(2, -16), store(2, 0, 3), load(0, 10, -16),
                        kExitOfBody});
  library.put("main",
              {set(1, 50), store(10, -16, 1), kCall, load(1, 10, -16), add(0, 1), kExitOfBody},
              {"short"});
  EXPECT_EQ(library.run_both("main"), 59U);
}

TEST(InlineCalls, WhatStandsInItsCallerMayCallOthers) {
  Library library;
  library.put("kept", {set(0, 3), kExitOfBody});
  library.put("short", {kCall, add_value(0, 1), kExitOfBody}, {"kept"});
  library.put("middle", {kCall, add_value(0, 10), kExitOfBody}, {"short"});
  library.put("main", {set(6, 100), kCall, add(0, 6), kCall, add(0, 6), kExitOfBody},
              {"middle", "kept"});
  EXPECT_EQ(library.run_both("main"), 103U);
  EXPECT_EQ(library.inlined("main").references.size(), 2U);
  EXPECT_EQ(library.run(library.inlined("middle")), 14U);
}

TEST(InlineCalls, ReferencesMoveWithTheirInstructions) {
  Library library;
  library.put("short", {set(0, 1), set(0, 2), kExitOfBody});
  library.put("main", {kCall, kCall, {kLoad64Opcode, 1, 0, 5}, {0, 0, 0, 0}, kExitOfBody},
              {"short", "kept"});
  Body main = library.at("main");
  main.references.push_back({2, false, "d_windows"});
  const Body made = with_inlined_calls(
      main, [&library](const std::string& callee) { return &library.at(callee); },
      [](std::string_view callee) { return callee == "short"; });
  ASSERT_EQ(made.references.size(), 2U);
  EXPECT_EQ(made.code[made.references[0].instruction].opcode, kCallOpcode);
  EXPECT_EQ(made.references[0].symbol, "kept");
  EXPECT_EQ(made.code[made.references[1].instruction].opcode, kLoad64Opcode);
  EXPECT_EQ(made.references[1].symbol, "d_windows");
}

TEST(InlineCalls, WhatIsTooLargeStaysACall) {
  Library library;
  library.put("wide", {set(1, 1), store(10, -300, 1), set(0, 4), kExitOfBody});
  library.put("main", {set(1, 1), store(10, -200, 1), kCall, kExitOfBody}, {"wide"});
  EXPECT_EQ(library.inlined("main").references.size(), 1U);
  // A branch cannot go over so many instructions.
  Code many(20'000, set(0, 1));
  many.push_back(kExitOfBody);
  library.put("long", many);
  library.put("main", {set(1, 1), skip_if_above(1, 5, 2), kCall, kCall, kExitOfBody},
              {"long", "long"});
  EXPECT_EQ(library.inlined("main").code.size(), 5U);
}

}  // namespace
}  // namespace clew::isa
