// SPDX-License-Identifier: Apache-2.0
// The types of D's built-in variables, for the checker and for the code generator.
#pragma once

#include "query/d/functions.h"
#include "query/d/types.h"

namespace clew::query::d {

// Args, Curcpu, Curlwpsinfo, Curpsinfo and Fds have none: args[] is typed by the probe, the others
// are inlines of the library (library.h) and never reach the generator. Uregs: of an element.
TypeId type_of(TypeTable& types, Builtin builtin);
// args, fds, uregs: only with an index.
bool is_array(Builtin builtin);

}  // namespace clew::query::d
