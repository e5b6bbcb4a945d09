// SPDX-License-Identifier: Apache-2.0
// How Coder reads memory: numbers, bytes and text, of processes and of the kernel, each read
// checked.
#include <cstddef>

#include "abi/query_window.h"
#include "plan/coder.h"
#include "plan/coder_parts.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;
using query::Expression;
using query::ExpressionKind;

Expected<void> Coder::load(const Expression& expression) {
  const int32_t mark = frame_used_;
  const int32_t area = CLEW_TRY(reserve(8));
  if (environment_.for_kernel && query::is_kernel_source(source_->kind)) {
    CLEW_TRY(load_of_kernel(expression, area));
    release(mark);
    return {};
  }
  CLEW_TRY(read_memory(expression, Register::R10, area));
  release(mark);
  builder_.load_number(Register::R0, Register::R10, area, expression.type.size_bytes,
                       expression.type.is_signed);
  return {};
}

// Loads the kernel's memory as it is, which is many times cheaper than a copy. What cannot be read
// is 0 there, so a 0 is read once more by the accessor, and so are addresses of processes. But
// where the page was read before, it is one. The last addresses are read by the accessor alone,
// too: among them is the page of vsyscalls, which is a process's, and where a load may fault for
// good (x86, fault_in_kernel_space()). r7: the address; r8: one of a page that was read, or 0.
constexpr int32_t kLastOfKernel = -(10 << 20) - 4096;  // VSYSCALL_ADDR, and a page before it.

Expected<void> Coder::load_of_kernel(const Expression& expression, int32_t area) {
  const query::Type type = expression.type;
  const Label is_zero = builder_.label();
  const Label read = builder_.label();
  const Label done = builder_.label();
  CLEW_TRY(integer(expression.operands[0]));
  builder_.move(kLoaded, Register::R0)
      .jump_if(Jump::SignedGreaterOrEqual, Register::R0, kLastOfKernel, read)
      .move(Register::R1, Register::R0)
      .call(static_cast<abi::Accessor>(abi::QueryAccessor::KernelMemory))
      .load_number(Register::R0, Register::R0, 0, type.size_bytes, type.is_signed)
      .jump_if(Jump::Equal, Register::R0, 0, is_zero)
      .move(kReadable, kLoaded)
      .bind(done);
  out_of_line([this, type, area, is_zero, read, done] {
    builder_.bind(is_zero);
    jump_if_readable(static_cast<int32_t>(type.size_bytes), done);
    builder_.bind(read)
        .move(Register::R3, kLoaded)
        .move(Register::R1, Register::R10)
        .alu(Alu::Add, Register::R1, area)
        .move(Register::R2, static_cast<int32_t>(type.size_bytes))
        .call(abi::Accessor::TryRead)
        .jump_if(Jump::Equal, Register::R0, 0, unreadable())
        .load_number(Register::R0, Register::R10, area, type.size_bytes, type.is_signed)
        .jump(done);
  });
  return {};
}

// Jumps when all bytes at r7 are in the page of r8.
void Coder::jump_if_readable(int32_t size_bytes, Label target) {
  constexpr int32_t kPageLog2 = 12;
  builder_.move(Register::R1, kLoaded)
      .move(Register::R2, kLoaded)
      .alu(Alu::Add, Register::R2, size_bytes - 1)
      .alu(Alu::Xor, Register::R1, kReadable)
      .alu(Alu::Xor, Register::R2, kReadable)
      .alu(Alu::Or, Register::R1, Register::R2)
      .alu(Alu::ShiftRight, Register::R1, kPageLog2)
      .jump_if(Jump::Equal, Register::R1, 0, target);
}

// Copies the memory that a Load, ReadString or ReadBytes names to [base + offset].
Expected<void> Coder::read_memory(const Expression& expression, Register base, int32_t offset) {
  const bool is_string = expression.kind == ExpressionKind::ReadString;
  const uint32_t bytes =
      is_text(expression.type) ? expression.type.capacity_bytes : expression.type.size_bytes;
  if (expression.operands.size() == 2) {
    for (uint32_t word = 0; is_string && word < text_words(bytes); ++word)
      builder_.store(Size::Double, base, offset + static_cast<int32_t>(8 * word), 0);
    return read_counted(expression, base, offset);
  }
  CLEW_TRY(integer(expression.operands[0]));
  if (is_text(expression.type) && bytes % 8 != 0) {
    const int32_t last = offset + static_cast<int32_t>(8 * (text_words(bytes) - 1));
    builder_.store(Size::Double, base, last, 0);
  }
  builder_.move(Register::R3, Register::R0);
  if (is_string) {
    read_text({.base = base, .offset = offset, .capacity = bytes});
    return {};
  }
  const bool ends_somewhere = expression.kind == ExpressionKind::ReadBytes && expression.index == 1;
  if (ends_somewhere) return read_to_end({.base = base, .offset = offset, .capacity = bytes});
  builder_.move(Register::R1, base)
      .alu(Alu::Add, Register::R1, offset)
      .move(Register::R2, static_cast<int32_t>(bytes))
      .call(abi::Accessor::TryRead)
      .jump_if(Jump::Equal, Register::R0, 0, unreadable());
  return {};
}

