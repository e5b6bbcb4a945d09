// SPDX-License-Identifier: Apache-2.0
// For tests: what is asked of the planner, and how its answers read best.
#pragma once

#include <string>
#include <vector>

#include "code/text_cases.h"
#include "code/windows.h"

namespace clew::code {

inline Plan plan_of(const TextCase& text, const std::vector<Request>& requests) {
  return plan_windows(analyse(text.text), requests);
}

inline Request entry(const uint8_t* function) {
  return {RequestKind::Entry, at(function)};
}
inline Request exits(const uint8_t* function) {
  return {RequestKind::Exits, at(function)};
}
inline Request offset(const uint8_t* address) {
  return {RequestKind::Offset, at(address)};
}

// "entry" and "exit" reasons read best as text; "" when nothing was refused.
inline std::string refusals(const Plan& plan) {
  std::string text;
  for (const Refusal& refusal : plan.refusals) {
    if (!text.empty()) text += ' ';
    text += name(refusal.reason);
  }
  return text;
}

}  // namespace clew::code
