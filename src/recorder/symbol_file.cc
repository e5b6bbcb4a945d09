// SPDX-License-Identifier: Apache-2.0
#include "recorder/symbol_file.h"

#include <array>
#include <cstring>
#include <string_view>

#include <elf.h>

namespace clew::recorder {

namespace {

class SymbolBytes {
 public:
  template <typename Word>
  void put(const Word& word) {
    put(&word, sizeof(word));
  }
  void put(std::span<const uint8_t> bytes) { put(bytes.data(), bytes.size()); }
  void put_byte(uint8_t byte) { bytes_.push_back(byte); }
  void put_text(std::string_view text) {
    put(text.data(), text.size());
    put_byte(0);
  }
  void put_unsigned(uint64_t value) {
    do {
      const auto low = static_cast<uint8_t>(value & 0x7f);
      value >>= 7;
      put_byte(static_cast<uint8_t>(low | (value != 0 ? 0x80 : 0)));
    } while (value != 0);
  }
  void put_signed(int64_t value) {
    while (value < -64 || value > 63) {
      put_byte(static_cast<uint8_t>((value & 0x7f) | 0x80));
      value >>= 7;
    }
    put_byte(static_cast<uint8_t>(value & 0x7f));
  }
  // The length of all that is behind these 4 bytes.
  void close(size_t place) {
    const auto length = static_cast<uint32_t>(bytes_.size() - place - sizeof(uint32_t));
    std::memcpy(bytes_.data() + place, &length, sizeof(length));
  }
  [[nodiscard]] size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::span<const uint8_t> all() const { return bytes_; }
  [[nodiscard]] std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  void put(const void* from, size_t size) {
    const auto* const bytes = static_cast<const uint8_t*>(from);
    bytes_.insert(bytes_.end(), bytes, bytes + size);
  }
  std::vector<uint8_t> bytes_;
};

// DWARF 4, 7.5.3: a unit without children, with stmt_list, low_pc, high_pc, name, language.
constexpr std::array<uint8_t, 16> kAbbreviations = {1,    0x11, 0,    0x10, 0x17, 0x11, 0x01, 0x12,
                                                    0x07, 0x03, 0x08, 0x13, 0x05, 0,    0,    0};
constexpr uint16_t kDwarfVersion = 4;
constexpr uint16_t kAssembler = 0x8001;  // DW_LANG_Mips_Assembler, as assemblers have it.

SymbolBytes unit_of(const SymbolFile& file) {
  SymbolBytes unit;
  unit.put(uint32_t{0});
  unit.put(kDwarfVersion);
  unit.put(uint32_t{0});  // The abbreviations' place.
  unit.put_byte(sizeof(uint64_t));
  unit.put_byte(1);
  unit.put(uint32_t{0});  // The lines' place.
  unit.put(file.code);
  unit.put(file.code_bytes);
  unit.put_text(file.name);
  unit.put(kAssembler);
  unit.close(0);
  return unit;
}

// DWARF 4, 6.2.5.
constexpr uint8_t kExtended = 0;
constexpr uint8_t kCopy = 1;
constexpr uint8_t kAdvancePc = 2;
constexpr uint8_t kAdvanceLine = 3;
constexpr uint8_t kFile = 4;

void put_line_header(const SymbolFile& file, SymbolBytes& lines) {
  lines.put(uint32_t{0});
  lines.put(kDwarfVersion);
  const size_t header = lines.size();
  lines.put(uint32_t{0});
  // SymbolBytes of an instruction, operations in it, is_stmt, line_base, line_range, opcode_base,
  // and how many operands each opcode below that has.
  constexpr std::array<uint8_t, 18> kForm = {1, 1, 1, 0xfb, 14, 13, 0, 1, 1,
                                             1, 1, 0, 0,    0,  1,  0, 0, 1};
  lines.put(kForm);
  lines.put_byte(0);  // No folders.
  for (const std::string& name : file.files) {
    lines.put_text(name);
    for (int i = 0; i < 3; ++i)
      lines.put_unsigned(0);  // Folder, time, size.
  }
  lines.put_byte(0);
  lines.close(header);
}

// The rows from an address on. They end where no line is known.
class LineRows {
 public:
  explicit LineRows(SymbolBytes& to) : to_(to) {}

  void add(const LineAt& next) {
    if (next.line == 0) return end(next.address);
    if (!begun_) begin(next.address);
    to_.put_byte(kFile);
    to_.put_unsigned(uint64_t{next.file} + 1);
    to_.put_byte(kAdvanceLine);
    to_.put_signed(int64_t{next.line} - int64_t{line_});
    advance(next.address);
    to_.put_byte(kCopy);
    line_ = next.line;
  }
  void end(uint64_t address) {
    if (!begun_) return;
    advance(address);
    to_.put(std::array<uint8_t, 3>{kExtended, 1, 1});  // DW_LNE_end_sequence
    begun_ = false;
  }

