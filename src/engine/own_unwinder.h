// SPDX-License-Identifier: Apache-2.0
// Unwinders that are parts of modules, and ask dl_iterate_phdr() alone where they are: LLVM's, and
// gcc's from before 12, often linked into a program.
#pragma once

#include "inline/answering_code.h"
#include "target/linked_names.h"
#include "target/process.h"

namespace clew::engine {

bool brings_unwinder(const target::ProcessModule& module, const target::LinkedNames& names);

// From where such a one asks.
inline_::Asker extent_of(const target::ProcessModule& module);

}  // namespace clew::engine
