// SPDX-License-Identifier: Apache-2.0
#include "target/unwind_expression.h"

#include <limits>
#include <optional>

#include "target/byte_reader.h"

namespace clew::target {

namespace {

// DW_OP_*
constexpr uint8_t kDeref = 0x06;
constexpr uint8_t kConst1u = 0x08;
constexpr uint8_t kAnd = 0x1a;
constexpr uint8_t kPlus = 0x22;
constexpr uint8_t kPlusConstant = 0x23;
constexpr uint8_t kShiftLeft = 0x24;
constexpr uint8_t kGreaterOrEqual = 0x2a;
constexpr uint8_t kLiteral0 = 0x30;
constexpr uint8_t kLiteral31 = 0x4f;
constexpr uint8_t kRegister0 = 0x70;
constexpr uint8_t kRegister31 = 0x8f;

constexpr uint8_t kPcColumn = 16;

struct RegisterOffset {
  uint8_t column = 0;
  int32_t offset = 0;
};

std::optional<int32_t> narrow(int64_t value) {
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<int32_t>(value);
}

// DW_OP_breg…
std::optional<RegisterOffset> read_register(ByteReader& reader) {
  const auto operation = reader.read<uint8_t>();
  const std::optional<int32_t> offset = narrow(reader.read_sleb128());
  if (reader.failed() || operation < kRegister0 || operation > kRegister31 || !offset) return {};
  return RegisterOffset{static_cast<uint8_t>(operation - kRegister0), *offset};
}

// A small constant: DW_OP_lit… or const1u.
std::optional<int32_t> read_literal(ByteReader& reader) {
  const auto operation = reader.read<uint8_t>();
  if (operation >= kLiteral0 && operation <= kLiteral31) return operation - kLiteral0;
  if (operation == kConst1u) return reader.read<uint8_t>();
  return {};
}

bool is_next(ByteReader& reader, uint8_t operation) {
  return reader.read<uint8_t>() == operation && !reader.failed();
}

// `breg rsp+8; breg rip+0; lit15; and; lit11; ge; lit3; shl; plus`: an entry of the PLT pushes a
// number in its second half (binutils: ld/elf x86-64 PLT frames).
CfaExpression read_plt(ByteReader& reader, const RegisterOffset& sp) {
  const auto pc = read_register(reader);
  const bool is_place = pc && pc->column == kPcColumn && pc->offset == 0;
  const bool is_masked = is_place && read_literal(reader) == 15 && is_next(reader, kAnd);
  const std::optional<int32_t> limit = is_masked ? read_literal(reader) : std::nullopt;
  const bool is_plt = limit && is_next(reader, kGreaterOrEqual) && read_literal(reader) == 3 &&
                      is_next(reader, kShiftLeft) && is_next(reader, kPlus) && reader.at_end() &&
                      !reader.failed() && sp.column == kSpColumn;
  if (!is_plt) return {};
  return {.kind = UnwindKind::Plt, .base = kSpColumn, .offset = sp.offset, .second_offset = *limit};
}

// What is added behind a load.
std::optional<int32_t> read_addition(ByteReader& reader) {
  if (reader.at_end()) return 0;
  ByteReader constant = reader;
  if (constant.read<uint8_t>() == kPlusConstant) {
    const auto value = narrow(static_cast<int64_t>(constant.read_uleb128()));
    return constant.at_end() && !constant.failed() ? value : std::nullopt;
  }
  const auto value = read_literal(reader);
  const bool is_sum = value && is_next(reader, kPlus) && reader.at_end() && !reader.failed();
  return is_sum ? value : std::nullopt;
}

}  // namespace

CfaExpression read_cfa_expression(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const auto base = read_register(reader);
  if (!base) return {};
  CfaExpression cfa{.kind = UnwindKind::Base, .base = base->column, .offset = base->offset};
  if (base->column >= kPcColumn) return {};
  if (reader.at_end()) return cfa;
  ByteReader after = reader;
  if (after.read<uint8_t>() != kDeref) return read_plt(reader, *base);
  const std::optional<int32_t> more = read_addition(after);
  if (!more) return {};
  cfa.is_loaded = true;
  cfa.second_offset = *more;
  return cfa;
}

SavedRegister read_saved_expression(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  const auto place = read_register(reader);
  const bool is_whole = place && reader.at_end() && !reader.failed();
  if (is_whole && place->column == kSpColumn) return {SavedAt::Sp, place->offset};
  if (is_whole && place->column == kFpColumn) return {SavedAt::Fp, place->offset};
  return {SavedAt::Lost, 0};
}

}  // namespace clew::target
