// SPDX-License-Identifier: Apache-2.0
// Does a copy do what the originals do? The final bytes are decoded once more, and nothing of how
// they were written is believed:
//   - each instruction that control reaches in a proved function is in the copy, once;
//   - it has the same bytes but for its displacement, or is the same jump with another length;
//   - what it leads to is the copy of what the original leads to, or that itself when it has none;
//   - behind it stands what control runs on to, or a jump there;
//   - what is inserted is where it is wanted, and nowhere else;
//   - tables have the same entries, by the same rule, and are named by nobody else;
//   - every field that holds a distance to the module or an address is among the fix-ups;
//   - all other bytes are int3 in the code and 0 between tables, and lists are in their order.
// Only what passes is put into a process.
#pragma once

#include <span>
#include <utility>

#include "base/error.h"
#include "copy/module_copy.h"

namespace clew::copy {

class CheckedCopy {
 public:
  // For whoever only reads it: its bytes are those of one that has passed, as the caller knows.
  static CheckedCopy known(ModuleCopy copy) { return CheckedCopy(std::move(copy)); }
  [[nodiscard]] const ModuleCopy& copy() const { return copy_; }
  // Moves its bytes to where they will be: `shift` is added to the link-time addresses of the copy,
  // `load_bias` to those of the module. Errors: Limit when that is too far away.
  Expected<void> move_to(uint64_t load_bias, uint64_t shift);
  // Adds to words of its bytes, at ascending offsets: numbers in what was inserted.
  void add_to_words(std::span<const uint32_t> offsets, uint32_t value);
  // The bytes and where they go stay; what is known of single instructions and functions goes.
  void forget_places();

 private:
  friend Expected<CheckedCopy> check(const Facts& facts, std::span<const Proved> proved,
                                     const Insertions& insertions, ModuleCopy copy);
  friend class KeptCopy;  // What had passed when it was written.
  explicit CheckedCopy(ModuleCopy copy) : copy_(std::move(copy)) {}
  ModuleCopy copy_;
};

// Errors: Refused, with the first place that differs.
Expected<CheckedCopy> check(const Facts& facts, std::span<const Proved> proved,
                            const Insertions& insertions, ModuleCopy copy);

}  // namespace clew::copy
