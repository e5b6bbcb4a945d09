// SPDX-License-Identifier: Apache-2.0
// provider NAME { probe NAME(native parameters) : (translated parameters); ... }: what a program
// that is built with `dtrace -h` and `-G` gives. A trace has it from the built file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "query/d/stability.h"
#include "query/d/types.h"

namespace clew::query::d {

struct ProviderDefinition {
  std::string name;
  struct Probe {
    std::string name;  // As it was written, with "__" where scripts say "-".
    std::vector<TypeParameter> native;
    std::vector<TypeParameter> translated;
    bool is_translated = false;  // Else args[] is what is native.
  };
  std::vector<Probe> probes;
  std::optional<ProviderStability> stability;  // That of #pragma D attributes in its file.
};

}  // namespace clew::query::d
