// SPDX-License-Identifier: Apache-2.0
#include "target/unwind_rows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "target/eh_frame.h"
#include "target/image_tables.h"
#include "target/symbols.h"
#include "target/unwind_expression.h"

namespace clew::target {

namespace {

constexpr uint64_t kReturnColumn = 16;  // psABI x86-64, figure 3.36.
constexpr uint64_t kBxColumn = 3;
constexpr uint64_t kRegisterColumnsMax = 16;  // Those that can be a base.
constexpr size_t kRememberedMax = 64;
constexpr size_t kRowsMax = size_t{1} << 26;

struct RuleHash {
  size_t operator()(const UnwindRule& rule) const {
    uint64_t hash = 0;
    const auto add = [&hash](uint64_t value) {
      hash = (hash ^ value) * 0x9E37'79B9'7F4A'7C15;
      hash ^= hash >> 29;
    };
    add(static_cast<uint64_t>(rule.kind) << 8 | rule.base);
    add((rule.is_loaded ? 1U : 0U) | (rule.is_signal ? 2U : 0U));
    add(static_cast<uint64_t>(rule.offset));
    add(static_cast<uint64_t>(rule.second_offset));
    for (const SavedRegister& saved : {rule.pc, rule.fp, rule.bx}) {
      add(static_cast<uint64_t>(saved.at) << 32 | static_cast<uint32_t>(saved.offset));
    }
    return static_cast<size_t>(hash);
  }
};

bool fits(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

// What call frame instructions say at one place. The CFA's part of the rule and the three
// registers are kept apart, since instructions change either.
struct FrameState {
  UnwindRule rule;
  bool is_end = false;  // The return address is undefined.
};

SavedRegister* saved_register(FrameState& state, uint64_t column) {
  if (column == kReturnColumn) return &state.rule.pc;
  if (column == kFpColumn) return &state.rule.fp;
  if (column == kBxColumn) return &state.rule.bx;
  return nullptr;
}

// Runs the instructions of one entry, and tells of each place where the state may have changed.
class FrameProgram {
 public:
  FrameProgram(const EhCommon& common, uint64_t address, const FrameState& initial)
      : common_(common), location_(address), initial_(initial), state_(initial) {}

  // `take(location, state)` before the location moves, and at the end. False when an instruction is
  // not known, or the location leaves [address, end).
  template <typename Take>
  bool run(std::span<const uint8_t> bytes, uint64_t end, const Take& take) {
    ByteReader reader(bytes);
    while (!reader.at_end()) {
      const auto opcode = reader.read<uint8_t>();
      const std::optional<uint64_t> distance = advance(reader, opcode);
      if (!distance) {
        if (!step(reader, opcode)) return false;
        continue;
      }
      take(location_, state_);
      if (reader.failed() || *distance > end - location_) return false;
      location_ += *distance;
    }
    if (!reader.failed()) take(location_, state_);
    return !reader.failed();
  }
  [[nodiscard]] const FrameState& state() const { return state_; }

 private:
  // How far the location moves; nothing when the instruction does not move it.
  std::optional<uint64_t> advance(ByteReader& reader, uint8_t opcode) const {
    uint64_t delta = 0;
    if ((opcode & 0xc0) == 0x40) {
      delta = opcode & 0x3f;
    } else if (opcode == 0x02) {
      delta = reader.read<uint8_t>();
    } else if (opcode == 0x03) {
      delta = reader.read<uint16_t>();
    } else if (opcode == 0x04) {
      delta = reader.read<uint32_t>();
    } else {
      return std::nullopt;
    }
    return delta * common_.code_alignment;
  }

  bool step(ByteReader& reader, uint8_t opcode) {
    if ((opcode & 0xc0) == 0x80) return save(opcode & 0x3f, factored(reader.read_uleb128()));
    if ((opcode & 0xc0) == 0xc0) return restore(opcode & 0x3f);
    if (opcode >= 0x0c && opcode <= 0x0f) return define(reader, opcode);
    switch (opcode) {
      case 0x00:  // nop
      case 0x2d:  // GNU_window_save
        return true;
      case 0x05:  // offset_extended
      {
        const uint64_t column = reader.read_uleb128();
        return save(column, factored(reader.read_uleb128()));
      }
      case 0x06:  // restore_extended
        return restore(reader.read_uleb128());
      case 0x07:  // undefined
        return lose(reader.read_uleb128(), true);
      case 0x08:  // same_value
        return keep(reader.read_uleb128());
      case 0x09:  // register
      case 0x14:  // val_offset
      case 0x15:  // val_offset_sf
      {
        const uint64_t column = reader.read_uleb128();
        reader.read_uleb128();
        return lose(column, false);
      }
      case 0x0a:  // remember_state
        if (remembered_.size() >= kRememberedMax) return false;
        remembered_.push_back(state_);
        return true;
      case 0x0b:  // restore_state
        if (remembered_.empty()) return false;
        state_ = remembered_.back();
        remembered_.pop_back();
        return true;
      case 0x10:  // expression
      case 0x16:  // val_expression
      {
        const uint64_t column = reader.read_uleb128();
        const auto expression = reader.read_bytes(reader.read_uleb128());
        return opcode == 0x10 ? save_by(column, expression) : lose(column, false);
      }
      case 0x11:  // offset_extended_sf
      {
        const uint64_t column = reader.read_uleb128();
        return save(column, reader.read_sleb128() * common_.data_alignment);
      }
      case 0x12:  // def_cfa_sf
      case 0x13:  // def_cfa_offset_sf
        if (opcode == 0x12) set_base(reader.read_uleb128());
        return set_offset(reader.read_sleb128() * common_.data_alignment);
      case 0x2e:  // GNU_args_size
        reader.read_uleb128();
        return true;
      case 0x2f:  // GNU_negative_offset_extended
      {
        const uint64_t column = reader.read_uleb128();
        return save(column, -factored(reader.read_uleb128()));
      }
      default:
        return false;
    }
  }

  // def_cfa, def_cfa_register, def_cfa_offset, def_cfa_expression
  bool define(ByteReader& reader, uint8_t opcode) {
    if (opcode == 0x0f) {
      set_expression(reader.read_bytes(reader.read_uleb128()));
      return true;
    }
    if (opcode != 0x0e) set_base(reader.read_uleb128());
    return opcode == 0x0d || set_offset(static_cast<int64_t>(reader.read_uleb128()));
  }

  [[nodiscard]] int64_t factored(uint64_t value) const {
    // Unsigned, since a foreign file may have any value.
    return static_cast<int64_t>(value * static_cast<uint64_t>(common_.data_alignment));
  }

  void set_base(uint64_t column) {
    UnwindRule& rule = state_.rule;
    rule.kind = column < kRegisterColumnsMax ? UnwindKind::Base : UnwindKind::Unsupported;
    rule.base = static_cast<uint8_t>(column);
    rule.is_loaded = false;
    rule.second_offset = 0;
  }
  bool set_offset(int64_t offset) {
    if (!fits(offset)) return false;
    state_.rule.offset = static_cast<int32_t>(offset);
    return true;
  }
  void set_expression(std::span<const uint8_t> bytes) {
    const CfaExpression cfa = read_cfa_expression(bytes);
    state_.rule.kind = cfa.kind;
    state_.rule.base = cfa.base;
    state_.rule.is_loaded = cfa.is_loaded;
    state_.rule.offset = cfa.offset;
    state_.rule.second_offset = cfa.second_offset;
  }

  bool save(uint64_t column, int64_t offset) {
    SavedRegister* const saved = saved_register(state_, column);
    if (saved == nullptr) return true;
    if (!fits(offset)) return false;
    *saved = {SavedAt::Cfa, static_cast<int32_t>(offset)};
    return defined(column);
  }
  bool save_by(uint64_t column, std::span<const uint8_t> expression) {
    SavedRegister* const saved = saved_register(state_, column);
    if (saved != nullptr) *saved = read_saved_expression(expression);
    return defined(column);
  }
  bool lose(uint64_t column, bool is_undefined) {
    SavedRegister* const saved = saved_register(state_, column);
    if (saved != nullptr) *saved = {SavedAt::Lost, 0};
    if (column == kReturnColumn) state_.is_end = is_undefined;
    return true;
  }
  bool keep(uint64_t column) {
    SavedRegister* const saved = saved_register(state_, column);
    if (saved != nullptr) *saved = {};
    return defined(column);
  }
  bool restore(uint64_t column) {
    SavedRegister* const saved = saved_register(state_, column);
    FrameState initial = initial_;
    if (saved != nullptr) *saved = *saved_register(initial, column);
    if (column == kReturnColumn) state_.is_end = initial.is_end;
    return true;
  }
  bool defined(uint64_t column) {
    if (column == kReturnColumn) state_.is_end = false;
    return true;
  }

  const EhCommon& common_;
  uint64_t location_;
  const FrameState& initial_;
  FrameState state_;
  std::vector<FrameState> remembered_;
};

UnwindRule rule_of(const FrameState& state, bool is_signal) {
  UnwindRule rule;
  if (state.is_end) {
    rule.kind = UnwindKind::End;
    return rule;
  }
  const SavedAt pc = state.rule.pc.at;
  const bool has_caller = pc == SavedAt::Cfa || pc == SavedAt::Sp || pc == SavedAt::Fp;
  const UnwindKind kind = state.rule.kind;
  if (!has_caller || (kind != UnwindKind::Base && kind != UnwindKind::Plt)) {
    rule.kind = UnwindKind::Unsupported;
    return rule;
  }
  rule = state.rule;
  rule.is_signal = is_signal;
  return rule;
}

class RowReader {
 public:
  RowReader(const ImageTables& tables, const std::atomic<bool>* is_over)
      : tables_(tables), is_over_(is_over) {
    (void)index_of(UnwindRule());
  }

  UnwindRows read(EhFrame& frame) {
    frame.for_each([this](const EhEntry& entry) {
      if (is_code(entry)) entries_.push_back(entry);
    });
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const EhEntry& a, const EhEntry& b) { return a.address < b.address; });
    uint64_t end = 0;
    for (const EhEntry& entry : entries_) {
      // Of entries that overlap in a broken file the first is taken.
      if (entry.address < end || result_.rows.size() >= kRowsMax) continue;
      if (is_over_ != nullptr && *is_over_) break;
      if (entry.address > end) put(end, 0);
      end = entry.address + entry.size_bytes;
      read_entry(entry, frame, end);
    }
    put(end, 0);
    return std::move(result_);
  }

