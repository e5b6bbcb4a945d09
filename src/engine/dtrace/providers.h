// SPDX-License-Identifier: Apache-2.0
// The provider definitions of the programs of a command line, for `dtrace -h` and -G.
#pragma once

#include <vector>

#include "base/error.h"
#include "engine/dtrace/request.h"
#include "kernel/providers/catalogue.h"
#include "query/d/provider.h"
#include "query/d/types.h"

namespace clew::engine {

struct Providers {
  query::d::TypeTable types;  // Those that they name.
  std::vector<query::d::ProviderDefinition> definitions;
};

// Errors have DTrace's text without the leading "dtrace: ".
Expected<Providers> read_providers(const DtraceRequest& request, kernel::Catalogue& catalogue,
                                   query::d::TypeProvider* types);

}  // namespace clew::engine
