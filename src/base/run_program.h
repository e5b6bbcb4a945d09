// SPDX-License-Identifier: Apache-2.0
// Runs another program to its end, with memory files as its input and output, so that no order of
// reading and writing can make both sides wait.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew {

struct FinishedProgram {
  bool succeeded = false;  // It ended by itself, with status 0.
  std::string output;
  std::string messages;  // What it wrote to its standard error.
};

inline constexpr size_t kProgramOutputBytesMax = size_t{64} << 20;

// `words[0]` is a path, or a name that is looked for in PATH. Errors: NotFound when there is no
// such program, Io when it cannot be run, Limit when it writes too much.
Expected<FinishedProgram> run_program(std::vector<std::string> words, std::string_view input);

}  // namespace clew
