// SPDX-License-Identifier: Apache-2.0
// Calls through words that the loader fills, of which it is known what they lead to.
//   - Silent ones: the C library's functions that call nothing of the program's, so nothing is
//     recorded before they return. A path goes on behind such a call, in the same record.
//   - Own ones: functions that the file itself exports, and its libraries' way to call them.
//
// A name is all that the file says. Whoever installs copies checks where each of these words leads:
// to a C library that does not record, or to the module itself. Else it tiles without them: a
// program may bring its own malloc, and take the place of any function that a library exports.
// No silent names are: what may be cancelled (a clean-up handler runs then), prints (it has hooks),
// takes a function, returns twice or not at all, or destroys an exception.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "code/module_code.h"
#include "target/linked_names.h"

namespace clew::recorder {

// Ascending, as the linker has them (without the version).
[[nodiscard]] std::span<const std::string_view> silent_names();

// A word, and what it leads to.
struct KnownImport {
  uint64_t slot = 0;
  uint64_t own = 0;  // The file's own function there; 0: a silent one.
};

class Imports {
 public:
  // None: every call through a word may record.
  Imports() = default;
  // By slot.
  explicit Imports(std::vector<KnownImport> known) : known_(std::move(known)) {}
  static Imports of(const target::LinkedNames& names);

  // What this call or jump leads to, through the word or a stub of the PLT. Null: not known.
  [[nodiscard]] const KnownImport* behind(const code::ModuleCode& code,
                                          const code::Instruction& branch) const;
  [[nodiscard]] const std::vector<KnownImport>& known() const { return known_; }

 private:
  std::vector<KnownImport> known_;  // By slot.
};

}  // namespace clew::recorder
