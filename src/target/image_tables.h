// SPDX-License-Identifier: Apache-2.0
// ImageTables: what is known of a module, as flat arrays of plain records that refer to each other
// by index. Reading an ELF file fills them, the cache writes and reads them as they are, and
// ModuleImage hands them out as views. Internal to target/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "target/module_image.h"

namespace clew::target {

// Bytes [offset, offset + size) of ImageTables::text.
struct TextRecord {
  uint32_t offset = 0;
  uint32_t size_bytes = 0;
};

struct NameRecord {
  TextRecord linkage;
  TextRecord demangled;
  TextRecord plain;
  SymbolBinding binding = SymbolBinding::Global;
  uint8_t reserved[3] = {};
};

struct FunctionRecord {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint32_t first_name = 0;
  uint32_t name_count = 0;
  uint32_t first_cold = 0;
  uint32_t cold_count = 0;
  FunctionOrigin origin = FunctionOrigin::SymbolTable;
  uint8_t is_ifunc = 0;
  uint8_t reserved[6] = {};
};

struct FdeRecord {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint32_t first_landing_pad = 0;
  uint32_t landing_pad_count = 0;
  uint8_t cfa_at_start_is_rsp_plus_8 = 0;
  uint8_t has_lsda = 0;
  uint8_t reserved[6] = {};
};

struct SectionRecord {
  TextRecord name;
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  uint64_t file_size_bytes = 0;
  uint8_t executable = 0;
  uint8_t writable = 0;
  uint8_t is_plt = 0;
  uint8_t reserved[5] = {};
};

struct ImageTables {
  std::string text;
  TextRecord soname;
  TextRecord build_id;
  TextRecord debug_file;
  uint64_t entry_address = 0;
  bool is_position_independent = false;

  std::vector<SectionRecord> sections;    // By address.
  std::vector<FunctionRecord> functions;  // By address, each once.
  std::vector<NameRecord> names;
  std::vector<AddressRange> cold;
  std::vector<FdeRecord> fdes;  // By address.
  std::vector<uint64_t> landing_pads;
  std::vector<uint64_t> code_pointers;  // Ascending, each once.
  std::vector<IfuncSlot> ifunc_slots;
  std::vector<RestartableSequence> restartable_sequences;
  std::vector<std::string> problems;

  [[nodiscard]] std::string_view view(TextRecord record) const {
    return std::string_view(text).substr(record.offset, record.size_bytes);
  }
  TextRecord add_text(std::string_view bytes) {
    const TextRecord record{.offset = static_cast<uint32_t>(text.size()),
                            .size_bytes = static_cast<uint32_t>(bytes.size())};
    text += bytes;
    return record;
  }
  // Null when the address is in no executable section, or in the PLT.
  [[nodiscard]] const SectionRecord* code_section_at(uint64_t address) const;
};

// `text` is addressed with 32 bits.
inline constexpr uint64_t kTextMaxBytes = uint64_t{3} << 30;

static_assert(sizeof(FunctionRecord) == 40 && sizeof(FdeRecord) == 32 && sizeof(NameRecord) == 28);
static_assert(sizeof(SectionRecord) == 48);

// Everything from the file; nothing from a cache. In image_reader.cc.
class ElfFile;
Expected<ImageTables> read_tables(const ElfFile& file, const std::string& path,
                                  const ReadOptions& options);

}  // namespace clew::target
