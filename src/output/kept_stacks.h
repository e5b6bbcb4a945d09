// SPDX-License-Identifier: Apache-2.0
// What was known of the addresses of stacks while their processes were there, so that the stacks
// have the same names when these are gone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aggregate/value.h"
#include "output/stack_names.h"

namespace clew::output {

class KeptStacks {
 public:
  using Frames = StackNames::Frames;
  // What is kept at most; beyond that, stacks have addresses. With both a file of events can hold
  // it (collect/spill.h).
  static constexpr size_t kAddressesMax = size_t{1} << 19;
  static constexpr size_t kTextBytesMax = size_t{16} << 20;  // Of all names.
  // Of one address: calls that were inlined there.
  static constexpr size_t kFramesMax = 256;

  // The process, as words of stacks have it, and an address there, which means something else where
  // a call returns to it (StackAddress::is_call).
  struct Place {
    uint64_t process = 0;
    uint64_t address = 0;
    bool is_call = false;
    auto operator<=>(const Place&) const = default;
  };
  struct Meaning {
    size_t frames = 0;  // In all_frames().
    bool is_signal_return = false;
  };

  // The stack as StackNames::named() gives it, which is kept. What is not known yet is asked again
  // the next time. `words`: abi/query_window.h.
  aggregate::Stack named_now(std::span<const uint64_t> words, StackNames& names);
  // As it was named then; what was not kept is an address.
  [[nodiscard]] aggregate::Stack named(std::span<const uint64_t> words) const;

  // False when there is no room.
  bool put(const Place& place, const Frames& frames, bool is_signal_return);
  [[nodiscard]] const std::map<Place, Meaning>& places() const { return places_; }
  // What places mean, each once.
  [[nodiscard]] const std::vector<Frames>& all_frames() const { return all_frames_; }
  // Addresses that found no room, as often as they came.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

 private:
  std::map<Place, Meaning> places_;
  std::vector<Frames> all_frames_;
  std::map<Frames, size_t> numbers_;  // Of them.
  size_t text_bytes_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace clew::output
