// SPDX-License-Identifier: Apache-2.0
// The query under construction, which the parts of the analysis share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "query/c_types.h"
#include "query/diagnostic.h"
#include "query/parse.h"
#include "query/query.h"
#include "query/syntax.h"

namespace clew::query {

// Bounds on what a short text can make: names stand for expressions, and expressions double.
inline constexpr size_t kNodesMax = 100'000;        // Nodes of expressions made for one text.
inline constexpr size_t kAnalysedStepsMax = 2'000;  // Steps analysed, each use of a name counted.
inline constexpr size_t kColumnsMax = 64;
inline constexpr size_t kAggregatesMax = 64;

// Of text whose size the query does not say.
struct TextSizes {
  uint16_t usual_bytes = kStringDefaultBytes;
  uint16_t array_bytes_max = kKeyStringMaxBytes;  // Of an array of characters.
  bool are_used = false;
};

struct Limits {
  size_t nodes = kNodesMax;
  size_t steps = kAnalysedStepsMax;
  TextSizes text{};
};

struct Export {
  std::string name;
  SyntaxExpression expression;
};

// One source and what its tracepoint or its braces export.
struct ResolvedSource {
  Source source;
  std::vector<Export> exports;
  bool is_from_vocabulary = false;  // Then spans of exports are in another text.
  std::string tracepoint;           // For messages about those exports.
  // Asked for at the first use.
  std::optional<Expected<std::vector<Parameter>>> parameters;
};

// The sources of `from`, or of one join.
struct Stream {
  std::string name;
  std::vector<ResolvedSource> sources;
  std::vector<Input> inputs;
};

struct Build {
  const Reporter& report;
  const Environment& environment;
  Limits& limits;
  Query query;
  std::vector<Stream> streams;  // [0] is `from`.
  CTypes types;

  Build(const Reporter& reporter, const Environment& names, Limits& bounds)
      : report(reporter),
        environment(names),
        limits(bounds),
        types(names.types, query.enumerations) {}
  Build(const Build&) = delete;
  Build& operator=(const Build&) = delete;
};

size_t count_nodes(const Expression& expression);

}  // namespace clew::query
