// SPDX-License-Identifier: Apache-2.0
#include "copy/unwind.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "copy/frame_states.h"

namespace clew::copy {

namespace {

using target::CallSite;
using target::ExceptionTable;
using target::FrameCommon;
using target::FrameEntry;
using target::FramePointer;
using target::TypeForm;

constexpr uint64_t kPlaceAlignment = 64;
constexpr size_t kRecordAlignment = 8;
constexpr size_t kBytesMin = size_t{1} << 20;
constexpr size_t kBytesFactor = 8;

// DW_EH_PE_*
constexpr uint8_t kOmit = 0xff;
constexpr uint8_t kIndirect = 0x80;
constexpr uint8_t kAddress = 0x00;
constexpr uint8_t kWord32 = 0x03;
constexpr uint8_t kSigned32 = 0x0b;
constexpr uint8_t kDistance = 0x1b;        // From itself, 4 bytes.
constexpr uint8_t kHeaderDistance = 0x3b;  // From .eh_frame_hdr, 4 bytes.

// A stretch of the copy whose originals are of one entry.
struct Piece {
  uint32_t entry = 0;
  size_t first = 0;  // In ModuleCopy::pcs.
  size_t last = 0;   // Behind it.
  uint32_t begin = 0;
  uint32_t end = 0;
  size_t exceptions = 0;      // Where its table is; 0 is none.
  uint64_t landing_base = 0;  // In the copy.
  size_t record = 0;
};

// What is known of a FrameCommon.
struct Common {
  std::optional<FrameState> initial;
  std::optional<size_t> record;
};

class UnwindWriter {
 public:
  explicit UnwindWriter(const UnwindInput& input)
      : input_(input), copy_(input.copy), tables_(input.tables), map_(input.copy) {
    const uint64_t end = copy_.end();
    result_.address = (end + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
    for (const FrameCommon& common : tables_.commons)
      commons_.push_back({initial_state(common), std::nullopt});
  }

  Expected<UnwindBytes> run() {
    find_pieces();
    if (pieces_.empty()) return std::move(result_);
    put_word(uint32_t{0});  // So that no table is at 0.
    // A hostile file may have many pieces with one long table.
    const size_t bytes_max = kBytesMin + kBytesFactor * copy_.bytes.size();
    for (Piece& piece : pieces_) {
      CLEW_TRY(put_exceptions(piece));
      if (result_.bytes.size() > bytes_max) {
        return fail(ErrorCode::Limit, "the module's exception tables are too long [unwinding]");
      }
    }
    align();
    const size_t frames = result_.bytes.size();
    for (Piece& piece : pieces_)
      CLEW_TRY(put_entry(piece));
    put_word(uint32_t{0});
    CLEW_TRY(put_header(frames));
    return std::move(result_);
  }

 private:
  // ---- what is there ----

  void find_pieces() {
    std::optional<uint32_t> entry;
    for (size_t i = 0; i < copy_.pcs.size(); ++i) {
      const uint32_t begin = copy_.pcs[i].offset;
      const uint32_t end = i + 1 < copy_.pcs.size() ? copy_.pcs[i + 1].offset : copy_.code_size;
      const uint64_t original = copy_.pcs[i].original;
      if (entry && covers(tables_.entries[*entry], original)) {
        pieces_.back().last = i + 1;
        pieces_.back().end = end;
        continue;
      }
      entry = entry_at(original);
      if (entry)
        pieces_.push_back({.entry = *entry, .first = i, .last = i + 1, .begin = begin, .end = end});
    }
  }

  static bool covers(const FrameEntry& entry, uint64_t original) {
    return original - entry.address < entry.size_bytes;
  }

  // Nothing when nothing is known of how to get to the caller from there.
  std::optional<uint32_t> entry_at(uint64_t original) {
    const auto& entries = tables_.entries;
    const auto behind =
        std::upper_bound(entries.begin(), entries.end(), original,
                         [](uint64_t value, const FrameEntry& one) { return value < one.address; });
    if (behind == entries.begin() || !covers(*(behind - 1), original)) return std::nullopt;
    const auto index = static_cast<uint32_t>(behind - entries.begin()) - 1;
    if (!rows_of(index)) return std::nullopt;
    return index;
  }

  [[nodiscard]] std::optional<std::vector<FrameRow>> rows_of(uint32_t index) const {
    const FrameEntry& entry = tables_.entries[index];
    const std::optional<FrameState>& initial = commons_[entry.common].initial;
    if (!initial) return std::nullopt;
    return frame_rows(tables_.commons[entry.common], *initial, entry);
  }

  // ---- bytes ----

  [[nodiscard]] uint64_t here() const { return result_.address + result_.bytes.size(); }
  void put(std::initializer_list<uint8_t> bytes) {
    result_.bytes.insert(result_.bytes.end(), bytes);
  }
  void put(const std::vector<uint8_t>& bytes) {
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.end());
  }
  template <typename Word>
  void put_word(Word value) {
    const size_t at = result_.bytes.size();
    result_.bytes.resize(at + sizeof(value));
    set(at, value);
  }
  template <typename Word>
  void set(size_t at, Word value) {
    std::memcpy(result_.bytes.data() + at, &value, sizeof(value));
  }
  void align() {
    while (result_.bytes.size() % kRecordAlignment != 0)
      result_.bytes.push_back(0);
  }

