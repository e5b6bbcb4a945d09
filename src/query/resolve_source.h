// SPDX-License-Identifier: Apache-2.0
// What was written as a source -> Sources: providers and their arguments, scopes, DTrace's four
// fields, and the tracepoints of vocabularies.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "query/build.h"
#include "query/syntax.h"

namespace clew::query {

// The sources of one element of a union: several for a tracepoint with several places.
// `query_names` are only for "did you mean".
Expected<std::vector<ResolvedSource>> resolve_source(const SyntaxSource& syntax, Build& build,
                                                     std::span<const std::string_view> query_names);

// What a source written as a call is.
Expected<SourceKind> kind_of(const SyntaxSource& syntax, const Reporter& report);

// Of a name that is no tracepoint of the vocabulary, which may be null, and no query.
tl::unexpected<Error> unknown_source(const SyntaxSource& syntax, const Reporter& report,
                                     const Vocabulary* vocabulary,
                                     std::span<const std::string_view> query_names);

// "module!function" into the two patterns; a name of C++'s operator! is not split. False when one
// of the two is missing.
bool split_function(std::string_view text, Source& source);

}  // namespace clew::query