Expected<void> Coder::read_counted(const Expression& read, Register base, int32_t offset) {
  const bool is_string = read.kind == ExpressionKind::ReadString;
  const int32_t most = read.type.capacity_bytes - (is_string ? 1 : 0);
  const int32_t mark = frame_used_;
  const int32_t address = CLEW_TRY(reserve(8));
  CLEW_TRY(integer(read.operands[0]));
  builder_.store(Size::Double, Register::R10, address, Register::R0);
  CLEW_TRY(integer(read.operands[1]));
  const Label fits = builder_.label();
  const Label done = builder_.label();
  const Label nothing = builder_.label();
  builder_.jump_if(Jump::SignedLessOrEqual, Register::R0, 0, nothing)
      .jump_if(Jump::SignedLessOrEqual, Register::R0, most, fits)
      .move(Register::R0, most)
      .bind(fits)
      .move(Register::R2, Register::R0);
  if (is_string) builder_.alu(Alu::Add, Register::R2, 1);
  builder_.load(Size::Double, Register::R3, Register::R10, address)
      .move(Register::R1, base)
      .alu(Alu::Add, Register::R1, offset)
      .call(is_string ? abi::Accessor::TryReadString : abi::Accessor::TryRead)
      .jump_if(is_string ? Jump::SignedLess : Jump::Equal, Register::R0, 0, unreadable())
      .bind(done);
  release(mark);
  out_of_line([this, nothing, done] { builder_.bind(nothing).move(Register::R0, 0).jump(done); });
  return {};
}

// r3 = the address.
Expected<void> Coder::read_to_end(const TextPlace& to) {
  constexpr int32_t kPage = 4096;
  const int32_t mark = frame_used_;
  const int32_t address = CLEW_TRY(reserve(8));
  const Label again = builder_.label();
  const Label done = builder_.label();
  builder_.store(Size::Double, Register::R10, address, Register::R3)
      .move(Register::R1, to.base)
      .alu(Alu::Add, Register::R1, to.offset)
      .move(Register::R2, static_cast<int32_t>(to.capacity))
      .call(abi::Accessor::TryRead)
      .jump_if(Jump::Equal, Register::R0, 0, again)
      .bind(done);
  out_of_line([this, to, address, again, done] {
    builder_.bind(again)
        .load(Size::Double, Register::R3, Register::R10, address)
        .move(Register::R0, Register::R3)
        .alu(Alu::And, Register::R0, kPage - 1)
        .move(Register::R2, kPage)
        .alu(Alu::Subtract, Register::R2, Register::R0)
        .jump_if(Jump::GreaterOrEqual, Register::R2, static_cast<int32_t>(to.capacity),
                 unreadable())
        .move(Register::R1, to.base)
        .alu(Alu::Add, Register::R1, to.offset)
        .call(abi::Accessor::TryRead)
        .jump_if(Jump::Equal, Register::R0, 0, unreadable())
        .jump(done);
  });
  release(mark);
  return {};
}

// r3 = the address; r0 = the length.
void Coder::read_text(const TextPlace& to) {
  builder_.move(Register::R1, to.base)
      .alu(Alu::Add, Register::R1, to.offset)
      .move(Register::R2, static_cast<int32_t>(to.capacity))
      .call(abi::Accessor::TryReadString)
      .jump_if(Jump::SignedLess, Register::R0, 0, unreadable());
}

// In two parts, as what is behind a text is written over with zeros: short text does not pay for
// what it could have been.
Expected<void> Coder::read_long_text(const TextPlace& to) {
  constexpr uint32_t kFirstBytes = 256;
  builder_.move(Register::R3, Register::R0);
  if (to.capacity <= kFirstBytes) {
    read_text(to);
    return {};
  }
  constexpr auto kFirstLength = static_cast<int32_t>(kFirstBytes) - 1;
  const int32_t mark = frame_used_;
  const int32_t address = CLEW_TRY(reserve(8));
  builder_.store(Size::Double, Register::R10, address, Register::R3);
  read_text({.base = to.base, .offset = to.offset, .capacity = kFirstBytes});
  release(mark);
  const Label more = builder_.label();
  const Label done = builder_.label();
  builder_.jump_if(Jump::Equal, Register::R0, kFirstLength, more).bind(done);
  out_of_line([this, to, address, more, done] {
    builder_.bind(more)
        .load(Size::Double, Register::R3, Register::R10, address)
        .alu(Alu::Add, Register::R3, kFirstLength);
    read_text({.base = to.base,
               .offset = to.offset + kFirstLength,
               .capacity = to.capacity - kFirstBytes + 1});
    builder_.alu(Alu::Add, Register::R0, kFirstLength).jump(done);
  });
  return {};
}

}  // namespace clew::plan
