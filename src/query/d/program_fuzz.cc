// SPDX-License-Identifier: Apache-2.0
// Hostile text must give an error or a program that can be printed, never a crash.
#include <cstdint>
#include <string_view>

#include "query/d/parse.h"
#include "query/d/parse_format.h"
#include "query/d/print.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  clew::query::d::CompileOptions options;
  options.form = clew::query::d::CompileOptions::Form::Name;
  options.arguments = {"fuzz", "1", "word", "\"text\""};
  options.allow_unused_arguments = true;
  (void)clew::query::d::parse_format(text, 1, {});
  clew::query::d::TypeTable types;
  const auto program = clew::query::d::parse(text, options, types);
  if (program) (void)print(*program, types);
  return 0;
}
