// SPDX-License-Identifier: Apache-2.0
// D's library: the inlines, types and translators that every program may use without declaring them
// (NULL, curpsinfo, fileinfo_t, SIGINT, …), written in D in library/*.d.
#pragma once

#include <span>
#include <string_view>

#include "query/d/source.h"
#include "query/d/syntax.h"
#include "query/d/types.h"

namespace clew::query::d {

struct LibraryPiece {
  std::string_view name;
  std::string_view text;
};
std::span<const LibraryPiece> library_pieces();

// The pieces that the program `text` may need, to stand in front of it: call it before parse(), for
// it defines types. A piece is taken when a name that it defines occurs in the text, and, because
// args[] may be of any of their types, those with translators when `args` does. Everything in it
// has line 0, by which the checker knows it: a translator's member is only looked at when it is
// used, so a kernel that lacks a field spoils nothing else.
//
// Pieces that `types` has already (from an earlier program on the same command line) are left out.
Compiled<Program> parse_library(std::string_view text, TypeTable& types);

}  // namespace clew::query::d
