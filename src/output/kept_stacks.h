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
  // An address means something else where a call returns to it (StackAddress::is_call).
  struct Address {
    std::optional<StackNames::Frames> code{};
    std::optional<StackNames::Frames> call{};
    bool is_signal_return = false;
  };
  using Place = std::pair<uint64_t, uint64_t>;  // The process, as words of stacks have it; address.

  // `words`: abi/query_window.h.
  void keep(std::span<const uint64_t> words, StackNames& names);
  void put(const Place& place, Address address) { addresses_[place] = std::move(address); }

  // As StackNames::named() was then; what was not kept is an address.
  [[nodiscard]] aggregate::Stack named(std::span<const uint64_t> words) const;
  [[nodiscard]] const std::map<Place, Address>& addresses() const { return addresses_; }

 private:
  std::map<Place, Address> addresses_;
};

}  // namespace clew::output
