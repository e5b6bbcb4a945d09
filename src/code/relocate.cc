// SPDX-License-Identifier: Apache-2.0
// The writer of window copies.
#include "code/relocate.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/assert.h"
#include "code/both_ways.h"
#include "code/decode.h"
#include "code/kept_instruction.h"
#include "code/opcodes.h"

namespace clew::code {

namespace {

constexpr uint8_t kPushImmediate = 0x68;
constexpr uint8_t kCarry = 2;          // The condition of jc.
constexpr uint8_t kCallToJump = 0x30;  // ModRM.reg of the group FF: 2 = call, 4 = jmp.

class Writer {
 public:
  Writer(const Window& window, std::span<const Point> points, const Placement& placement,
         const ProbeEmitter& emit)
      : window_(window), points_(points), placement_(placement), emit_(emit) {}

  Expected<Relocated> run() {
    CLEW_TRY(put_head());
    for (unsigned i = 0; i < window_.instructions.size(); ++i)
      CLEW_TRY(write_instruction(i));
    if (window_.falls_through) {
      const uint64_t end = window_.address + window_.size_bytes;
      result_.boundaries.push_back({window_.size_bytes, offset(), offset()});
      CLEW_TRY(put_jump(end + placement_.load_bias));
    }
    CLEW_TRY(make_patches());
    return std::move(result_);
  }

 private:
  [[nodiscard]] uint32_t offset() const { return static_cast<uint32_t>(result_.bytes.size()); }
  [[nodiscard]] uint64_t here() const { return placement_.destination + result_.bytes.size(); }

  // lea r, [r + n]: takes back what the instruction that stays has done. Or the two ways part.
  Expected<void> put_head() {
    if (window_.window_class == WindowClass::BothWays) {
      (void)put_open_conditional(kCarry);
      CLEW_ASSERT(offset() == kBehindField + 4);
    }
    if (window_.kept_bytes == 0) return {};
    const auto kept = kept_instruction(std::span(window_.original).first(window_.kept_bytes));
    if (!kept || kept->length != window_.kept_bytes) {
      return fail(ErrorCode::Refused, "the window keeps an instruction that cannot stay");
    }
    const TakeBack lea = take_back(*kept);
    put(std::span(lea.bytes).first(lea.size_bytes));
    return {};
  }

  Expected<void> write_instruction(unsigned index) {
    Boundary boundary{.window_offset = window_.instructions[index].offset,
                      .probe_offset = offset()};
    CLEW_TRY(put_probe(index, Side::Before));
    boundary.copy_offset = offset();
    result_.boundaries.push_back(boundary);
    CLEW_TRY(write_form(index));
    if (const Tail* const tail = tail_of(index, Side::Passed)) {
      return put_tail(*tail, index, Side::Passed);
    }
    return put_probe(index, Side::Passed);
  }

  Expected<void> write_form(unsigned index) {
    const Displaced& displaced = window_.instructions[index];
    const uint64_t target = displaced.target + placement_.load_bias;
    switch (displaced.form) {
      case Form::Plain:
      case Form::Return:
        put(original(displaced));
        return {};
      case Form::RipRelative:
        return put_rip_relative(displaced, original(displaced));
      case Form::IndirectJump:
        if (displaced.field_offset != 0) return put_rip_relative(displaced, original(displaced));
        put(original(displaced));
        return {};
      case Form::Jump:
        return put_taken(index, target);
      case Form::ConditionalJump:
        return write_conditional(index, target);
      case Form::CountJump:
        return write_count_jump(index, target);
      case Form::Call:
        put_return_address(displaced);
        return put_jump(target);
      case Form::IndirectCall:
        put_return_address(displaced);
        put(as_jump(displaced));
        return {};
      case Form::RipIndirectCall:
        put_return_address(displaced);
        return put_rip_relative(displaced, as_jump(displaced));
    }
    return {};
  }

