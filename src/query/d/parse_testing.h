// SPDX-License-Identifier: Apache-2.0
// For tests of the parser: text -> its tree printed again, or its error with tag and line.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "query/d/parse.h"
#include "query/d/print.h"

namespace clew::query::d {

inline CompileOptions on_command_line(CompileOptions::Form form = CompileOptions::Form::Name) {
  CompileOptions options;
  options.form = form;
  return options;
}

inline std::string printed(std::string_view text, const CompileOptions& options) {
  TypeTable types;
  const Compiled<Program> program = parse(text, options, types);
  if (program) return print(*program, types);
  return fmt::format("[{}] line {}: {}", program.error().tag, program.error().line,
                     program.error().message);
}

inline std::string printed(std::string_view text) {
  return printed(text, on_command_line());
}

}  // namespace clew::query::d
