// SPDX-License-Identifier: Apache-2.0
// All functions of a module: those that are proved, and why the others are not.
#pragma once

#include <cstdint>
#include <vector>

#include "copy/prove.h"

namespace clew::copy {

struct NotCopied {
  uint32_t function = 0;  // In Facts::code.functions().
  Refusal refusal;
  uint64_t size_bytes = 0;  // With its cold parts.
};

struct ModuleProof {
  std::vector<Proved> proved;  // By function, and so are the others.
  std::vector<NotCopied> refused;
  uint64_t proved_bytes = 0;
  uint64_t refused_bytes = 0;
};

ModuleProof prove_module(const Facts& facts);

}  // namespace clew::copy
