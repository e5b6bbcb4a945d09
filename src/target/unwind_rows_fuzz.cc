// SPDX-License-Identifier: Apache-2.0
// Any bytes are call frame information to someone: as a whole file, and as the .eh_frame of a file
// that is otherwise in order, so that the fuzzer need not find the way through ELF first.
#include <algorithm>
#include <cstring>

#include <elf.h>

#include "base/assert.h"
#include "target/frame_tables.h"
#include "target/unwind_expression.h"
#include "target/unwind_rows.h"

namespace clew::target {
namespace {

constexpr uint64_t kFrameAddress = 0x1000;
constexpr uint64_t kCodeAddress = 0x100000;
constexpr uint64_t kCodeBytes = 0x10000;
constexpr char kNames[] = "\0.eh_frame\0.text\0.names";

void check(const Expected<UnwindRows>& rows) {
  if (!rows) return;
  for (size_t i = 0; i < rows->rows.size(); ++i) {
    CLEW_ASSERT(rows->rows[i].rule < rows->rules.size());
    CLEW_ASSERT(i == 0 || rows->rows[i - 1].address < rows->rows[i].address);
  }
}

void check(const Expected<FrameTables>& tables) {
  if (!tables) return;
  uint64_t end = 0;
  for (const FrameEntry& entry : tables->entries) {
    CLEW_ASSERT(entry.address >= end && entry.common < tables->commons.size());
    end = entry.end();
  }
}

template <typename Value>
void put(std::vector<uint8_t>& to, const Value& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

Elf64_Shdr section(uint32_t name, uint64_t address, uint64_t offset, uint64_t size) {
  Elf64_Shdr header{};
  header.sh_name = name;
  header.sh_type = SHT_PROGBITS;
  header.sh_flags = SHF_ALLOC;
  header.sh_addr = address;
  header.sh_offset = offset;
  header.sh_size = size;
  return header;
}

// Header, .eh_frame, names, section headers.
std::vector<uint8_t> file_around(std::span<const uint8_t> frame) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 4;
  header.e_shstrndx = 3;
  const uint64_t names_offset = sizeof header + frame.size();
  header.e_shoff = names_offset + sizeof kNames;
  std::vector<uint8_t> file;
  put(file, header);
  file.insert(file.end(), frame.begin(), frame.end());
  put(file, kNames);
  put(file, Elf64_Shdr{});
  put(file, section(1, kFrameAddress, sizeof header, frame.size()));
  Elf64_Shdr code = section(11, kCodeAddress, 0, kCodeBytes);
  code.sh_type = SHT_NOBITS;
  code.sh_flags |= SHF_EXECINSTR;
  put(file, code);
  Elf64_Shdr names = section(17, 0, names_offset, sizeof kNames);
  names.sh_type = SHT_STRTAB;
  names.sh_flags = 0;
  put(file, names);
  return file;
}

}  // namespace
}  // namespace clew::target

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  clew::target::check(clew::target::read_unwind_rows(bytes));
  clew::target::check(clew::target::read_unwind_rows(clew::target::file_around(bytes)));
  clew::target::check(clew::target::read_frame_tables(bytes));
  clew::target::check(clew::target::read_frame_tables(clew::target::file_around(bytes)));
  (void)clew::target::read_cfa_expression(bytes);
  (void)clew::target::read_saved_expression(bytes);
  return 0;
}
