// SPDX-License-Identifier: Apache-2.0
// What a thread ran, as moments: a moment is a stretch of code of one place (places.h) in one
// activation. They are counted from the end, since that is where one looks from, and made as they
// are asked for: of what stands further in front nothing is looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "recorder/places.h"
#include "recorder/records.h"
#include "recorder/snap.h"
#include "recorder/snap_modules.h"
#include "recorder/walk.h"

namespace clew::recorder {

struct Moment {
  uint64_t address = 0;  // Of the first instruction, in the module's file.
  uint32_t place = 0;
  int32_t depth = 0;      // Calls in progress, relative to the others of the thread.
  uint8_t marks = 0;      // Of what may be missing in front of it: see walk.h.
  bool is_entry = false;  // The first one of an activation.
  size_t step = 0;        // In which it begins, of Walk::steps.
};

// When something began, by the time stamp counter: neither before nor behind. Nothing: not known.
struct Span {
  std::optional<uint64_t> after{};
  std::optional<uint64_t> before{};

  bool operator==(const Span&) const = default;
};

class Moments {
 public:
  Moments() = default;
  Moments(const Moments&) = delete;
  Moments& operator=(const Moments&) = delete;
  virtual ~Moments() = default;

  // 0: the last one. Nothing: there are not so many.
  [[nodiscard]] virtual std::optional<Moment> at(size_t back) = 0;
  [[nodiscard]] virtual const Place& place(uint32_t number) const = 0;
};

// Where the thread stopped, by its program counter.
struct Stop {
  uint32_t place = 0;
  uint64_t address = 0;  // In the file; the program counter, where it is in none.
  // It is in a copy, and the records that lead there are lost.
  bool is_uncertain = false;
  // It is in the last moment. Else behind it, in code without records, or it is uncertain.
  bool is_recorded = false;
};

class History final : public Moments {
 public:
  // Borrows modules and places.
  History(SnapModules& modules, Places& places, const Snap& snap, const SnapThread& thread);

  std::optional<Moment> at(size_t back) override;
  [[nodiscard]] const Place& place(uint32_t number) const override { return places_[number]; }

  [[nodiscard]] const Stop& stop() const { return stop_; }
  // For its counts.
  [[nodiscard]] const Walk& walked() const { return walk_; }
  // When a step of Walk::steps began, and what begins in it.
  [[nodiscard]] Span began(size_t step) const;

 private:
  void make_one();
  [[nodiscard]] std::span<const Piece> pieces_of(size_t step);
  [[nodiscard]] bool goes_on(size_t step);

  Places& places_;
  Walk walk_;
  Stop stop_;
  std::optional<uint64_t> end_;  // Of the last step, where that is sure: an instruction.
  std::vector<Moment> moments_;  // The last one first.
  std::vector<Stamp> stamps_;    // `record` is the number of a step.
  size_t steps_left_ = 0;        // Of walk_.steps.
  size_t pieces_left_ = 0;       // Of the last of these.
};

// Of the thread's lobe; none where it has none.
Records records_of(const SnapModules& modules, const Snap& snap, const SnapThread& thread);

// Where a thread stopped that is not to be walked.
Stop stop_of(SnapModules& modules, Places& places, const SnapThread& thread);

}  // namespace clew::recorder
