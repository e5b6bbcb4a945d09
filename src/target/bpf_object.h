// SPDX-License-Identifier: Apache-2.0
// BpfObject: the outer form of an object file for BPF: sections, symbols, relocations, types, and
// the lines of C. Everything is checked against the bytes that there are; views live as long as
// these.
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

namespace clew::target {

struct BpfSection {
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

struct BpfSymbol {
  std::string_view name;
  uint32_t section = 0;  // SHN_UNDEF for what is not there.
  uint64_t value = 0;
  uint64_t size_bytes = 0;
  bool is_function = false;
  bool is_section = false;
  bool is_global = false;
};

// Kinds of relocations (LLVM's docs/BPF, the kernel's Documentation/bpf/llvm_reloc.rst).
inline constexpr uint32_t kBpfRelocateLoad64 = 1;  // R_BPF_64_64: LDDW of an address.
inline constexpr uint32_t kBpfRelocateCall = 10;   // R_BPF_64_32

struct BpfRelocation {
  uint32_t section = 0;  // Whose bytes it changes.
  uint64_t offset = 0;
  uint32_t type = 0;  // R_BPF_…
  uint32_t symbol = 0;
};

class BpfObject {
 public:
  // Borrows the bytes. Errors: Refused.
  static Expected<BpfObject> open(std::span<const uint8_t> bytes, std::string name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<BpfSection>& sections() const { return sections_; }
  [[nodiscard]] const std::vector<BpfSymbol>& symbols() const { return symbols_; }
  [[nodiscard]] const std::vector<BpfRelocation>& relocations() const { return relocations_; }
  // Null when it was compiled without -g.
  [[nodiscard]] const Btf* types() const { return types_ ? &*types_ : nullptr; }
  // "sketch.c:12", or the name of the object when that line is not known.
  [[nodiscard]] std::string place_of(uint32_t section, uint64_t offset) const;

 private:
  explicit BpfObject(std::string name) : name_(std::move(name)) {}
  Expected<void> read_sections(std::span<const uint8_t> bytes);
  Expected<void> read_symbols();
  Expected<void> read_relocations();
  Expected<void> read_types();
  void read_lines(std::span<const uint8_t> bytes);
  [[nodiscard]] const BpfSection* find(std::string_view name) const;

  std::string name_;
  std::vector<BpfSection> sections_;
  std::vector<BpfSymbol> symbols_;
  std::vector<BpfRelocation> relocations_;
  std::optional<Btf> types_;
  struct Line {
    uint32_t file_name = 0;  // In the strings of the types.
    uint32_t line = 0;
  };
  std::map<std::string_view, std::map<uint64_t, Line>> lines_;  // By section name and offset.
};

}  // namespace clew::target
