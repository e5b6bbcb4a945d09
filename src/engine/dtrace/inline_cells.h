// SPDX-License-Identifier: Apache-2.0
// Cells of aggregations in the windows of one process's threads (plan::d::CellUpdate): which words
// they are, and what they add up to. A count there is one instruction, and no thread waits for
// another; the tables that processes and the kernel share have all other updates.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "kernel/machine_session.h"
#include "kernel/machine_state.h"
#include "plan/d/generate.h"

namespace clew::engine {

// The part of a window where cells may be: [begin, end), behind all that clauses have there but
// alloca()'s room.
struct CellRoom {
  uint32_t begin = 0;
  uint32_t end = 0;

  [[nodiscard]] uint32_t size_bytes() const { return end - begin; }
};

// Room for as many as these enablings can want, or as there is. Where functions with loops are
// called, there is room for the words of fuel at least: the first counts the firings that were not
// begun, the others, by enabling, those that ran out of fuel.
CellRoom cell_room(const plan::d::Generated& generated,
                   std::span<const kernel::MachineEnabling> enablings);

inline constexpr uint32_t kFuelWords = 256;
// What the words of fuel need.
uint32_t fuel_bytes(const plan::d::Generated& generated);

class InlineCells {
 public:
  // `generated` is borrowed.
  InlineCells(const plan::d::Generated& generated, CellRoom room, pid_t pid)
      : generated_(generated), room_(room), pid_(pid), words_(fuel_bytes(generated) / 8) {}

  // The window pointer to an update's cells where a probe has these names; nothing without room.
  // Updates of one key have one place.
  std::optional<uint32_t> place(const plan::d::CellUpdate& update,
                                const abi::MachineEnabled& names);
  [[nodiscard]] uint32_t words() const { return words_; }
  // Of an enabling: which of the words of fuel is its.
  static uint32_t fuel_word(uint32_t enabling) { return enabling % kFuelWords; }
  // Window pointer to it; nothing where no function has loops.
  [[nodiscard]] std::optional<uint32_t> fuel_place(uint32_t enabling) const;
  // Of all threads, from the same sums as add() takes: firings that were out of fuel, by fuel_word;
  // and those that were not begun.
  [[nodiscard]] std::span<const uint64_t> out_of_fuel(std::span<const uint64_t> sums) const;
  [[nodiscard]] uint64_t left_alone(std::span<const uint64_t> sums) const;
  [[nodiscard]] CellRoom room() const { return room_; }

  // `sums`: the words of all threads added up, as they are now. Adds the keys of an aggregation to
  // what the tables have; with `takes`, what is added is not seen again.
  void add(uint32_t aggregation, std::span<const uint64_t> sums, bool takes,
           std::vector<kernel::MachineAggregate>& entries);

 private:
  using Key = std::vector<uint8_t>;

  [[nodiscard]] Key key_of(const plan::d::CellUpdate& update,
                           const abi::MachineEnabled& names) const;

  const plan::d::Generated& generated_;
  CellRoom room_;
  pid_t pid_;
  uint32_t words_;
  std::map<std::pair<uint32_t, Key>, uint32_t> places_;  // Their first words.
  std::vector<uint64_t> taken_;
};

}  // namespace clew::engine
