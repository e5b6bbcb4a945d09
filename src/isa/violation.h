// SPDX-License-Identifier: Apache-2.0
// The error of a broken rule, in one spelling for both validators.
#pragma once

#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "isa/validator.h"

namespace clew::isa {

inline tl::unexpected<Error> violation(const Program& program, size_t instruction, Rule rule,
                                       std::string_view what) {
  const ErrorCode code = rule == Rule::Length ? ErrorCode::Limit : ErrorCode::InvalidQuery;
  return fail(code, fmt::format("program {}: instruction {}: rule {}: {}", program.name,
                                instruction, rule_name(rule), what));
}

}  // namespace clew::isa
