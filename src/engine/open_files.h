// SPDX-License-Identifier: Apache-2.0
// How many files the tracer may have open: each process that it traces takes a few.
#pragma once

namespace clew::engine {

// As many as it is allowed to have (RLIMIT_NOFILE).
void allow_many_files();

}  // namespace clew::engine
