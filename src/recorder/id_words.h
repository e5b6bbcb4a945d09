// SPDX-License-Identifier: Apache-2.0
// Where code that records has the words of its records: what must change when a module gets other
// ids.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "copy/module_copy.h"

namespace clew::recorder {

// Ids from `first` on, so many.
struct IdRange {
  uint32_t first = 1;
  uint32_t count = 0;
};

// In one probe or several: offsets of immediate operands of four bytes that are such records.
// Nothing when it does not decode.
std::optional<std::vector<uint32_t>> id_words(std::span<const uint8_t> probes, const IdRange& ids);

// The same in all that is inserted in a copy.
std::optional<std::vector<uint32_t>> id_words(const copy::ModuleCopy& copy, const IdRange& ids);

}  // namespace clew::recorder