  Expected<void> put_distance(uint64_t target, uint64_t from) {
    const auto distance = static_cast<int64_t>(target - from);
    if (distance < INT32_MIN || distance > INT32_MAX) {
      return fail(ErrorCode::Limit, "a copy of the module's functions would be too far from it");
    }
    put_word(static_cast<int32_t>(distance));
    return {};
  }
  Expected<void> put_outward(uint64_t target, uint64_t from) {
    result_.outward.push_back(static_cast<uint32_t>(result_.bytes.size()));
    return put_distance(target, from);
  }

  // A number whose value is not known yet, and its value.
  size_t put_open_number() {
    put({0x80, 0x80, 0x80, 0x00});
    return result_.bytes.size();
  }
  Expected<void> set_number(size_t behind, size_t value) {
    if (value >= size_t{1} << 28) {
      return fail(ErrorCode::Limit, "an exception table of the module is too long [unwinding]");
    }
    for (unsigned i = 0; i < 4; ++i) {
      const auto bits = static_cast<uint8_t>(value >> 7 * i & 0x7f);
      result_.bytes[behind - 4 + i] = static_cast<uint8_t>(bits | (i < 3 ? 0x80 : 0));
    }
    return {};
  }

  // ---- exception tables ----

  Expected<void> put_exceptions(Piece& piece) {
    const FrameEntry& entry = tables_.entries[piece.entry];
    if (entry.exceptions == target::kNoExceptionTable) return {};
    const ExceptionTable& table = tables_.exceptions[entry.exceptions];
    const bool moves = input_.is_position_independent && is_absolute(table.type_form);
    const bool has_types = std::any_of(table.types.begin(), table.types.end(),
                                       [](const FramePointer& type) { return type.address != 0; });
    if (!table.is_understood || (moves && has_types)) return not_understood(entry);
    piece.exceptions = result_.bytes.size();
    CLEW_TRY(put_landing_base(piece, table));
    put({type_encoding(table)});
    const bool has_end = table.type_form != TypeForm::None;
    const size_t behind_end = has_end ? put_open_number() : 0;
    put({kSigned32});
    const size_t behind_size = put_open_number();
    CLEW_TRY(put_sites(piece, table));
    CLEW_TRY(set_number(behind_size, result_.bytes.size() - behind_size));
    put(table.actions);
    for (size_t i = table.types.size(); i-- > 0;)
      CLEW_TRY(put_type(table.type_form, table.types[i]));
    if (has_end) CLEW_TRY(set_number(behind_end, result_.bytes.size() - behind_end));
    put(table.specifications);
    return {};
  }

  // Where nothing is said, it is the piece's begin. Rust before 1.73 reads what is said as 4 bytes
  // more than it is; but a distance of 0 is no landing pad.
  Expected<void> put_landing_base(Piece& piece, const ExceptionTable& table) {
    const uint64_t begin = copy_.address + piece.begin;
    const bool begins_with_pad =
        std::any_of(table.sites.begin(), table.sites.end(),
                    [&](const CallSite& site) { return pad_in_copy(site.landing_pad) == begin; });
    piece.landing_base = begins_with_pad ? begin - 1 : begin;
    if (begins_with_pad) {
      put({kDistance});
      return put_distance(piece.landing_base, here());
    }
    put({kOmit});
    return {};
  }

