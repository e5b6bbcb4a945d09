// SPDX-License-Identifier: Apache-2.0
#include "target/unwind.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "target/byte_reader.h"
#include "target/eh_frame.h"

namespace clew::target {

namespace {

constexpr uint64_t kRspColumn = 7;  // psABI x86-64, figure 3.36.

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

class UnwindReader {
 public:
  UnwindReader(EhFrame& frame, FileMemory& memory, ImageTables& tables)
      : frame_(frame), memory_(memory), tables_(tables) {
    for (const SectionRecord& section : tables.sections) {
      exception_budget_bytes_ += section.file_size_bytes;
    }
  }

  void read() {
    frame_.for_each([this](const EhEntry& entry) { read_entry(entry); });
  }

 private:
  // Null when its instructions are not known.
  const CfaRule* initial_rule(const EhCommon& common) {
    const auto known = initial_rules_.find(&common);
    if (known != initial_rules_.end()) return known->second ? &*known->second : nullptr;
    CfaRule rule;
    CfaProgram program(common.data_alignment);
    const bool is_known = program.run(common.instructions, rule);
    const auto& kept =
        initial_rules_.emplace(&common, is_known ? std::optional(rule) : std::nullopt)
            .first->second;
    return kept ? &*kept : nullptr;
  }

  void read_entry(const EhEntry& entry) {
    const CfaRule* initial = initial_rule(*entry.common);
    if (initial == nullptr) return frame_.report(entry.offset);
    // Code that the linker dropped leaves an entry with address or size 0.
    const SectionRecord* section = tables_.code_section_at(entry.address);
    if (section == nullptr || entry.size_bytes == 0) return;
    const uint64_t room = section->address + section->size_bytes - entry.address;
    FdeRecord fde{.address = entry.address, .size_bytes = std::min(entry.size_bytes, room)};
    CfaRule rule = *initial;
    CfaProgram program(entry.common->data_alignment);
    const bool known = program.run(entry.instructions, rule);
    fde.cfa_at_start_is_rsp_plus_8 = known && rule.is_register && rule.column == kRspColumn &&
                                     rule.offset == 8 && !entry.common->is_signal_frame;
    if (entry.lsda && *entry.lsda != 0) read_landing_pads(*entry.lsda, fde);
    tables_.fdes.push_back(fde);
  }

  // The language-specific data area: landing pad base, type table, then call sites, each with
  // start, length, landing pad (relative to the base; 0 = none) and action.
  void read_landing_pads(uint64_t lsda, FdeRecord& fde) {
    fde.has_lsda = 1;
    const Placed block{memory_.from(lsda), lsda};
    ByteReader reader(block.bytes);
    const auto base_encoding = reader.read<uint8_t>();
    const auto base = read_eh_pointer(reader, block, base_encoding);
    const auto type_encoding = reader.read<uint8_t>();
    if (type_encoding != kEhOmit) reader.read_uleb128();
    const auto site_encoding = reader.read<uint8_t>();
    const uint64_t table_size = reader.read_uleb128();
    const bool usable = !reader.failed() && table_size <= reader.remaining() &&
                        (base_encoding == kEhOmit || base.has_value()) &&
                        table_size <= exception_budget_bytes_;
    if (!usable) return report_lsda_once(lsda);
    exception_budget_bytes_ -= table_size;
    const size_t end = reader.offset() + table_size;
    const size_t first = tables_.landing_pads.size();
    while (!reader.failed() && reader.offset() < end) {
      read_eh_format(reader, site_encoding);
      read_eh_format(reader, site_encoding);
      const uint64_t pad = read_eh_format(reader, site_encoding);
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

  void report_lsda_once(uint64_t address) {
    if (lsda_reported_) return;
    lsda_reported_ = true;
    tables_.problems.push_back(
        fmt::format("the exception table at {:#x} cannot be read (and perhaps more)", address));
  }

  EhFrame& frame_;
  FileMemory& memory_;
  ImageTables& tables_;
  std::unordered_map<const EhCommon*, std::optional<CfaRule>> initial_rules_;
  // A table belongs to one entry, so all together are no longer than the file. Without this, many
  // entries that share a long one would take for ever.
  uint64_t exception_budget_bytes_ = 0;
  bool lsda_reported_ = false;
};

}  // namespace

void read_unwind_tables(const ElfFile& file, FileMemory& memory, ImageTables& tables) {
  const Placed block = find_eh_frame(file, memory);
  if (block.address == 0 || block.bytes.empty()) return;
  EhFrame frame(block, tables.problems);
  UnwindReader(frame, memory, tables).read();
  std::sort(tables.fdes.begin(), tables.fdes.end(),
            [](const FdeRecord& a, const FdeRecord& b) { return a.address < b.address; });
}

}  // namespace clew::target
