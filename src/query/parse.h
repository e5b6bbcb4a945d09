// SPDX-License-Identifier: Apache-2.0
// Text -> Query: the front door of the stage. It lexes, parses any of the three spellings, resolves
// names against the vocabulary and the traced program's types, types, normalises, and refuses what
// this version cannot run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "query/diagnostic.h"
#include "query/query.h"

namespace clew::query {

class ExtensionSource;
class TypeSource;
class Vocabulary;

// What names mean. All may be null and must outlive the call only.
struct Environment {
  const Vocabulary* vocabulary = nullptr;
  TypeSource* types = nullptr;
  ExtensionSource* extensions = nullptr;
};

// Errors: InvalidQuery with a rendered diagnostic (query/diagnostic.h) for the first thing that is
// wrong, also for what "is not part of this version yet".
Expected<Query> parse(const Text& text, const Environment& environment);

// The words that begin clauses, and stand in them.
std::span<const std::string_view> clause_words();

// Lexes and parses only: whether the text is a query at all, whatever its names mean.
Expected<void> check_syntax(const Text& text);

// Where the sources of a text are: what has to be known before names can be.
struct SourcePlaces {
  bool kernel = false;
  bool process = false;
  bool profile = false;    // Among those of the kernel.
  bool recording = false;  // Some of them.
  bool joins = false;      // Some, by cause or by time.
  bool stacks = false;     // The text has the word for a stack of a program.
  // Modules of functions that are traced in all processes (machine.Function): patterns.
  std::vector<std::string> everywhere{};
  // Of all that is traced in processes: patterns; an empty one of a source that names none.
  std::vector<std::string> modules{};
  // Of the whole text: what it says, whatever its names mean.
  std::optional<uint64_t> every_ns{};
  std::optional<uint64_t> for_ns{};
  std::optional<uint64_t> pane_ns{};  // Of windows of time.
  bool clusters = false;              // k-means
  bool groups = false;                // It has a word for them, or for what is counted.
};
// A tracepoint of no vocabulary is taken for one in a process.
Expected<SourcePlaces> places_of_sources(const Text& text, const Vocabulary* vocabulary = nullptr);

// The same as parse() without the last step: sources of a cluster stay in the Query.
Expected<Query> parse_any(const Text& text, const Environment& environment);

}  // namespace clew::query
