// SPDX-License-Identifier: Apache-2.0
// Stacks as D prints them and as queries answer them, in one form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace clew::live {

using Frames = std::vector<std::string>;

struct Stack {
  Frames frames;
  uint64_t count = 1;  // The line behind the stack, if it is a number.

  // The functions of one module, without offsets.
  [[nodiscard]] Frames functions(const std::string& module) const;
  // The last frame is where the kernel begins a thread, which has a name in some files.
  [[nodiscard]] bool is_whole() const;
};

// Of a script's output; blanks in front of a line do not matter.
std::vector<Stack> parse_stacks(const std::string& output);
// Runs a script, with `more` arguments.
std::vector<Stack> stacks_of(const std::string& script, const std::vector<std::string>& more);
// As D prints it.
std::string frame_of(const nlohmann::json& frame);
// Of a query with a column `stack`, and, if it counts, one `count`.
std::vector<Stack> queried_stacks(const std::string& query, const std::vector<std::string>& more);

}  // namespace clew::live
