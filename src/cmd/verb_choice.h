// SPDX-License-Identifier: Apache-2.0
// Which text of a verb is meant: by the processes that it is for, the format, and what is given.
#pragma once

#include <string>

#include "base/error.h"
#include "cmd/verb_file.h"
#include "engine/chosen.h"

namespace clew::cmd {

struct VerbWish {
  std::string variant;          // Of --as; empty: what the processes say.
  std::string format;           // "text", …
  std::string program;          // Of a command that is to be started; empty: of none.
  engine::Chosen* processes{};  // Named ones. Where none are and none need be, those that the
                                // variant is for.
};

// The text is one of the verb's. Errors: no such variant; a process that is not there; none of the
// variants is for these processes, with what to say instead.
Expected<const VerbText*> choose_text(const NamedVerb& verb, const VerbWish& wish);

}  // namespace clew::cmd
