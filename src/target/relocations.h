// SPDX-License-Identifier: Apache-2.0
// What the loader will write into a module's data: pointers into its code, the results of IFUNC
// resolvers, the addresses of imported symbols, and the fields of its restartable sequences. psABI
// x86-64, section 4.4. Internal to target/.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "target/dynamic.h"
#include "target/elf_file.h"
#include "target/file_memory.h"
#include "target/image_tables.h"

namespace clew::target {

// Fills `code_pointers`, `ifunc_slots` and `restartable_sequences`.
void read_relocations(const ElfFile& file, const DynamicTable& dynamic, FileMemory& memory,
                      ImageTables& tables);

// The words that the loader fills with an address in the file's code. Ascending by slot.
std::vector<CodePointerSlot> find_code_pointer_slots(const ElfFile& file,
                                                     const DynamicTable& dynamic,
                                                     FileMemory& memory, const ImageTables& tables);

// The slots that the loader fills with the address of `symbol`, or of any.
Expected<std::vector<ImportSlot>> find_import_slots(const ElfFile& file,
                                                    const DynamicTable& dynamic,
                                                    std::optional<std::string_view> symbol);

}  // namespace clew::target