  // With what is inserted in front of it.
  [[nodiscard]] std::optional<uint64_t> pad_in_copy(uint64_t original) const {
    const auto copy = original != 0 ? map_.copy_of(original) : std::nullopt;
    if (!copy) return std::nullopt;
    const auto before = input_.insertions.before.find(original);
    return *copy - (before != input_.insertions.before.end() ? before->second.size() : 0);
  }

  static bool is_absolute(TypeForm form) {
    return form == TypeForm::Absolute32 || form == TypeForm::Absolute64;
  }

  static tl::unexpected<Error> not_understood(const FrameEntry& entry) {
    return fail(ErrorCode::Refused,
                fmt::format("what exceptions do in the function at {:#x} is not understood "
                            "[unwinding]",
                            entry.address));
  }

  static uint8_t type_encoding(const ExceptionTable& table) {
    const bool is_indirect = std::any_of(table.types.begin(), table.types.end(),
                                         [](const FramePointer& type) { return type.is_indirect; });
    const auto with = [is_indirect](uint8_t form) {
      return static_cast<uint8_t>(form | (is_indirect ? kIndirect : 0));
    };
    switch (table.type_form) {
      case TypeForm::None:
        return kOmit;
      case TypeForm::Relative:
        return with(kDistance);
      case TypeForm::Absolute32:
        return with(kWord32);
      case TypeForm::Absolute64:
        return with(kAddress);
    }
    return kOmit;
  }

  Expected<void> put_type(TypeForm form, const FramePointer& type) {
    if (form == TypeForm::Absolute64) {
      put_word(type.address);
    } else if (form == TypeForm::Absolute32 || type.address == 0) {
      put_word(static_cast<uint32_t>(type.address));
    } else {
      return put_outward(type.address, here());
    }
    return {};
  }

  // Those of the instructions of the piece, in its order. What stands in no site stays so.
  Expected<void> put_sites(const Piece& piece, const ExceptionTable& table) {
    const CallSite* open = nullptr;
    uint32_t begin = piece.begin;
    for (size_t i = piece.first; i < piece.last; ++i) {
      const CallSite* const site = site_at(table, copy_.pcs[i].original);
      if (site == open) continue;
      const uint32_t end = copy_.pcs[i].offset;
      if (open != nullptr) CLEW_TRY(put_site(piece, *open, {begin, end}));
      open = site;
      begin = end;
    }
    if (open != nullptr) CLEW_TRY(put_site(piece, *open, {begin, piece.end}));
    return {};
  }

  static const CallSite* site_at(const ExceptionTable& table, uint64_t original) {
    const auto site =
        std::upper_bound(table.sites.begin(), table.sites.end(), original,
                         [](uint64_t value, const CallSite& one) { return value < one.end; });
    return site != table.sites.end() && site->begin <= original ? &*site : nullptr;
  }

  struct Stretch {
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  Expected<void> put_site(const Piece& piece, const CallSite& site, const Stretch& stretch) {
    put_word(stretch.begin - piece.begin);
    put_word(stretch.end - stretch.begin);
    if (site.landing_pad == 0) {
      put_word(uint32_t{0});
    } else if (const auto pad = pad_in_copy(site.landing_pad)) {
      CLEW_TRY(put_distance(*pad, piece.landing_base));
    } else {
      CLEW_TRY(put_outward(site.landing_pad, piece.landing_base));
    }
    append_uleb128(site.action, result_.bytes);
    return {};
  }

  // ---- .eh_frame ----

  // | length 4 | id 4 | … | nops up to the alignment |
  size_t begin_record() {
    align();
    put_word(uint32_t{0});
    return result_.bytes.size() - 4;
  }
  void end_record(size_t record) {
    align();
    set(record, static_cast<uint32_t>(result_.bytes.size() - record - 4));
  }

  Expected<size_t> common_record(uint32_t index) {
    if (commons_[index].record) return *commons_[index].record;
    const FrameCommon& common = tables_.commons[index];
    const size_t record = begin_record();
    put_word(uint32_t{0});
    put({1, 'z'});
    if (common.has_personality) put({'P'});
    put({'L', 'R'});
    if (common.is_signal_frame) put({'S'});
    put({0});
    append_uleb128(common.code_alignment, result_.bytes);
    append_sleb128(common.data_alignment);
    put({static_cast<uint8_t>(common.return_column)});
    put({static_cast<uint8_t>(common.has_personality ? 7 : 2)});
    if (common.has_personality) {
      put({static_cast<uint8_t>(kDistance | (common.personality->is_indirect ? kIndirect : 0))});
      CLEW_TRY(put_outward(common.personality->address, here()));
    }
    put({kDistance, kDistance});
    put(common.instructions);
    end_record(record);
    commons_[index].record = record;
    return record;
  }