  //   jcc target                      without a point on its taken side
  //   jncc over ; probe ; jmp target ; over:
  Expected<void> write_conditional(unsigned index, uint64_t target) {
    const std::span<const uint8_t> bytes = original(window_.instructions[index]);
    const bool is_short = bytes[opcode_offset(bytes)] != 0x0f;
    const uint8_t opcode = bytes[bytes.size() - (is_short ? 2 : 5)];
    const auto condition = static_cast<uint8_t>(opcode & 15);
    if (!has_taken(index)) return put_conditional(condition, target);
    const uint32_t field = put_open_conditional(static_cast<uint8_t>(condition ^ 1));
    CLEW_TRY(put_taken(index, target));
    close(field);
    return {};
  }

  //   loop taken ; jmp over ; taken: probe ; jmp target ; over:
  Expected<void> write_count_jump(unsigned index, uint64_t target) {
    std::vector<uint8_t> bytes(original(window_.instructions[index]).begin(),
                               original(window_.instructions[index]).end());
    bytes.back() = kJumpSizeBytes;
    put(bytes);
    put_byte(kJumpRel32);
    put_field(0, 4);
    const uint32_t field = offset() - 4;
    CLEW_TRY(put_taken(index, target));
    close(field);
    return {};
  }

  Expected<void> put_taken(unsigned index, uint64_t target) {
    if (const Tail* const tail = tail_of(index, Side::Taken)) {
      return put_tail(*tail, index, Side::Taken);
    }
    CLEW_TRY(put_probe(index, Side::Taken));
    return put_jump(target);
  }

  Expected<void> put_tail(const Tail& tail, unsigned index, Side side) {
    const auto bytes = std::span(tail.bytes).first(tail.size_bytes);
    put(bytes.first(tail.ret_offset));
    CLEW_TRY(put_probe(index, side));
    put(bytes.subspan(tail.ret_offset));
    return {};
  }

  // Null when there is none.
  [[nodiscard]] const Tail* tail_of(unsigned index, Side side) const {
    const auto found = std::find_if(points_.begin(), points_.end(), [=](const Point& point) {
      return point.instruction == index && point.side == side && point.tail.size_bytes != 0;
    });
    return found == points_.end() ? nullptr : &found->tail;
  }

  [[nodiscard]] std::span<const uint8_t> original(const Displaced& displaced) const {
    return std::span(window_.original).subspan(displaced.offset, displaced.length);
  }

  // The bytes of `call r/m` with the operand of a jmp.
  [[nodiscard]] std::vector<uint8_t> as_jump(const Displaced& displaced) const {
    const std::span<const uint8_t> call = original(displaced);
    std::vector<uint8_t> bytes(call.begin(), call.end());
    const unsigned opcode = opcode_offset(call);
    CLEW_ASSERT(opcode + 2 <= bytes.size() && bytes[opcode] == 0xff);
    bytes[opcode + 1] = static_cast<uint8_t>(bytes[opcode + 1] ^ kCallToJump);
    return bytes;
  }

  [[nodiscard]] bool has_taken(unsigned index) const {
    return std::any_of(points_.begin(), points_.end(), [index](const Point& point) {
      return point.instruction == index && point.side == Side::Taken;
    });
  }

  Expected<void> put_probe(unsigned index, Side side) {
    std::vector<Point> group;
    for (const Point& point : points_) {
      if (point.instruction == index && point.side == side) group.push_back(point);
    }
    if (group.empty()) return {};
    return emit_(group, here(), result_.bytes);
  }

  void put_byte(uint8_t byte) { result_.bytes.push_back(byte); }

  void put(std::span<const uint8_t> bytes) {
    result_.bytes.insert(result_.bytes.end(), bytes.begin(), bytes.end());
  }

  void put_field(uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i)
      put_byte(static_cast<uint8_t>(value >> (8 * i)));
  }

  // push low ; mov dword [rsp + 4], high: touches no register and no flag.
  void put_return_address(const Displaced& displaced) {
    const uint64_t address =
        window_.address + displaced.offset + displaced.length + placement_.load_bias;
    put_byte(kPushImmediate);
    put_field(address, 4);
    put(std::array<uint8_t, 4>{0xc7, 0x44, 0x24, 0x04});
    put_field(address >> 32, 4);
  }

  Expected<void> put_jump(uint64_t target) {
    put_byte(kJumpRel32);
    return put_reach(target, here() + 4);
  }

