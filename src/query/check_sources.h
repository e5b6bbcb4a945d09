// SPDX-License-Identifier: Apache-2.0
// Whether the sources of a text are such, as far as it can be known without the processes that have
// them: providers and their arguments, tracepoints of the vocabulary, queries by name.
#pragma once

#include "base/error.h"
#include "query/diagnostic.h"
#include "query/vocabulary.h"

namespace clew::query {

// Of a text that check_syntax() has seen. Errors: the first source that is none, with the nearest
// name.
Expected<void> check_sources(const Text& text, const Vocabulary& vocabulary);

}  // namespace clew::query
