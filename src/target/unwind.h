// SPDX-License-Identifier: Apache-2.0
// .eh_frame and .gcc_except_table: where functions start and end, whether they start with a fresh
// frame, and where exceptions land in them. LSB core specification, chapter 10; DWARF 5,
// section 6.4; Itanium C++ ABI exception handling, level II. Internal to target/.
#pragma once

#include "target/elf_file.h"
#include "target/file_memory.h"
#include "target/image_tables.h"

namespace clew::target {

// Fills `fdes` and `landing_pads`. What is broken is left out and named in `problems`.
void read_unwind_tables(const ElfFile& file, FileMemory& memory, ImageTables& tables);

}  // namespace clew::target
