// SPDX-License-Identifier: Apache-2.0
#include "copy/prove_module.h"

#include <utility>

namespace clew::copy {

namespace {

uint64_t size_of(const code::ModuleCode& code, uint32_t function) {
  uint64_t size = 0;
  for (const code::AddressRange& part : code.parts_of(function))
    size += part.end - part.begin;
  return size;
}

}  // namespace

ModuleProof prove_module(const Facts& facts) {
  ModuleProof proof;
  for (uint32_t i = 0; i < facts.code.functions().size(); ++i) {
    if (facts.code.owner_of(i) != i) continue;
    const uint64_t size = size_of(facts.code, i);
    auto result = prove(facts, i);
    if (result) {
      proof.proved.push_back(std::move(*result));
      proof.proved_bytes += size;
    } else {
      proof.refused.push_back({i, result.error(), size});
      proof.refused_bytes += size;
    }
  }
  return proof;
}

}  // namespace clew::copy
