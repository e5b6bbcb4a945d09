// SPDX-License-Identifier: Apache-2.0
#include "target/unwind.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "target/byte_reader.h"

namespace clew::target {

namespace {

// DW_EH_PE_*: the low four bits are the format, the next three what it is relative to.
constexpr uint8_t kOmit = 0xff;
constexpr uint8_t kIndirect = 0x80;
constexpr uint8_t kFormatMask = 0x0f;
constexpr uint8_t kRelativeMask = 0x70;
constexpr uint8_t kRelativeToNothing = 0x00;
constexpr uint8_t kRelativeToItself = 0x10;
constexpr uint8_t kRelativeToData = 0x30;

constexpr uint64_t kRspColumn = 7;  // psABI x86-64, figure 3.36.

uint64_t read_format(ByteReader& reader, uint8_t format) {
  switch (format) {
    case 0x00:  // absptr
    case 0x04:  // udata8
    case 0x0c:  // sdata8
      return reader.read<uint64_t>();
    case 0x01:
      return reader.read_uleb128();
    case 0x02:
      return reader.read<uint16_t>();
    case 0x03:
      return reader.read<uint32_t>();
    case 0x09:
      return static_cast<uint64_t>(reader.read_sleb128());
    case 0x0a:
      return static_cast<uint64_t>(int64_t{reader.read<int16_t>()});
    case 0x0b:
      return static_cast<uint64_t>(int64_t{reader.read<int32_t>()});
    default:
      reader.skip(UINT64_MAX);  // Fails the reader.
      return 0;
  }
}

// A block of bytes at an address, so that pc-relative pointers in it can be read.
struct Placed {
  std::span<const uint8_t> bytes;
  uint64_t address = 0;
};

// An encoded pointer at the reader's place. Nothing when it is omitted, indirect, or relative to
// something that only a running process knows. A value of 0 stays 0 (the linker's "no pointer").
std::optional<uint64_t> read_pointer(ByteReader& reader, const Placed& block, uint8_t encoding,
                                     uint64_t data_base = 0) {
  if (encoding == kOmit) return std::nullopt;
  const uint64_t at = block.address + reader.offset();
  const uint64_t value = read_format(reader, encoding & kFormatMask);
  if (reader.failed() || (encoding & kIndirect) != 0) return std::nullopt;
  switch (encoding & kRelativeMask) {
    case kRelativeToNothing:
      return value;
    case kRelativeToItself:
      return value == 0 ? 0 : at + value;
    case kRelativeToData:
      return data_base + value;
    default:
      return std::nullopt;
  }
}

// The rule for the canonical frame address, as far as it is a register and an offset.
struct CfaRule {
  bool is_register = false;
  uint64_t column = 0;
  int64_t offset = 0;
};

// Runs call frame instructions up to the first that moves the location, for the CFA alone.
class CfaProgram {
 public:
  explicit CfaProgram(int64_t data_alignment) : data_alignment_(data_alignment) {}

  // False when an instruction is not known, so that nothing behind it can be trusted.
  bool run(std::span<const uint8_t> bytes, CfaRule& rule) {
    ByteReader reader(bytes);
    const CfaRule initial = rule;
    while (!reader.at_end()) {
      const auto opcode = reader.read<uint8_t>();
      if (is_advance(opcode)) return true;
      if (!step(reader, opcode, rule, initial)) return false;
    }
    return !reader.failed();
  }

 private:
  // DW_CFA_advance_loc, set_loc, advance_loc1/2/4, MIPS_advance_loc8.
  static bool is_advance(uint8_t opcode) {
    return (opcode & 0xc0) == 0x40 || (opcode >= 0x01 && opcode <= 0x04) || opcode == 0x1d;
  }

