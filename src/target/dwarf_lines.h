// SPDX-License-Identifier: Apache-2.0
// LineTable: source lines to addresses and back. Internal to target/.
//
// Only units whose list of files names the file are decoded, one after the other, since all line
// tables of a large program together do not fit into memory.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "target/dwarf_file.h"
#include "target/dwarf_functions.h"
#include "target/types.h"

namespace clew::target {

class LineTable {
 public:
  // All must outlive it and stay where they are. `code`: where addresses of the module may lie; the
  // linker leaves lines of functions that it dropped.
  LineTable(DwarfFile& file, FunctionTable& functions, std::span<const AddressRange> code)
      : file_(file), functions_(functions), code_(code) {}

  Expected<std::vector<LineAddress>> find(std::string_view file, uint32_t line);
  std::optional<SourceLine> at(uint64_t address);

 private:
  struct Search;
  void search_unit(Dwarf_Die& unit, const LineSections& sections, Search& search);
  void add_row(Dwarf_Line* row, Search& search);
  [[nodiscard]] bool is_code(uint64_t address) const;
  std::vector<LineAddress> one_per_scope(std::vector<LineAddress> found);
  std::string nearest_file(std::string_view wanted);

  DwarfFile& file_;
  FunctionTable& functions_;
  std::span<const AddressRange> code_;
};

// Whether `path` ends in `wanted` at a '/'.
bool path_ends_with(std::string_view path, std::string_view wanted);

}  // namespace clew::target
