// SPDX-License-Identifier: Apache-2.0
// A bundle of a snap, with what is told of it on standard error.
#pragma once

#include "base/error.h"
#include "cmd/console.h"
#include "recorder/bundle.h"

namespace clew::cmd {

// What is not in it is a warning. Errors: recorder::write_bundle().
Expected<void> write_bundle(recorder::BundleRequest request, Console& console);

}  // namespace clew::cmd
