// SPDX-License-Identifier: Apache-2.0
// Errors of D programs, in DTrace's words: one error stops the compilation, and it has a line and a
// tag ("D_SYNTAX"), never a column in its text. The span draws the caret on a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "query/extension_source.h"
#include "query/span.h"

namespace clew::query::d {

// What part of a clause an error is in.
enum class Region : uint8_t { None, Predicate, Actions };

struct CompileError {
  std::string tag;      // "D_SYNTAX"
  std::string message;  // `syntax error near "}"`
  uint32_t line = 0;    // In the file it came from (#line obeyed); 0 = none.
  Span span;
  std::string nearest;     // The name that was probably meant, for who looks at a terminal.
  bool is_tagged = false;  // The text before it wants tags shown: #pragma D option errtags.
  Region region = Region::None;
};

template <typename T>
class [[nodiscard]] Compiled : public tl::expected<T, CompileError> {
 public:
  using tl::expected<T, CompileError>::expected;
};

inline tl::unexpected<CompileError> compile_error(std::string tag, std::string message,
                                                  uint32_t line, Span span = {}) {
  return tl::unexpected<CompileError>(
      CompileError{std::move(tag), std::move(message), line, span, ""});
}

// `result`, which comes from that part.
template <typename T>
Compiled<T> in_region(Region region, Compiled<T> result) {
  if (!result) result.error().region = region;
  return result;
}

// What a program is compiled with.
struct CompileOptions {
  std::string name;                     // "script.d"; empty for -n and its kin.
  std::vector<std::string> arguments;   // $0, $1, …; [0] is the script's name.
  bool default_arguments = false;       // -xdefaultargs: a missing one is 0 or "".
  bool allow_unused_arguments = false;  // -xargref: no D_MACRO_UNUSED
  bool allow_empty_files = false;       // -xempty
  bool allow_unmatched_probes = false;  // -Z, -xzdefs
  uint64_t target_pid = 0;              // $target; 0 = none: D_MACRO_UNDEF? (is 0)
  // Asked for functions that D does not have; borrowed. Null: there are no others.
  ExtensionSource* extensions = nullptr;
  // For -P, -m, -f, -n and -i: the text is one or more probe descriptions (with the fields before
  // missing), predicate and clause. Name is the form of a file.
  enum class Form : uint8_t { File, Provider, Module, Function, Name, Id } form = Form::File;
};

}  // namespace clew::query::d

namespace clew::detail {
// For CLEW_TRY.
template <typename T>
T take(query::d::Compiled<T>&& result) {
  return std::move(*result);
}
inline void take(query::d::Compiled<void>&&) {}
}  // namespace clew::detail
