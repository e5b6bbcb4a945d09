// SPDX-License-Identifier: Apache-2.0
// Where a thread has its cursor that stops at an instruction of a copy, inserted or not.
#pragma once

#include <cstdint>
#include <vector>

#include "copy/module_copy.h"
#include "recorder/probes.h"

namespace clew::recorder {

class CursorMap {
 public:
  CursorMap() = default;
  CursorMap(const RecordedParts& parts, const Probes& probes, const copy::ModuleCopy& copy);

  // By offset in the copy.
  [[nodiscard]] Home home_at(uint32_t offset) const;

 private:
  friend class CursorMapper;

  struct Place {
    uint32_t offset = 0;  // Up to the next one.
    Home home = kMemory;
  };
  std::vector<Place> places_;
};

}  // namespace clew::recorder
