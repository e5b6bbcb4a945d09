// SPDX-License-Identifier: Apache-2.0
// Runs a verb that is data (verb_file.h), as a query or a D script of that text is run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cmd/verb_file.h"

namespace clew::cmd {

// The verbs in the folders that a command line means: also those of its --verbs, which have to be
// there.
Expected<Verbs> named_verbs(int argument_count, const char* const* arguments);

// The first argument is the verb. Gives the exit status.
int named_verb(const NamedVerb& verb, int argument_count, const char* const* arguments);

}  // namespace clew::cmd
