// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as an object: an error, or functions that are programs.
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "extension/extension.h"
#include "isa/validator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto extension = clew::extension::read({data, size}, "fuzzed");
  if (!extension) return 0;
  for (const clew::extension::Function& function : extension->functions) {
    if (!function.refusal.empty()) continue;
    CLEW_ASSERT(clew::isa::validate({.name = function.name, .code = function.code}).has_value());
  }
  return 0;
}