  bool step(ByteReader& reader, uint8_t opcode, CfaRule& rule, const CfaRule& initial) const {
    if ((opcode & 0xc0) == 0x80) {  // DW_CFA_offset
      reader.read_uleb128();
      return !reader.failed();
    }
    if ((opcode & 0xc0) == 0xc0) return true;  // DW_CFA_restore
    switch (opcode) {
      case 0x00:  // nop
      case 0x0a:  // remember_state: nothing can be restored before the location moves
      case 0x2d:  // GNU_window_save
        return true;
      case 0x0b:  // restore_state
        rule = initial;
        return true;
      case 0x06:  // restore_extended
      case 0x07:  // undefined
      case 0x08:  // same_value
      case 0x2e:  // GNU_args_size
        reader.read_uleb128();
        return !reader.failed();
      case 0x05:  // offset_extended
      case 0x09:  // register
      case 0x11:  // offset_extended_sf
      case 0x14:  // val_offset
      case 0x15:  // val_offset_sf
      case 0x2f:  // GNU_negative_offset_extended
        reader.read_uleb128();
        reader.read_uleb128();
        return !reader.failed();
      case 0x0c:  // def_cfa
        rule.is_register = true;
        rule.column = reader.read_uleb128();
        rule.offset = static_cast<int64_t>(reader.read_uleb128());
        return !reader.failed();
      case 0x12:  // def_cfa_sf
        rule.is_register = true;
        rule.column = reader.read_uleb128();
        rule.offset = reader.read_sleb128() * data_alignment_;
        return !reader.failed();
      case 0x0d:  // def_cfa_register
        rule.column = reader.read_uleb128();
        return !reader.failed();
      case 0x0e:  // def_cfa_offset
        rule.offset = static_cast<int64_t>(reader.read_uleb128());
        return !reader.failed();
      case 0x13:  // def_cfa_offset_sf
        rule.offset = reader.read_sleb128() * data_alignment_;
        return !reader.failed();
      case 0x0f:  // def_cfa_expression
        rule.is_register = false;
        reader.skip(reader.read_uleb128());
        return !reader.failed();
      case 0x10:  // expression
      case 0x16:  // val_expression
        reader.read_uleb128();
        reader.skip(reader.read_uleb128());
        return !reader.failed();
      default:
        return false;
    }
  }

  int64_t data_alignment_;
};

struct Cie {
  uint8_t address_encoding = 0;
  uint8_t lsda_encoding = kOmit;
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  int64_t data_alignment = 0;
  CfaRule initial_rule;
};

// One record: its length, its id (CIE) or the distance to its CIE (FDE), and the reader behind
// them, bounded to it.
struct Record {
  size_t next_offset = 0;
  size_t id_offset = 0;
  uint32_t id = 0;
  std::span<const uint8_t> body;  // From the block's start to the record's end: offsets stay.
  size_t body_offset = 0;
};

class EhFrameReader {
 public:
  EhFrameReader(Placed block, FileMemory& memory, ImageTables& tables)
      : block_(block), memory_(memory), tables_(tables) {
    for (const SectionRecord& section : tables.sections) {
      exception_budget_bytes_ += section.file_size_bytes;
    }
  }

  void read() {
    size_t at = 0;
    while (at < block_.bytes.size()) {
      const auto record = read_record(at);
      if (!record) return;
      if (record->id != 0) read_fde(*record);
      at = record->next_offset;
    }
  }

 private:
  // Nothing at the end (a length of zero), or when the rest cannot be read.
  std::optional<Record> read_record(size_t at) {
    ByteReader reader(block_.bytes, at);
    uint64_t length = reader.read<uint32_t>();
    if (length == 0) return std::nullopt;
    if (length == UINT32_MAX) length = reader.read<uint64_t>();
    Record record;
    record.id_offset = reader.offset();
    if (reader.failed() || length < 4 || length > reader.remaining()) {
      tables_.problems.push_back(fmt::format(".eh_frame is broken at {:#x}", at));
      return std::nullopt;
    }
    record.next_offset = reader.offset() + length;
    record.id = reader.read<uint32_t>();
    record.body = block_.bytes.first(record.next_offset);
    record.body_offset = reader.offset();
    return record;
  }

