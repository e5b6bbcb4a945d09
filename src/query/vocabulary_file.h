// SPDX-License-Identifier: Apache-2.0
// What one file of a vocabulary says, in TOML (vocabulary.h has the form). It may be anybody's
// text.
#pragma once

#include <vector>

#include "base/error.h"
#include "query/diagnostic.h"
#include "query/vocabulary.h"

namespace clew::query {

// In the order of the file.
struct VocabularyFile {
  std::vector<TracepointDefinition> tracepoints;
  std::vector<Program> programs;
  std::vector<OutstandingDefinition> outstandings;
  std::vector<ValueDefinition> values;
};

// Errors have their place in the text: what is no TOML, unknown keys, what no query could mean.
Expected<VocabularyFile> read_vocabulary(const Text& text, const Reporter& report);

}  // namespace clew::query
