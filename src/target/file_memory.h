// SPDX-License-Identifier: Apache-2.0
// FileMemory: an ELF file as its loader would place it, read by virtual address. A section (or, in
// a file without section headers, a segment) is read whole when something in it is first asked for.
// Internal to target/; for one thread, and only while a file is analysed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "target/elf_file.h"
#include "target/image_tables.h"

namespace clew::target {

class FileMemory {
 public:
  // Both must outlive it; `sections` by address.
  FileMemory(const ElfFile& file, std::span<const SectionRecord> sections)
      : file_(file), sections_(sections), parts_(sections.size()) {}

  // From the address to the end of its section's file part; empty when there is nothing.
  std::span<const uint8_t> from(uint64_t address);

 private:
  struct Part {
    bool is_read = false;
    Buffer bytes;
  };
  const ElfFile& file_;
  std::span<const SectionRecord> sections_;
  std::vector<Part> parts_;
};

// The loadable sections of a file, or its segments in their place. Adds their names to the tables.
void read_section_records(const ElfFile& file, ImageTables& tables);

}  // namespace clew::target
