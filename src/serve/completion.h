// SPDX-License-Identifier: Apache-2.0
// What may stand at a place of a text. Words of the language come from the tables of the language;
// functions and processes are what `clew list` says.
#pragma once

#include <string>
#include <string_view>

#include "output/json_value.h"

namespace clew::serve {

// Where a cursor is, in bytes.
struct CompletionPlace {
  enum class Kind : uint8_t {
    Word,      // A provider, clause, aggregate, or name that the text has given.
    Field,     // Behind the dot of an event: `kinds`.
    Function,  // In the quotes of a source in a process; `module` in front of the !, if any.
  };
  Kind kind = Kind::Word;
  size_t from = 0;  // Of the word that the cursor is in, up to which it is typed.
  std::string typed{};
  uint32_t kinds = ~0U;  // Bit n: events of query::SourceKind n.
  std::string module{};
};

[[nodiscard]] CompletionPlace place_in(std::string_view text, size_t at);
// Items of the tables that begin with what is typed.
[[nodiscard]] output::Json word_items(const CompletionPlace& place, std::string_view text);
// Of the lines that `clew list --json` prints.
[[nodiscard]] output::Json function_items(const CompletionPlace& place, std::string_view lines);

}  // namespace clew::serve
