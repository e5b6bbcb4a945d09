// SPDX-License-Identifier: Apache-2.0
#include "copy/frame_states.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.h"
#include "target/byte_reader.h"

namespace clew::copy {

namespace {

// DW_CFA_*. The first three have an operand in their low six bits.
constexpr uint8_t kAdvance = 0x40;
constexpr uint8_t kOffset = 0x80;
constexpr uint8_t kRestore = 0xc0;
constexpr uint8_t kPrimaryMask = 0xc0;
constexpr uint8_t kAdvance1 = 0x02;
constexpr uint8_t kAdvance2 = 0x03;
constexpr uint8_t kAdvance4 = 0x04;
constexpr uint8_t kRestoreExtended = 0x06;
constexpr uint8_t kDefineCfa = 0x0c;
constexpr uint8_t kDefineCfaExpression = 0x0f;
constexpr uint8_t kArgumentsSize = 0x2e;

constexpr size_t kRememberedMax = 64;
// What no compiler needs, and what keeps states small also of hostile files.
constexpr size_t kRulesMax = 40;
constexpr size_t kRuleBytesMax = 64;
constexpr size_t kRowsMax = 1 << 16;

class FrameReader {
 public:
  // `initial`: what DW_CFA_restore goes back to.
  FrameReader(const target::FrameCommon& common, const FrameState& initial, uint64_t address,
              std::span<const uint8_t> instructions)
      : common_(common),
        initial_(initial),
        state_(initial),
        location_(address),
        instructions_(instructions),
        reader_(instructions) {}

  // False when an instruction is not understood, or leads behind `end`.
  bool run(uint64_t end) {
    while (!reader_.at_end()) {
      const auto opcode = reader_.read<uint8_t>();
      const std::optional<uint64_t> distance = advance(opcode);
      if (!distance) {
        if (!step(opcode) || reader_.failed()) return false;
        continue;
      }
      if (reader_.failed() || *distance > end - location_ || rows_.size() > kRowsMax) return false;
      put_row();
      location_ += *distance;
    }
    put_row();
    return !reader_.failed();
  }

  [[nodiscard]] FrameState take_state() { return std::move(state_); }
  [[nodiscard]] std::vector<FrameRow> take_rows() { return std::move(rows_); }

 private:
  void put_row() {
    if (rows_.empty() || rows_.back().address != location_) rows_.push_back({location_, {}});
    rows_.back().state = state_;
  }

  std::optional<uint64_t> advance(uint8_t opcode) {
    uint64_t factor = 0;
    if ((opcode & kPrimaryMask) == kAdvance) {
      factor = opcode & ~kPrimaryMask;
    } else if (opcode == kAdvance1) {
      factor = reader_.read<uint8_t>();
    } else if (opcode == kAdvance2) {
      factor = reader_.read<uint16_t>();
    } else if (opcode == kAdvance4) {
      factor = reader_.read<uint32_t>();
    } else {
      return std::nullopt;
    }
    return factor * common_.code_alignment;
  }

  bool step(uint8_t opcode) {
    const size_t begin = reader_.offset() - 1;
    if ((opcode & kPrimaryMask) == kOffset) {
      reader_.read_uleb128();
      return set_rule(opcode & ~kPrimaryMask, begin);
    }
    if ((opcode & kPrimaryMask) == kRestore) return restore(opcode & ~kPrimaryMask);
    switch (opcode) {
      case 0x00:  // nop
        return true;
      case 0x05:  // offset_extended
      case 0x09:  // register
      case 0x11:  // offset_extended_sf
      case 0x14:  // val_offset
      case 0x15:  // val_offset_sf
      case 0x2f:  // GNU_negative_offset_extended
      {
        const uint64_t column = reader_.read_uleb128();
        reader_.read_uleb128();  // As long as a signed one.
        return set_rule(column, begin);
      }
      case kRestoreExtended:
        return restore(reader_.read_uleb128());
      case 0x07:  // undefined
      case 0x08:  // same_value
        return set_rule(reader_.read_uleb128(), begin);
      case 0x10:  // expression
      case 0x16:  // val_expression
      {
        const uint64_t column = reader_.read_uleb128();
        reader_.skip(reader_.read_uleb128());
        return set_rule(column, begin);
      }
      case 0x0a:  // remember_state
        if (remembered_.size() >= kRememberedMax) return false;
        remembered_.push_back(state_);
        return true;
      case 0x0b:  // restore_state
        return restore_state();
      case kArgumentsSize:
        state_.arguments_size = reader_.read_uleb128();
        return true;
      default:
        return define_cfa(opcode);
    }
  }

  bool define_cfa(uint8_t opcode) {
    CfaRule& cfa = state_.cfa;
    const size_t begin = reader_.offset();
    switch (opcode) {
      case kDefineCfa:
        cfa.column = reader_.read_uleb128();
        return set_cfa_offset(static_cast<int64_t>(reader_.read_uleb128()));
      case 0x12:  // def_cfa_sf
        cfa.column = reader_.read_uleb128();
        return set_cfa_offset(factored(reader_.read_sleb128()));
      case 0x0d:  // def_cfa_register
        cfa.column = reader_.read_uleb128();
        return cfa.expression.empty();
      case 0x0e:  // def_cfa_offset
        return cfa.expression.empty() &&
               set_cfa_offset(static_cast<int64_t>(reader_.read_uleb128()));
      case 0x13:  // def_cfa_offset_sf
        return cfa.expression.empty() && set_cfa_offset(factored(reader_.read_sleb128()));
      case kDefineCfaExpression:
        reader_.skip(reader_.read_uleb128());
        if (reader_.failed()) return false;
        cfa = {};
        cfa.expression = bytes_from(begin);
        return cfa.expression.size() <= kRuleBytesMax;
      default:
        return false;
    }
  }

