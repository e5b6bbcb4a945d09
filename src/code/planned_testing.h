// SPDX-License-Identifier: Apache-2.0
// For tests: what the planner does at one function, and what a uprobe that comes later would.
#pragma once

#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>

#include "code/later_uprobe.h"
#include "code/window_checks.h"
#include "code/windows_testing.h"

namespace clew::code {

inline ProbeReads reads_of(abi::Register one) {
  ProbeReads reads;
  reads.registers.add(one);
  return reads;
}

struct Planned {
  ModuleCode code;
  Plan plan;
  LaterUprobe fate;

  [[nodiscard]] bool serves_both() const {
    return plan.windows.size() == 1 && plan.windows[0].window_class == WindowClass::BothWays;
  }
};

constexpr ptrdiff_t kPaddingBytes = 8;

// The function is all of its text but for the padding behind it. `request` is of that function.
inline Planned planned(const uint8_t* begin, const uint8_t* end, Request request,
                       LateUprobeDanger danger) {
  const TextCase text = TextCase(begin, end + kPaddingBytes).function(begin, end);
  Planned result = {analyse(text.text), {}, {}};
  request.address = at(begin);
  result.plan = plan_windows(result.code, {&request, 1}, {}, danger);
  EXPECT_EQ(broken_plan(result.code, result.plan), "");
  result.fate = later_uprobe(result.code, result.plan.windows, at(begin));
  return result;
}

}  // namespace clew::code
