// SPDX-License-Identifier: Apache-2.0
// FunctionTable: the function entries of DWARF by address, and how often each was inlined. Internal
// to target/.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "target/dwarf_file.h"

namespace clew::target {

class FunctionTable {
 public:
  // `file` must outlive it and stay where it is.
  explicit FunctionTable(DwarfFile& file) : file_(file) {}

  // The entry of the function that starts at the address.
  std::optional<Dwarf_Die> find(uint64_t address);

  // Inlined copies of a function, over all units. Nothing when its DWARF is larger than
  // kInlineScanMaxBytes: reading all of it would take many seconds.
  std::optional<uint64_t> inlined_copies(Dwarf_Die function);

  // The innermost function or inlined copy at an address, as a number that tells them apart; 0 for
  // none.
  uint64_t scope_at(uint64_t address);
  // The function at an address, and the copies that were inlined into it there, each behind the one
  // that it is in. Empty when DWARF describes none.
  std::vector<Dwarf_Die> scopes_at(uint64_t address);

 private:
  struct Scope {
    AddressRange range;
    uint64_t id = 0;
    Dwarf_Die die{};
  };
  struct UnitFunctions {
    bool is_read = false;
    std::unordered_map<uint64_t, Dwarf_Die> by_address;
    std::vector<Scope> scopes;  // As they nest: an inner one comes after its outer one.
  };

  UnitFunctions* unit_functions(DwarfUnit* unit);
  void walk(Dwarf_Die& parent, unsigned depth, UnitFunctions& functions);
  void add_function(Dwarf_Die& die, UnitFunctions& functions);
  void add_inlined(Dwarf_Die& die, UnitFunctions& functions);
  static std::string inline_key(Dwarf_Die& origin);

  DwarfFile& file_;
  std::vector<UnitFunctions> units_;
  std::unordered_map<std::string, uint64_t> inlined_;
  uint64_t next_scope_ = 1;
};

inline constexpr uint64_t kInlineScanMaxBytes = uint64_t{400} << 20;

}  // namespace clew::target
