// SPDX-License-Identifier: Apache-2.0
#include "query/d/preprocess.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/run_program.h"

namespace clew::query::d {
namespace {

// Programs find out with the first ones that they are D, and on what. The others take from the
// system's headers what is C's compilers' own.
constexpr std::array<const char*, 27> kArguments = {"-D__linux",
                                                    "-D__linux__",
                                                    "-D__unix",
                                                    "-D__unix__",
                                                    "-D__x86_64",
                                                    "-D__amd64",
                                                    "-D__SUNW_D=1",
                                                    "-D__SUNW_D_64",
                                                    "-D__SUNW_D_VERSION=0x02000000",
                                                    "-D__attribute__(x)=",
                                                    "-D__asm__(x)=",
                                                    "-D__extension__=",
                                                    "-D__const=const",
                                                    "-D__inline=",
                                                    "-D__inline__=",
                                                    "-D__restrict=",
                                                    "-D__restrict__=",
                                                    "-D__signed__=signed",
                                                    "-D__volatile__=volatile",
                                                    "-D_Noreturn=",
                                                    "-D__builtin_va_list=void *",
                                                    "-D_Float32=float",
                                                    "-D_Float64=double",
                                                    "-D_Float128=long double",
                                                    "-D_Float32x=double",
                                                    "-D_Float64x=long double",
                                                    "-U__SIZEOF_INT128__"};
// #! is no directive of C. Its line stays, empty, for the numbers of those that follow.
std::string_view without_interpreter(std::string_view text) {
  return text.starts_with("#!") ? text.substr(std::min(text.find('\n'), text.size())) : text;
}

}  // namespace

Expected<Preprocessed> preprocess(std::string_view text, const PreprocessOptions& options) {
  std::vector<std::string> words = {options.path};
  words.insert(words.end(), kArguments.begin(), kArguments.end());
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  words.emplace_back("-");
  Expected<FinishedProgram> run = run_program(std::move(words), without_interpreter(text));
  if (!run) {
    return fail(run.error().code, fmt::format("failed to invoke C preprocessor {}: {}",
                                              options.path, run.error().message));
  }
  if (!run->succeeded) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("Preprocessor failed to process input program{}{}",
                            run->messages.empty() ? "" : ":\n", run->messages));
  }
  return Preprocessed{.text = std::move(run->output), .messages = std::move(run->messages)};
}

}  // namespace clew::query::d
