// SPDX-License-Identifier: Apache-2.0
// Ends Clew with a message: a broken promise inside Clew must not reach a traced process. A traced
// process survives this: the kernel lets it run on when its tracer dies.
#include "base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace clew::detail {

void assertion_failed(const char* condition, const char* file, int line) {
  (void)std::fprintf(stderr, "clew: internal error: %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace clew::detail