 private:
  void begin(uint64_t address) {
    to_.put(std::array<uint8_t, 3>{kExtended, 1 + sizeof(address), 2});  // DW_LNE_set_address
    to_.put(address);
    address_ = address;
    line_ = 1;
    begun_ = true;
  }
  void advance(uint64_t address) {
    to_.put_byte(kAdvancePc);
    to_.put_unsigned(address - address_);
    address_ = address;
  }

  SymbolBytes& to_;
  bool begun_ = false;
  uint64_t address_ = 0;
  uint32_t line_ = 1;
};

SymbolBytes lines_of(const SymbolFile& file) {
  SymbolBytes lines;
  put_line_header(file, lines);
  LineRows rows(lines);
  for (const LineAt& one : file.lines)
    rows.add(one);
  rows.end(file.code + file.code_bytes);
  lines.close(0);
  return lines;
}

class Writer {
 public:
  explicit Writer(const SymbolFile& file) : file_(file) { sections_.emplace_back(); }

  std::vector<uint8_t> run() {
    bytes_.put(Elf64_Ehdr{});
    put_names_of_sections();
    Elf64_Shdr& code = add(".text", SHT_NOBITS, {});
    code.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    code.sh_addr = file_.code;
    code.sh_size = file_.code_bytes;
    Elf64_Shdr& frames = add(".eh_frame", SHT_PROGBITS, file_.frame_bytes);
    frames.sh_flags = SHF_ALLOC;
    frames.sh_addr = file_.frames;
    if (!file_.lines.empty()) {
      add(".debug_abbrev", SHT_PROGBITS, kAbbreviations);
      add(".debug_info", SHT_PROGBITS, unit_of(file_).all());
      add(".debug_line", SHT_PROGBITS, lines_of(file_).all());
    }
    put_symbols();
    return finish();
  }

 private:
  Elf64_Shdr& add(std::string_view name, uint32_t type, std::span<const uint8_t> bytes) {
    Elf64_Shdr& section = sections_.emplace_back();
    section.sh_name = static_cast<uint32_t>(names_.find(std::string(name) + '\0'));
    section.sh_type = type;
    section.sh_offset = bytes_.size();
    section.sh_size = bytes.size();
    section.sh_addralign = 1;
    bytes_.put(bytes);
    return section;
  }

  void put_names_of_sections() {
    for (const std::string_view name : {".shstrtab", ".text", ".eh_frame", ".debug_abbrev",
                                        ".debug_info", ".debug_line", ".strtab", ".symtab"}) {
      names_ += '\0';
      names_ += name;
    }
    names_ += '\0';
    add(".shstrtab", SHT_STRTAB, bytes_of(names_));
  }

  static std::span<const uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }

  void put_symbols() {
    constexpr uint16_t kCode = 2;  // In sections_, and so the next one.
    std::string texts(1, '\0');
    SymbolBytes symbols;
    symbols.put(Elf64_Sym{});
    for (const NamedCode& function : file_.functions) {
      symbols.put(Elf64_Sym{.st_name = static_cast<uint32_t>(texts.size()),
                            .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                            .st_other = 0,
                            .st_shndx = kCode,
                            .st_value = function.address,
                            .st_size = function.size_bytes});
      texts += function.name;
      texts += '\0';
    }
    const auto strings = static_cast<uint32_t>(sections_.size());
    add(".strtab", SHT_STRTAB, bytes_of(texts));
    Elf64_Shdr& table = add(".symtab", SHT_SYMTAB, symbols.all());
    table.sh_link = strings;
    table.sh_info = static_cast<uint32_t>(file_.functions.size() + 1);  // None is global.
    table.sh_entsize = sizeof(Elf64_Sym);
  }

  std::vector<uint8_t> finish() {
    Elf64_Ehdr head = {};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_ident[EI_VERSION] = EV_CURRENT;
    head.e_type = ET_EXEC;
    head.e_machine = EM_X86_64;
    head.e_version = EV_CURRENT;
    head.e_shoff = bytes_.size();
    head.e_ehsize = sizeof(Elf64_Ehdr);
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shnum = static_cast<uint16_t>(sections_.size());
    head.e_shstrndx = 1;
    for (const Elf64_Shdr& section : sections_)
      bytes_.put(section);
    std::vector<uint8_t> all = bytes_.take();
    std::memcpy(all.data(), &head, sizeof(head));
    return all;
  }

  const SymbolFile& file_;
  SymbolBytes bytes_;
  std::string names_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace

std::vector<uint8_t> symbol_file_bytes(const SymbolFile& file) {
  return Writer(file).run();
}

}  // namespace clew::recorder
