// SPDX-License-Identifier: Apache-2.0
#include "target/relocations.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "target/byte_reader.h"

namespace clew::target {

namespace {

constexpr uint64_t kWordBytes = 8;

// The bytes of every relocation table that is applied at load time. A static program has no dynamic
// table, and its startup code applies the sections.
std::vector<Buffer> read_rela_tables(const ElfFile& file, const DynamicTable& dynamic) {
  std::vector<Buffer> tables;
  const auto add = [&](Expected<Buffer> bytes) {
    if (bytes) tables.push_back(std::move(*bytes));
  };
  if (dynamic.is_there()) {
    add(file.read_at_address(dynamic.rela, dynamic.rela_bytes));
    // Some linkers count the PLT's table into the other.
    const bool separate = dynamic.plt_rela - dynamic.rela >= dynamic.rela_bytes;
    if (separate) add(file.read_at_address(dynamic.plt_rela, dynamic.plt_rela_bytes));
    return tables;
  }
  for (const ElfSection& section : file.sections()) {
    const bool loaded = (section.header.sh_flags & SHF_ALLOC) != 0;
    if (loaded && section.header.sh_type == SHT_RELA) add(file.read(section));
  }
  return tables;
}

template <typename Visit>
void for_each_rela(const std::vector<Buffer>& tables, Visit visit) {
  for (const Buffer& table : tables) {
    const auto bytes = table.view();
    for (size_t at = 0; at + sizeof(Elf64_Rela) <= bytes.size(); at += sizeof(Elf64_Rela)) {
      Elf64_Rela rela;
      std::memcpy(&rela, bytes.data() + at, sizeof(rela));
      visit(rela);
    }
  }
}

// The dynamic symbols up to the last that a relocation names. Neither hash table counts them all:
// it leaves imported ones out.
Buffer read_named_symbols(const ElfFile& file, const DynamicTable& dynamic,
                          const std::vector<Buffer>& relocations) {
  uint64_t count = 0;
  for_each_rela(relocations, [&](const Elf64_Rela& rela) {
    count = std::max<uint64_t>(count, ELF64_R_SYM(rela.r_info) + 1);
  });
  if (dynamic.symbol_table == 0) return {};
  auto bytes = file.read_at_address(dynamic.symbol_table, count * sizeof(Elf64_Sym));
  return bytes ? std::move(*bytes) : Buffer();
}

// Relative relocations without addends: an even word is an address that needs one; an odd word is a
// bitmap, after its lowest bit, of the 63 words that follow the last one (gABI, SHT_RELR).
template <typename Visit>
void for_each_relr(const ElfFile& file, const DynamicTable& dynamic, Visit visit) {
  if (dynamic.relr == 0) return;
  auto bytes = file.read_at_address(dynamic.relr, dynamic.relr_bytes);
  if (!bytes) return;
  ByteReader reader(bytes->view());
  uint64_t next = 0;
  while (reader.remaining() >= kWordBytes) {
    const auto entry = reader.read<uint64_t>();
    if ((entry & 1) == 0) {
      visit(entry);
      next = entry + kWordBytes;
      continue;
    }
    for (unsigned bit = 1; bit < 64; ++bit) {
      if (((entry >> bit) & 1) != 0) visit(next + (bit - 1) * kWordBytes);
    }
    next += 63 * kWordBytes;
  }
}

uint64_t word_at(FileMemory& memory, uint64_t address) {
  return ByteReader(memory.from(address)).read<uint64_t>();
}

// 0 for symbols of other modules.
uint64_t symbol_value(const Buffer& symbols, uint64_t index) {
  if (index >= symbols.view().size() / sizeof(Elf64_Sym)) return 0;
  return ByteReader(symbols.view(), index * sizeof(Elf64_Sym)).read<Elf64_Sym>().st_value;
}

// The words that the loader fills with an address of the file, which it is told in one of three
// ways. Those of other modules' symbols have no value here, but their addend.
template <typename Visit>
void for_each_word(const ElfFile& file, const DynamicTable& dynamic, FileMemory& memory,
                   const std::vector<Buffer>& relocations, Visit visit) {
  const Buffer symbols = read_named_symbols(file, dynamic, relocations);
  for_each_rela(relocations, [&](const Elf64_Rela& rela) {
    const auto addend = static_cast<uint64_t>(rela.r_addend);
    const auto type = ELF64_R_TYPE(rela.r_info);
    if (type == R_X86_64_RELATIVE) visit(rela.r_offset, addend);
    if (type != R_X86_64_64) return;
    visit(rela.r_offset, symbol_value(symbols, ELF64_R_SYM(rela.r_info)) + addend);
  });
  for_each_relr(file, dynamic, [&](uint64_t slot) { visit(slot, word_at(memory, slot)); });
}

class RelocationReader {
 public:
  RelocationReader(const ElfFile& file, const DynamicTable& dynamic, FileMemory& memory,
                   ImageTables& tables)
      : file_(file), dynamic_(dynamic), memory_(memory), tables_(tables) {}

  void read() {
    find_sequence_sections();
    const std::vector<Buffer> relocations = read_rela_tables(file_, dynamic_);
    for_each_rela(relocations, [this](const Elf64_Rela& rela) { add_resolver(rela); });
    for_each_word(file_, dynamic_, memory_, relocations,
                  [this](uint64_t slot, uint64_t value) { note_value(slot, value); });
    if (!tables_.is_position_independent) scan_data();
    auto& pointers = tables_.code_pointers;
    std::sort(pointers.begin(), pointers.end());
    pointers.erase(std::unique(pointers.begin(), pointers.end()), pointers.end());
    read_sequences();
  }