 private:
  // Code that the linker dropped leaves an entry with address or size 0.
  [[nodiscard]] bool is_code(const EhEntry& entry) const {
    if (entry.size_bytes == 0) return false;
    return std::any_of(tables_.sections.begin(), tables_.sections.end(),
                       [&](const SectionRecord& section) {
                         const uint64_t within = entry.address - section.address;
                         return section.executable != 0 && within < section.size_bytes &&
                                entry.size_bytes <= section.size_bytes - within;
                       });
  }

  // Null when its instructions are not known.
  const FrameState* initial_state(const EhCommon& common) {
    const auto known = initial_.find(&common);
    if (known != initial_.end()) return known->second ? &*known->second : nullptr;
    const FrameState nothing;
    FrameProgram program(common, 0, nothing);
    const bool is_known = common.return_column == kReturnColumn &&
                          program.run(common.instructions, 0, [](uint64_t, const FrameState&) {});
    const auto& kept =
        initial_.emplace(&common, is_known ? std::optional(program.state()) : std::nullopt)
            .first->second;
    return kept ? &*kept : nullptr;
  }

  void read_entry(const EhEntry& entry, EhFrame& frame, uint64_t end) {
    const FrameState* initial = initial_state(*entry.common);
    if (initial == nullptr) {
      put(entry.address, index_of({.kind = UnwindKind::Unsupported, .pc = {}, .fp = {}, .bx = {}}));
      return frame.report(entry.offset);
    }
    FrameProgram program(*entry.common, entry.address, *initial);
    const bool is_known =
        program.run(entry.instructions, end, [&](uint64_t address, const FrameState& state) {
          if (address < end) put(address, index_of(rule_of(state, entry.common->is_signal_frame)));
        });
    if (!is_known) frame.report(entry.offset);
  }