  // One that no instruction without a sign can say is not made by compilers.
  bool set_cfa_offset(int64_t offset) {
    state_.cfa.offset = offset;
    state_.cfa.expression.clear();
    return offset >= 0;
  }

  [[nodiscard]] int64_t factored(int64_t value) const {
    return static_cast<int64_t>(static_cast<uint64_t>(value) *
                                static_cast<uint64_t>(common_.data_alignment));
  }

  [[nodiscard]] std::vector<uint8_t> bytes_from(size_t begin) const {
    const auto bytes = instructions_.subspan(begin, reader_.offset() - begin);
    return {bytes.begin(), bytes.end()};
  }

  // By the instruction that was just read.
  bool set_rule(uint64_t column, size_t begin) {
    if (reader_.failed() || reader_.offset() - begin > kRuleBytesMax) return false;
    const auto at = place_of(state_, column);
    if (at != state_.rules.end() && at->column == column) {
      at->instruction = bytes_from(begin);
      return true;
    }
    if (state_.rules.size() >= kRulesMax) return false;
    state_.rules.insert(at, {column, bytes_from(begin)});
    return true;
  }

  bool restore(uint64_t column) {
    const auto at = place_of(state_, column);
    const bool is_there = at != state_.rules.end() && at->column == column;
    const auto first =
        std::find_if(initial_.rules.begin(), initial_.rules.end(),
                     [&](const RegisterRule& rule) { return rule.column == column; });
    if (first == initial_.rules.end()) {
      if (is_there) state_.rules.erase(at);
    } else if (is_there) {
      *at = *first;
    } else {
      state_.rules.insert(at, *first);
    }
    return true;
  }

  // The size of the arguments is not remembered: unwinders keep it elsewhere.
  bool restore_state() {
    if (remembered_.empty()) return false;
    const uint64_t size = state_.arguments_size;
    state_ = std::move(remembered_.back());
    state_.arguments_size = size;
    remembered_.pop_back();
    return true;
  }

  static std::vector<RegisterRule>::iterator place_of(FrameState& state, uint64_t column) {
    return std::lower_bound(
        state.rules.begin(), state.rules.end(), column,
        [](const RegisterRule& rule, uint64_t value) { return rule.column < value; });
  }

  const target::FrameCommon& common_;
  const FrameState& initial_;
  FrameState state_;
  uint64_t location_;
  std::span<const uint8_t> instructions_;
  target::ByteReader reader_;
  std::vector<FrameState> remembered_;
  std::vector<FrameRow> rows_;
};

template <typename Word>
void append_word(Word value, std::vector<uint8_t>& to) {
  const size_t at = to.size();
  to.resize(at + sizeof(value));
  std::memcpy(to.data() + at, &value, sizeof(value));
}

void append(const std::vector<uint8_t>& bytes, std::vector<uint8_t>& to) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void append_cfa(const CfaRule& cfa, std::vector<uint8_t>& to) {
  if (!cfa.expression.empty()) {
    to.push_back(kDefineCfaExpression);
    return append(cfa.expression, to);
  }
  to.push_back(kDefineCfa);
  append_uleb128(cfa.column, to);
  append_uleb128(static_cast<uint64_t>(cfa.offset), to);
}

const RegisterRule* rule_of(const FrameState& state, uint64_t column) {
  for (const RegisterRule& rule : state.rules) {
    if (rule.column == column) return &rule;
  }
  return nullptr;
}

}  // namespace

std::optional<FrameState> initial_state(const target::FrameCommon& common) {
  const FrameState nothing;
  FrameReader reader(common, nothing, 0, common.instructions);
  if (common.code_alignment != 1 || !reader.run(0)) return std::nullopt;
  return reader.take_state();
}

std::optional<std::vector<FrameRow>> frame_rows(const target::FrameCommon& common,
                                                const FrameState& initial,
                                                const target::FrameEntry& entry) {
  FrameReader reader(common, initial, entry.address, entry.instructions);
  if (!reader.run(entry.end())) return std::nullopt;
  return reader.take_rows();
}

void append_uleb128(uint64_t value, std::vector<uint8_t>& to) {
  constexpr uint8_t kMore = 0x80;
  for (; value >= kMore; value >>= 7)
    to.push_back(static_cast<uint8_t>(value | kMore));
  to.push_back(static_cast<uint8_t>(value));
}

void append_advance(uint64_t bytes, std::vector<uint8_t>& to) {
  CLEW_ASSERT(bytes <= UINT32_MAX);
  if (bytes < kAdvance) {
    to.push_back(static_cast<uint8_t>(kAdvance | bytes));
  } else if (bytes <= UINT8_MAX) {
    to.insert(to.end(), {kAdvance1, static_cast<uint8_t>(bytes)});
  } else if (bytes <= UINT16_MAX) {
    to.push_back(kAdvance2);
    append_word(static_cast<uint16_t>(bytes), to);
  } else {
    to.push_back(kAdvance4);
    append_word(static_cast<uint32_t>(bytes), to);
  }
}

void append_change(const FrameState& from, const FrameState& state, std::vector<uint8_t>& to) {
  if (from.cfa != state.cfa) append_cfa(state.cfa, to);
  for (const RegisterRule& rule : state.rules) {
    const RegisterRule* const before = rule_of(from, rule.column);
    if (before == nullptr || *before != rule) append(rule.instruction, to);
  }
  for (const RegisterRule& rule : from.rules) {
    if (rule_of(state, rule.column) != nullptr) continue;
    to.push_back(kRestoreExtended);
    append_uleb128(rule.column, to);
  }
  if (from.arguments_size == state.arguments_size) return;
  to.push_back(kArgumentsSize);
  append_uleb128(state.arguments_size, to);
}

}  // namespace clew::copy