 private:
  void find_sequence_sections() {
    for (const SectionRecord& section : tables_.sections) {
      if (tables_.view(section.name) == "__rseq_cs") sequences_.push_back(section);
    }
  }

  void add_resolver(const Elf64_Rela& rela) {
    if (ELF64_R_TYPE(rela.r_info) != R_X86_64_IRELATIVE) return;
    const auto resolver = static_cast<uint64_t>(rela.r_addend);
    tables_.ifunc_slots.push_back({.slot_address = rela.r_offset, .resolver_address = resolver});
    note_pointer(resolver);
  }

  void note_pointer(uint64_t value) {
    if (tables_.code_section_at(value) != nullptr) tables_.code_pointers.push_back(value);
  }

  void note_value(uint64_t slot, uint64_t value) {
    note_pointer(value);
    for (const SectionRecord& section : sequences_) {
      if (slot - section.address < section.size_bytes) relocated_[slot] = value;
    }
  }

  // Addresses are fixed at link time, so pointers and jump tables carry no relocation: every
  // aligned word that could be one counts. Tables of the linker itself hold no pointers that are
  // followed.
  void scan_data() {
    for (const SectionRecord& section : tables_.sections) {
      const std::string_view name = tables_.view(section.name);
      const bool is_data = section.executable == 0 && !name.starts_with(".eh_frame") &&
                           !name.starts_with(".gcc_except_table") && !name.starts_with(".dyn") &&
                           !name.starts_with(".rela") && !name.starts_with(".gnu") &&
                           !name.starts_with(".note");
      if (is_data) scan(section);
    }
  }

  void scan(const SectionRecord& section) {
    const uint64_t skew = (kWordBytes - section.address % kWordBytes) % kWordBytes;
    ByteReader reader(memory_.from(section.address));
    reader.skip(skew);
    while (reader.remaining() >= kWordBytes) {
      note_pointer(reader.read<uint64_t>());
    }
  }

  // struct rseq_cs (linux/rseq.h), 32 bytes: version, flags (4 bytes each), start, post-commit
  // offset, abort address.
  void read_sequences() {
    constexpr uint64_t kDescriptorBytes = 32;
    const auto field = [&](uint64_t address) {
      const auto known = relocated_.find(address);
      return known != relocated_.end() ? known->second : word_at(memory_, address);
    };
    for (const SectionRecord& section : sequences_) {
      for (uint64_t at = 0; at + kDescriptorBytes <= section.file_size_bytes;
           at += kDescriptorBytes) {
        const uint64_t descriptor = section.address + at;
        const RestartableSequence sequence{.start = field(descriptor + 8),
                                           .size_bytes = field(descriptor + 16),
                                           .abort_address = field(descriptor + 24)};
        if (sequence.start != 0) tables_.restartable_sequences.push_back(sequence);
      }
    }
  }

  const ElfFile& file_;
  const DynamicTable& dynamic_;
  FileMemory& memory_;
  ImageTables& tables_;
  std::vector<SectionRecord> sequences_;
  std::unordered_map<uint64_t, uint64_t> relocated_;  // Only words of the sequences.
};

}  // namespace

void read_relocations(const ElfFile& file, const DynamicTable& dynamic, FileMemory& memory,
                      ImageTables& tables) {
  RelocationReader(file, dynamic, memory, tables).read();
}

std::vector<CodePointerSlot> find_code_pointer_slots(const ElfFile& file,
                                                     const DynamicTable& dynamic,
                                                     FileMemory& memory,
                                                     const ImageTables& tables) {
  std::vector<CodePointerSlot> slots;
  const auto add = [&](uint64_t slot, uint64_t value) {
    if (tables.code_section_at(value) != nullptr) slots.push_back({slot, value});
  };
  for_each_word(file, dynamic, memory, read_rela_tables(file, dynamic), add);
  std::sort(slots.begin(), slots.end(), [](const CodePointerSlot& a, const CodePointerSlot& b) {
    return a.slot_address < b.slot_address;
  });
  return slots;
}

Expected<std::vector<ImportSlot>> find_import_slots(const ElfFile& file,
                                                    const DynamicTable& dynamic,
                                                    std::optional<std::string_view> symbol) {
  std::vector<ImportSlot> slots;
  if (!dynamic.is_there() || dynamic.symbol_table == 0) return slots;
  const Buffer strings =
      CLEW_TRY(file.read_at_address(dynamic.string_table, dynamic.string_table_bytes));
  const std::vector<Buffer> relocations = read_rela_tables(file, dynamic);
  const Buffer symbols = read_named_symbols(file, dynamic, relocations);
  const auto name_of = [&](uint64_t index) -> std::string_view {
    if (index >= symbols.view().size() / sizeof(Elf64_Sym)) return {};
    const auto entry = ByteReader(symbols.view(), index * sizeof(Elf64_Sym)).read<Elf64_Sym>();
    return ByteReader(strings.view(), entry.st_name).read_string();
  };
  for_each_rela(relocations, [&](const Elf64_Rela& rela) {
    const auto type = ELF64_R_TYPE(rela.r_info);
    const bool is_import = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
                           (type == R_X86_64_64 && rela.r_addend == 0);
    if (!is_import) return;
    const std::string_view name = name_of(ELF64_R_SYM(rela.r_info));
    if (symbol ? name != *symbol : name.empty()) return;
    slots.push_back({.slot_address = rela.r_offset, .symbol = std::string(name)});
  });
  return slots;
}

}  // namespace clew::target