  const Cie* find_cie(const Record& fde) {
    if (fde.id > fde.id_offset) return nullptr;
    const size_t at = fde.id_offset - fde.id;
    const auto known = cies_.find(at);
    if (known != cies_.end()) return known->second ? &*known->second : nullptr;
    const auto record = read_record(at);
    const bool is_cie = record && record->id == 0;
    const auto& cie = cies_.emplace(at, is_cie ? read_cie(*record) : std::nullopt).first->second;
    return cie.has_value() ? &cie.value() : nullptr;
  }

  std::optional<Cie> read_cie(const Record& record) {
    ByteReader reader(record.body, record.body_offset);
    Cie cie;
    const auto version = reader.read<uint8_t>();
    const std::string_view augmentation = reader.read_string();
    if (version != 1 && version != 3) return std::nullopt;
    reader.read_uleb128();  // Code alignment.
    cie.data_alignment = reader.read_sleb128();
    if (version == 1) {
      reader.read<uint8_t>();  // Return address column.
    } else {
      reader.read_uleb128();
    }
    if (!read_augmentation(augmentation, reader, record, cie) || reader.failed()) {
      return std::nullopt;
    }
    CfaProgram program(cie.data_alignment);
    if (!program.run(record.body.subspan(reader.offset()), cie.initial_rule)) return std::nullopt;
    return cie;
  }

  bool read_augmentation(std::string_view augmentation, ByteReader& reader, const Record& record,
                         Cie& cie) {
    if (augmentation.empty()) return true;
    if (augmentation[0] != 'z') return false;
    cie.has_augmentation_data = true;
    const uint64_t size = reader.read_uleb128();
    if (size > reader.remaining()) return false;
    const size_t end = reader.offset() + size;
    for (const char letter : augmentation.substr(1)) {
      if (letter == 'R') {
        cie.address_encoding = reader.read<uint8_t>();
      } else if (letter == 'L') {
        cie.lsda_encoding = reader.read<uint8_t>();
      } else if (letter == 'P') {
        const auto encoding = reader.read<uint8_t>();
        read_pointer(reader, {record.body, block_.address}, encoding);
      } else if (letter == 'S') {
        cie.is_signal_frame = true;
      } else if (letter != 'B') {
        break;  // The rest cannot be read, and its size is known.
      }
    }
    reader.seek(end);
    return !reader.failed();
  }

  void read_fde(const Record& record) {
    const Cie* cie = find_cie(record);
    if (cie == nullptr) return report_once(record.id_offset);
    ByteReader reader(record.body, record.body_offset);
    const Placed block{record.body, block_.address};
    const auto address = read_pointer(reader, block, cie->address_encoding);
    const uint64_t size = read_format(reader, cie->address_encoding & kFormatMask);
    if (!address || reader.failed()) return report_once(record.id_offset);
    // Code that the linker dropped leaves an entry with address or size 0.
    const SectionRecord* section = tables_.code_section_at(*address);
    if (section == nullptr || size == 0) return;
    FdeRecord fde{.address = *address,
                  .size_bytes = std::min(size, section->address + section->size_bytes - *address)};
    std::optional<uint64_t> lsda;
    if (cie->has_augmentation_data) {
      const uint64_t data_size = reader.read_uleb128();
      const size_t data_at = reader.offset();
      if (data_size != 0) lsda = read_pointer(reader, block, cie->lsda_encoding);
      reader.seek(data_at);
      reader.skip(data_size);
    }
    if (reader.failed()) return report_once(record.id_offset);
    CfaRule rule = cie->initial_rule;
    CfaProgram program(cie->data_alignment);
    const bool known = program.run(record.body.subspan(reader.offset()), rule);
    fde.cfa_at_start_is_rsp_plus_8 = known && rule.is_register && rule.column == kRspColumn &&
                                     rule.offset == 8 && !cie->is_signal_frame;
    if (lsda && *lsda != 0) read_landing_pads(*lsda, fde);
    tables_.fdes.push_back(fde);
  }

