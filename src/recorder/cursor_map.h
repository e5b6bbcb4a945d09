// SPDX-License-Identifier: Apache-2.0
// Where a thread has its cursor that stops at an instruction of a copy, inserted or not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sys/user.h>

#include "copy/module_copy.h"
#include "recorder/probes.h"

namespace clew::recorder {

class CursorMap {
 public:
  struct Place {
    uint32_t offset = 0;  // Up to the next one.
    Home home = kMemory;
  };

  CursorMap() = default;
  CursorMap(const RecordedParts& parts, const Probes& probes, const copy::ModuleCopy& copy);

  // Places by offset, in order.
  explicit CursorMap(std::vector<Place> places) : places_(std::move(places)) {}

  // By offset in the copy.
  [[nodiscard]] Home home_at(uint32_t offset) const;
  // Of a thread that stopped in the copy, as it was moved, where a register has its cursor: newer
  // than that in memory.
  [[nodiscard]] std::optional<uint64_t> cursor_in(const user_regs_struct& registers,
                                                  const copy::ModuleCopy& copy) const;
  [[nodiscard]] std::span<const Place> places() const { return places_; }

 private:
  friend class CursorMapper;

  std::vector<Place> places_;
};

}  // namespace clew::recorder