  void put(uint64_t address, uint32_t rule) {
    std::vector<UnwindRow>& rows = result_.rows;
    if (!rows.empty() && rows.back().address == address) rows.pop_back();
    if (rows.empty() ? rule == 0 : rows.back().rule == rule) return;
    rows.push_back({address, rule});
  }

  uint32_t index_of(const UnwindRule& rule) {
    const auto [place, is_new] =
        indices_.emplace(rule, static_cast<uint32_t>(result_.rules.size()));
    if (is_new) result_.rules.push_back(rule);
    return place->second;
  }

  const ImageTables& tables_;
  const std::atomic<bool>* is_over_;
  std::vector<EhEntry> entries_;
  std::unordered_map<const EhCommon*, std::optional<FrameState>> initial_;
  std::unordered_map<UnwindRule, uint32_t, RuleHash> indices_;
  UnwindRows result_;
};

// The starts of the functions that the file's own symbols name, ascending.
std::vector<uint64_t> function_starts(const ElfFile& file, const ImageTables& tables) {
  SymbolList list;
  for (const uint32_t type : {uint32_t{SHT_SYMTAB}, uint32_t{SHT_DYNSYM}}) {
    const ElfSection* const symbols = file.find_section_of_type(type);
    if (symbols != nullptr)
      (void)add_symbols(file, *symbols, FunctionOrigin::SymbolTable, tables, list);
  }
  std::vector<uint64_t> starts;
  for (const RawSymbol& symbol : list.symbols)
    if (!symbol.is_untyped) starts.push_back(symbol.address);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

uint32_t rule_at(const std::vector<UnwindRow>& rows, uint64_t address) {
  const auto behind =
      std::upper_bound(rows.begin(), rows.end(), address,
                       [](uint64_t wanted, const UnwindRow& row) { return wanted < row.address; });
  return behind == rows.begin() ? 0 : std::prev(behind)->rule;
}

// At its first instruction the return address of every function is on top of the stack. Where no
// call frame information says so (Go, some assembler) the frame pointer is still the caller's, and
// would lead to the caller's caller.
void add_starts(const std::vector<uint64_t>& starts, UnwindRows& result) {
  std::vector<UnwindRow>& rows = result.rows;
  std::vector<UnwindRow> added;
  const auto at_start = static_cast<uint32_t>(result.rules.size());
  for (const uint64_t start : starts) {
    if (rule_at(rows, start) != 0 || rows.size() + added.size() >= kRowsMax) continue;
    added.push_back({start, at_start});
    added.push_back({start + 1, 0});
  }
  if (added.empty()) return;
  result.rules.push_back({.kind = UnwindKind::Base,
                          .base = kSpColumn,
                          .offset = 8,
                          .pc = {SavedAt::Cfa, -8},
                          .fp = {},
                          .bx = {}});
  const auto middle = static_cast<std::ptrdiff_t>(rows.size());
  rows.insert(rows.end(), added.begin(), added.end());
  // Of rows of one address the one that knows something counts.
  const auto is_before = [](const UnwindRow& a, const UnwindRow& b) {
    return std::pair(a.address, a.rule == 0) < std::pair(b.address, b.rule == 0);
  };
  std::inplace_merge(rows.begin(), rows.begin() + middle, rows.end(), is_before);
  const auto drop = [&rows](auto is_same) {
    rows.erase(std::unique(rows.begin(), rows.end(), is_same), rows.end());
  };
  drop([](const UnwindRow& a, const UnwindRow& b) { return a.address == b.address; });
  drop([](const UnwindRow& a, const UnwindRow& b) { return a.rule == b.rule; });
}

UnwindRows rows_of(const ElfFile& file, const std::atomic<bool>* is_over) {
  ImageTables tables;
  read_section_records(file, tables);
  const std::vector<SectionRecord> sections = tables.sections;
  FileMemory memory(file, sections);
  std::vector<std::string> problems = file.problems();
  EhFrame frame(find_eh_frame(file, memory), problems);
  UnwindRows rows = RowReader(tables, is_over).read(frame);
  add_starts(function_starts(file, tables), rows);
  rows.problems = std::move(problems);
  return rows;
}

}  // namespace

Expected<UnwindRows> read_unwind_rows(const std::string& path, const std::atomic<bool>* is_over) {
  const ElfFile file = CLEW_TRY(ElfFile::open(path));
  return rows_of(file, is_over);
}

Expected<UnwindRows> read_unwind_rows(std::span<const uint8_t> image) {
  Buffer copy(image.size());
  std::copy(image.begin(), image.end(), copy.data());
  const ElfFile file = CLEW_TRY(ElfFile::from_buffer(std::move(copy)));
  return rows_of(file, nullptr);
}

}  // namespace clew::target