  // The language-specific data area: landing pad base, type table, then call sites, each with
  // start, length, landing pad (relative to the base; 0 = none) and action.
  void read_landing_pads(uint64_t lsda, FdeRecord& fde) {
    fde.has_lsda = 1;
    const Placed block{memory_.from(lsda), lsda};
    ByteReader reader(block.bytes);
    const auto base_encoding = reader.read<uint8_t>();
    const auto base = read_pointer(reader, block, base_encoding);
    const auto type_encoding = reader.read<uint8_t>();
    if (type_encoding != kOmit) reader.read_uleb128();
    const auto site_encoding = reader.read<uint8_t>();
    const uint64_t table_size = reader.read_uleb128();
    const bool usable = !reader.failed() && table_size <= reader.remaining() &&
                        (base_encoding == kOmit || base.has_value()) &&
                        table_size <= exception_budget_bytes_;
    if (!usable) return report_lsda_once(lsda);
    exception_budget_bytes_ -= table_size;
    const size_t end = reader.offset() + table_size;
    const size_t first = tables_.landing_pads.size();
    while (!reader.failed() && reader.offset() < end) {
      read_format(reader, site_encoding & kFormatMask);
      read_format(reader, site_encoding & kFormatMask);
      const uint64_t pad = read_format(reader, site_encoding & kFormatMask);
      reader.read_uleb128();
      if (pad != 0 && !reader.failed()) {
        tables_.landing_pads.push_back(base.value_or(fde.address) + pad);
      }
    }
    if (reader.failed()) report_lsda_once(lsda);
    finish_landing_pads(first, fde);
  }

  void finish_landing_pads(size_t first, FdeRecord& fde) {
    auto& pads = tables_.landing_pads;
    const auto begin = pads.begin() + static_cast<std::ptrdiff_t>(first);
    std::sort(begin, pads.end());
    pads.erase(std::unique(begin, pads.end()), pads.end());
    fde.first_landing_pad = static_cast<uint32_t>(first);
    fde.landing_pad_count = static_cast<uint32_t>(pads.size() - first);
  }

  void report_once(size_t offset) {
    if (reported_) return;
    reported_ = true;
    tables_.problems.push_back(
        fmt::format("an entry of .eh_frame at {:#x} cannot be read (and perhaps more)", offset));
  }
  void report_lsda_once(uint64_t address) {
    if (lsda_reported_) return;
    lsda_reported_ = true;
    tables_.problems.push_back(
        fmt::format("the exception table at {:#x} cannot be read (and perhaps more)", address));
  }

  Placed block_;
  FileMemory& memory_;
  ImageTables& tables_;
  std::unordered_map<size_t, std::optional<Cie>> cies_;
  // A table belongs to one entry, so all together are no longer than the file. Without this, many
  // entries that share a long one would take for ever.
  uint64_t exception_budget_bytes_ = 0;
  bool reported_ = false;
  bool lsda_reported_ = false;
};

// Without section headers .eh_frame_hdr leads there: version, encodings of the pointer to
// .eh_frame, of the count and of the table, then that pointer.
uint64_t find_eh_frame(const ElfFile& file, FileMemory& memory) {
  const ElfSection* section = file.find_section(".eh_frame");
  if (section != nullptr && section->header.sh_type != SHT_NOBITS) return section->header.sh_addr;
  for (const Elf64_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_GNU_EH_FRAME) continue;
    const Placed header{memory.from(segment.p_vaddr), segment.p_vaddr};
    ByteReader reader(header.bytes);
    const auto version = reader.read<uint8_t>();
    const auto encoding = reader.read<uint8_t>();
    reader.skip(2);
    const auto address = read_pointer(reader, header, encoding, segment.p_vaddr);
    if (version == 1 && address) return *address;
  }
  return 0;
}

}  // namespace

void read_unwind_tables(const ElfFile& file, FileMemory& memory, ImageTables& tables) {
  const uint64_t address = find_eh_frame(file, memory);
  const auto bytes = memory.from(address);
  if (address == 0 || bytes.empty()) return;
  EhFrameReader({bytes, address}, memory, tables).read();
  std::sort(tables.fdes.begin(), tables.fdes.end(),
            [](const FdeRecord& a, const FdeRecord& b) { return a.address < b.address; });
}

}  // namespace clew::target
