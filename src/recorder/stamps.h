// SPDX-License-Identifier: Apache-2.0
// Which calls have a Time record, so that the order of threads is known: those of the C library
// (and of C++'s) that may wait for another thread, or that another one may wait for. What is handed
// over is in front of the moment when it is given away, and behind the moment when it is received.
//   - In front of calls that let others go on: unlock, signal, write, create.
//   - Behind calls that come back because of others, and hardly ever wait: lock.
//   - Around those that are made to wait: what ran before is not spread over the wait then.
//
// A name is all that counts, wherever it leads: a record is right behind any call. Loops that only
// compute write none. Such a call is never a silent one (imports.h): it ends its path.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "abi/recorder.h"
#include "abi/stub.h"
#include "code/module_code.h"
#include "target/linked_names.h"

namespace clew::recorder {

enum class Stamped : uint32_t { InFront = 1, Behind = 2, Around = 3 };

constexpr bool is_in_front(Stamped where) {
  return where != Stamped::Behind;
}
constexpr bool is_behind(Stamped where) {
  return where != Stamped::InFront;
}

struct StampedName {
  std::string_view name;
  Stamped where = Stamped::Around;
  // With its first argument, a descriptor; then it is stamped in front, and behind to know how
  // much.
  abi::Transfer transfer = abi::Transfer::None;
  std::optional<abi::Register> flags = std::nullopt;  // MSG_PEEK may be among them.
};
// Ascending, as the linker has them (without the version).
[[nodiscard]] std::span<const StampedName> stamped_names();

// A word that the loader fills, through which such calls go.
struct StampedImport {
  uint64_t slot = 0;
  Stamped where = Stamped::Around;
  abi::Transfer transfer = abi::Transfer::None;
  std::optional<abi::Register> flags = std::nullopt;

  bool operator==(const StampedImport&) const = default;
};
// All but the slot and where, as files have it: the transfer, and in bits 15..8 its flags' register
// and 1. Nothing of bits that are none.
uint32_t transfer_bits(const StampedImport& import);
std::optional<StampedImport> stamped_import(uint64_t slot, Stamped where, uint32_t transfer_bits);

// Of the file's imports, but for what it exports itself. By slot.
std::vector<StampedImport> stamped_imports(const target::LinkedNames& names);

// The stamped import that a call or jump leads through; null: none. `all`: by slot.
const StampedImport* stamped_by(std::span<const StampedImport> all, const code::ModuleCode& code,
                                const code::Instruction& branch);

}  // namespace clew::recorder