  Expected<void> put_conditional(uint8_t condition, uint64_t target) {
    put_byte(0x0f);
    put_byte(static_cast<uint8_t>(0x80 | condition));
    return put_reach(target, here() + 4);
  }

  // A forward jcc whose target close() sets; returns the offset of its displacement.
  uint32_t put_open_conditional(uint8_t condition) {
    put_byte(0x0f);
    put_byte(static_cast<uint8_t>(0x80 | condition));
    put_field(0, 4);
    return offset() - 4;
  }

  void close(uint32_t field) {
    const uint32_t distance = offset() - (field + 4);
    std::memcpy(result_.bytes.data() + field, &distance, 4);
  }

  Expected<void> put_reach(uint64_t target, uint64_t next) {
    put_field(CLEW_TRY(displacement(target, next)), 4);
    return {};
  }

  Expected<void> put_rip_relative(const Displaced& displaced, std::span<const uint8_t> bytes) {
    const uint64_t target = displaced.target + placement_.load_bias;
    const uint32_t field = CLEW_TRY(displacement(target, here() + bytes.size()));
    const size_t at = result_.bytes.size() + displaced.field_offset;
    put(bytes);
    std::memcpy(result_.bytes.data() + at, &field, 4);
    return {};
  }

  static Expected<uint32_t> displacement(uint64_t target, uint64_t next) {
    const auto distance = static_cast<int64_t>(target - next);
    if (distance != static_cast<int32_t>(distance)) {
      return fail(ErrorCode::Limit, fmt::format("{:#x} cannot reach {:#x}: the arena is over 2 GiB "
                                                "away",
                                                next, target));
    }
    return static_cast<uint32_t>(distance);
  }

  Expected<void> make_patches() {
    if (window_.window_class == WindowClass::BothWays) return make_both_ways();
    const bool hop = window_.window_class == WindowClass::ShortJump;
    const uint64_t jump_address = hop ? window_.hop_address : window_.jump_address();
    Patch jump{.address = jump_address + placement_.load_bias, .size_bytes = kJumpSizeBytes};
    const uint8_t* before =
        hop ? window_.hop_original.data() : window_.original.data() + window_.kept_bytes;
    std::copy_n(before, kJumpSizeBytes, jump.original.begin());
    const uint32_t field =
        CLEW_TRY(displacement(placement_.destination, jump.address + kJumpSizeBytes));
    jump.replacement[0] = kJumpRel32;
    std::memcpy(&jump.replacement[1], &field, 4);
    result_.patches.push_back(jump);
    if (!hop) return {};
    Patch to_hop{.address = window_.address + placement_.load_bias,
                 .size_bytes = kShortJumpSizeBytes};
    std::copy_n(window_.original.begin(), kShortJumpSizeBytes, to_hop.original.begin());
    const uint64_t distance = window_.hop_address - (window_.address + kShortJumpSizeBytes);
    to_hop.replacement = {kJumpRel8, static_cast<uint8_t>(distance)};
    result_.patches.push_back(to_hop);
    return {};
  }

  // In one piece: it may be the last thing that we do.
  Expected<void> make_both_ways() {
    Patch patch{.address = window_.address + placement_.load_bias,
                .size_bytes = kBothWaysSizeBytes};
    std::copy_n(window_.original.begin(), kBothWaysSizeBytes, patch.original.begin());
    const auto mark = mark_over(window_.original, window_.instructions.front().length);
    std::copy(mark.begin(), mark.end(), patch.replacement.begin());
    const uint32_t field =
        CLEW_TRY(displacement(placement_.destination, patch.address + kBothWaysSizeBytes));
    patch.replacement[kMarkSizeBytes] = kJumpRel32;
    std::memcpy(&patch.replacement[kMarkSizeBytes + 1], &field, 4);
    result_.patches.push_back(patch);
    return {};
  }

  const Window& window_;
  std::span<const Point> points_;
  const Placement& placement_;
  const ProbeEmitter& emit_;
  Relocated result_;
};

}  // namespace

Expected<Relocated> relocate(const Window& window, std::span<const Point> points,
                             const Placement& placement, const ProbeEmitter& emit) {
  return Writer(window, points, placement, emit).run();
}

}  // namespace clew::code