  void append_sleb128(int64_t value) {
    for (;;) {
      const auto byte = static_cast<uint8_t>(value & 0x7f);
      value >>= 7;
      const bool is_last =
          (value == 0 && (byte & 0x40) == 0) || (value == -1 && (byte & 0x40) != 0);
      put({static_cast<uint8_t>(is_last ? byte : byte | 0x80)});
      if (is_last) return;
    }
  }

  Expected<void> put_entry(Piece& piece) {
    const FrameEntry& entry = tables_.entries[piece.entry];
    const FrameCommon& common = tables_.commons[entry.common];
    const bool is_lost =
        common.has_personality && (!common.personality || common.personality->address == 0);
    if (is_lost || common.return_column > UINT8_MAX) return not_understood(entry);
    const size_t shared = CLEW_TRY(common_record(entry.common));
    piece.record = begin_record();
    put_word(static_cast<uint32_t>(result_.bytes.size() - shared));
    CLEW_TRY(put_distance(copy_.address + piece.begin, here()));
    put_word(piece.end - piece.begin);
    put({4});
    if (piece.exceptions == 0) {
      put_word(uint32_t{0});
    } else {
      CLEW_TRY(put_distance(result_.address + piece.exceptions, here()));
    }
    put_rows(piece, *commons_[entry.common].initial);
    end_record(piece.record);
    return {};
  }

  void put_rows(const Piece& piece, const FrameState& initial) {
    const std::vector<FrameRow> rows = *rows_of(piece.entry);
    const FrameState* state = &initial;
    uint32_t place = piece.begin;
    for (size_t i = piece.first; i < piece.last; ++i) {
      const CopiedPc& pc = copy_.pcs[i];
      const auto behind =
          std::upper_bound(rows.begin(), rows.end(), pc.original,
                           [](uint64_t value, const FrameRow& row) { return value < row.address; });
      const FrameState* const next = &(behind - 1)->state;
      if (next == state || *next == *state) continue;
      if (pc.offset != place) append_advance(pc.offset - place, result_.bytes);
      append_change(*state, *next, result_.bytes);
      state = next;
      place = pc.offset;
    }
  }

  // ---- .eh_frame_hdr ----

  Expected<void> put_header(size_t frames) {
    align();
    result_.header = static_cast<uint32_t>(result_.bytes.size());
    const uint64_t header = here();
    put({1, kDistance, kWord32, kHeaderDistance});
    CLEW_TRY(put_distance(result_.address + frames, here()));
    put_word(static_cast<uint32_t>(pieces_.size()));
    for (const Piece& piece : pieces_) {
      CLEW_TRY(put_distance(copy_.address + piece.begin, header));
      CLEW_TRY(put_distance(result_.address + piece.record, header));
    }
    return {};
  }

  const UnwindInput& input_;
  const ModuleCopy& copy_;
  const target::FrameTables& tables_;
  CopyMap map_;
  std::vector<Common> commons_;
  std::vector<Piece> pieces_;  // By place.
  UnwindBytes result_;
};

}  // namespace

Expected<UnwindBytes> write_unwind(const UnwindInput& input) {
  return UnwindWriter(input).run();
}

Expected<void> UnwindBytes::move_to(uint64_t load_bias, uint64_t shift) {
  for (const uint32_t field : outward) {
    int32_t distance = 0;
    std::memcpy(&distance, bytes.data() + field, sizeof(distance));
    const auto moved = static_cast<int64_t>(static_cast<uint64_t>(distance) + load_bias - shift);
    if (moved < INT32_MIN || moved > INT32_MAX) {
      return fail(ErrorCode::Limit, "the copies are too far from their module");
    }
    distance = static_cast<int32_t>(moved);
    std::memcpy(bytes.data() + field, &distance, sizeof(distance));
  }
  address += shift;
  return {};
}

}  // namespace clew::copy
