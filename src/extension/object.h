// SPDX-License-Identifier: Apache-2.0
// The outer form of a BPF object file: sections, symbols, relocations, types, and the lines of C.
// Everything is checked against the bytes that there are. Internal to extension/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

#include "base/error.h"
#include "target/btf.h"

namespace clew::extension {

struct Section {
  std::string_view name;
  Elf64_Shdr header{};
  std::span<const uint8_t> bytes;  // None of SHT_NOBITS.

  [[nodiscard]] bool is_code() const {
    return (header.sh_flags & SHF_ALLOC) != 0 && (header.sh_flags & SHF_EXECINSTR) != 0;
  }
  [[nodiscard]] bool is_data() const {
    return (header.sh_flags & SHF_ALLOC) != 0 && (header.sh_flags & SHF_EXECINSTR) == 0;
  }
};

struct Symbol {
  std::string_view name;
  uint32_t section = 0;  // SHN_UNDEF for what is not there.
  uint64_t value = 0;
  uint64_t size_bytes = 0;
  bool is_function = false;
  bool is_section = false;
  bool is_global = false;
};

struct Relocation {
  uint32_t section = 0;  // Whose bytes it changes.
  uint64_t offset = 0;
  uint32_t type = 0;  // R_BPF_…
  uint32_t symbol = 0;
};

class Object {
 public:
  // Borrows the bytes. Errors: Refused.
  static Expected<Object> open(std::span<const uint8_t> bytes, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Section>& sections() const { return sections_; }
  [[nodiscard]] const std::vector<Symbol>& symbols() const { return symbols_; }
  [[nodiscard]] const std::vector<Relocation>& relocations() const { return relocations_; }
  // Null when it was compiled without -g.
  [[nodiscard]] const target::Btf* types() const { return types_ ? &*types_ : nullptr; }
  // "sketch.c:12", or the name of the object when that line is not known.
  [[nodiscard]] std::string place_of(uint32_t section, uint64_t offset) const;

 private:
  explicit Object(std::string name) : name_(std::move(name)) {}
  Expected<void> read_sections(std::span<const uint8_t> bytes);
  Expected<void> read_symbols();
  Expected<void> read_relocations();
  Expected<void> read_types();
  void read_lines(std::span<const uint8_t> bytes);
  [[nodiscard]] const Section* find(std::string_view name) const;

  std::string name_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::vector<Relocation> relocations_;
  std::optional<target::Btf> types_;
  struct Line {
    uint32_t file_name = 0;  // In the strings of the types.
    uint32_t line = 0;
  };
  std::map<std::string_view, std::map<uint64_t, Line>> lines_;  // By section name and offset.
};

}  // namespace clew::extension
