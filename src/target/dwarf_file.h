// SPDX-License-Identifier: Apache-2.0
// DwarfFile: the DWARF of one module, opened through libdw when it is first asked for, with the few
// questions about entries (DIEs) that the rest of target/ puts. Internal to target/.
//
// A file below kCopyMaxBytes is read into memory section by section, so that truncating it cannot
// harm us; a larger one is mapped, since its sections would not fit the memory that Clew promises,
// unless others could truncate it: then it is read up to kForeignMaxBytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <libelf.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "target/dwarf_line_files.h"
#include "target/module_image.h"

namespace clew::target {

inline constexpr uint64_t kCopyMaxBytes = uint64_t{256} << 20;
inline constexpr uint64_t kForeignMaxBytes = uint64_t{2} << 30;

// A compilation unit, and the code that it says it has.
struct DwarfUnit {
  Dwarf_Die die{};
  std::vector<AddressRange> ranges;
};

class DwarfFile {
 public:
  // Finds the file; reads only its section headers. NotFound when there is none.
  static Expected<DwarfFile> find(const ModuleImage& image, const ReadOptions& options);

  // All units, in the order of the file; read at the first call. Empty when the DWARF is broken.
  std::span<DwarfUnit> units();
  // The unit whose code covers the address; null when none does.
  DwarfUnit* unit_at(uint64_t address);

  // Of the file's line tables; empty before units() or when there are none.
  LineSections line_sections();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] uint64_t size_bytes() const { return size_bytes_; }

 private:
  struct EndElf {
    void operator()(Elf* elf) const { elf_end(elf); }
  };
  struct EndDwarf {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  struct UnitRange {
    AddressRange range;
    size_t unit = 0;
  };

  bool begin();
  void read_units();

  std::string path_;
  FileDescriptor file_;
  uint64_t size_bytes_ = 0;
  bool is_mapped_ = false;
  std::unique_ptr<Elf, EndElf> elf_;
  std::unique_ptr<Dwarf, EndDwarf> dwarf_;
  bool is_read_ = false;
  std::vector<DwarfUnit> units_;
  std::vector<UnitRange> unit_ranges_;  // By address.
};

// Attributes that may be inherited through abstract origin or specification.
std::string_view die_name(Dwarf_Die& die);  // Empty when there is none.
std::string_view die_linkage_name(Dwarf_Die& die);
std::optional<uint64_t> die_unsigned(Dwarf_Die& die, unsigned attribute);
bool die_flag(Dwarf_Die& die, unsigned attribute);
std::optional<Dwarf_Die> die_reference(Dwarf_Die& die, unsigned attribute);

// The first child and then each sibling, at most kChildrenMax.
template <typename Visit>
void for_each_child(Dwarf_Die& parent, Visit visit) {
  constexpr size_t kChildrenMax = size_t{1} << 24;
  Dwarf_Die child;
  if (dwarf_child(&parent, &child) != 0) return;
  for (size_t i = 0; i < kChildrenMax; ++i) {
    visit(child);
    Dwarf_Die next;
    if (dwarf_siblingof(&child, &next) != 0) return;
    child = next;
  }
}

// The code of a function or an inlined copy.
std::vector<AddressRange> die_ranges(Dwarf_Die& die);

bool is_cpp(Dwarf_Die& die);  // Names of records stand without "struct", and have namespaces.

}  // namespace clew::target
