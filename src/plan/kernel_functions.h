// SPDX-License-Identifier: Apache-2.0
// Functions of extensions that a query's programs in the kernel call.
#pragma once

#include <span>

#include "extension/extension.h"
#include "plan/kernel_lower.h"

namespace clew::plan {

// Adds to `lowered` those that its programs call, with the variables of their extensions one behind
// the other.
void link_kernel_functions(std::span<const extension::Extension> extensions,
                           KernelLowered& lowered);

}  // namespace clew::plan
