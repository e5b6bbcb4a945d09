// SPDX-License-Identifier: Apache-2.0
// How clew show writes lines that ran, as text and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "recorder/show.h"
#include "recorder/snap.h"

namespace clew::cmd {

struct TextLine {
  std::string left;
  std::optional<std::string> source;
};

TextLine text_of_line(const recorder::Snap& snap, const recorder::ShownThread& thread,
                      size_t number, int32_t least);
// Of a thread's lines; they are indented by what is behind it.
int32_t least_depth(const recorder::ShownThread& thread);
// Sources stand below each other, but for those behind long lines.
void print_lines(const std::vector<TextLine>& lines);

// What a thread's script was in: a heading, and the calls; at most so many of them.
std::vector<TextLine> text_of_script(const recorder::ShownScript& script, size_t calls_max);

// "calls of Perl are not known: ..."; empty: they are.
std::string text_of_problem(const recorder::Interpreter& interpreter);

nlohmann::ordered_json json_of_call(const recorder::ShownScriptCall& call);
nlohmann::ordered_json json_of_line(const recorder::Snap& snap, const recorder::ShownLine& line);

}  // namespace clew::cmd
