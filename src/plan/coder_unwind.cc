// SPDX-License-Identifier: Apache-2.0
// Calls that are left by exceptions, or open at the end: what their records hold beside time and
// arguments; and the program that runs where the unwinder goes on in an outer frame.
//
//     next:    r7 = the next record of a call that is left; none: exit
//     part:    when the record is of this source: its filters and updates; go to next
//     …        one part per exception source
//              go to next: a record that only keeps the table in order
//
// The loop ends because each turn takes a record out of the table.
#include <algorithm>
#include <cstddef>

#include "abi/context.h"
#include "plan/coder.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Register;
using isa::Size;

namespace {

constexpr int32_t kWord = 8;

// The unwinder enters an outer frame by `mov rsp, rcx`; rcx leads to the address where it goes on,
// which is popped.
constexpr auto kLandingOffset =
    static_cast<int32_t>(offsetof(abi::Context, arguments) + size_t{8} * 3);

// longjmp: `mov rsp, r8`.
constexpr auto kJumpOffset =
    static_cast<int32_t>(offsetof(abi::Context, arguments) + size_t{8} * 4);

template <typename T>
int32_t index_in(const std::vector<T>& all, const T& wanted) {
  return static_cast<int32_t>(std::find(all.begin(), all.end(), wanted) - all.begin());
}

}  // namespace

int32_t CoderEnvironment::argument_at(uint16_t argument) const {
  return (records_time ? kWord : 0) + kWord * index_in(record_arguments, argument);
}

int32_t CoderEnvironment::source_at() const {
  return (records_time ? kWord : 0) + kWord * static_cast<int32_t>(record_arguments.size());
}

int32_t CoderEnvironment::caller_at() const {
  return source_at() + (records_source ? kWord : 0);
}

int32_t CoderEnvironment::constant_at(SiteConstant constant) const {
  return caller_at() + (records_caller ? kWord : 0) + kWord * index_in(record_constants, constant);
}

int32_t CoderEnvironment::registers_at() const {
  return caller_at() + (records_caller ? kWord : 0) +
         kWord * static_cast<int32_t>(record_constants.size());
}

uint32_t CoderEnvironment::payload_words() const {
  return static_cast<uint32_t>((records_time ? 1 : 0) + record_arguments.size() +
                               (records_source ? 1 : 0) + (records_caller ? 1 : 0) +
                               record_constants.size() + (records_registers ? 2 : 0));
}

void Coder::record_caller(int32_t offset) {
  if (!environment_.records_caller) return;
  builder_.load(Size::Double, Register::R0, Register::R6, offsetof(abi::Context, caller))
      .store(Size::Double, Register::R7, offset + environment_.caller_at(), Register::R0);
}

void Coder::record_origin(int32_t offset) {
  if (query_.including_open || source_->kind == query::SourceKind::Exception) record_caller(offset);
  if (!environment_.records_source) return;
  const auto index = static_cast<int32_t>(source_ - query_.sources.data());
  builder_.store(Size::Double, Register::R7, offset + environment_.source_at(), index);
  if (source_->kind != query::SourceKind::Exception) return;
  for (const SiteConstant constant : environment_.record_constants) {
    builder_.load_site_constant(Register::R0, site_constant(constant))
        .store(Size::Double, Register::R7, offset + environment_.constant_at(constant),
               Register::R0);
  }
  if (!environment_.records_registers) return;
  const int32_t registers = offset + environment_.registers_at();
  builder_.load(Size::Double, Register::R0, Register::R6, offsetof(abi::Context, base_pointer))
      .store(Size::Double, Register::R7, registers, Register::R0)
      .load(Size::Double, Register::R0, Register::R6, offsetof(abi::Context, rbx))
      .store(Size::Double, Register::R7, registers + kWord, Register::R0);
}

void Coder::drop_record() {
  drop_record(exit_);
}

void Coder::forget_record() {
  const isa::Label done = builder_.label();
  drop_record(done);
  builder_.bind(done);
}

void Coder::drop_record(isa::Label done) {
  const isa::Label slow = builder_.label();
  const int32_t offset = record_place(Register::R7);
  builder_.load(Size::Double, Register::R3, Register::R7, offset)
      .jump_if(Jump::NotEqual, Register::R3, Register::R1, slow)
      .store(Size::Double, Register::R7, offset, 0);
  out_of_line(
      [this, slow, done] { builder_.bind(slow).call(abi::Accessor::RecordDrop).jump(done); });
}

void Coder::note_unwinder() {
  builder_.load(Size::Double, Register::R0, Register::R6, offsetof(abi::Context, frame))
      .load_window(Register::R2, offsetof(abi::RegionHeader, unwind_from))
      .store(Size::Double, Register::R2, 0, Register::R0);
}

// The jump may lead to another stack: coroutines can be made so. Those are further apart than
// errors are thrown, and what lies between is left alone.
void Coder::drop_jumped() {
  constexpr int32_t kJumpMax = 128 << 10;
  const isa::Label next = builder_.label();
  const isa::Label far = builder_.label();
  builder_.load(Size::Double, Register::R1, Register::R6, kJumpOffset)
      .move(Register::R3, Register::R1)
      .load_window(Register::R2, offsetof(abi::RegionHeader, unwind_from))
      .load(Size::Double, Register::R0, Register::R2, 0)
      .alu(Alu::Subtract, Register::R3, Register::R0)
      .jump_if(Jump::Greater, Register::R3, kJumpMax, far)
      .bind(next)
      .load(Size::Double, Register::R1, Register::R6, kJumpOffset)
      .call(abi::Accessor::RecordTakeLeft)
      .jump_if(Jump::NotEqual, Register::R0, 0, next)
      .jump(exit_)
      .bind(far)
      .store(Size::Double, Register::R2, 0, 0);
}

void Coder::begin_landing() {
  begin();
  landing_ = Landing{.next_record = builder_.label(), .next_part = {}, .done = exit_};
  builder_.bind(landing_->next_record)
      .load(Size::Double, Register::R1, Register::R6, kLandingOffset)
      .alu(Alu::Add, Register::R1, kWord)
      .call(abi::Accessor::RecordTakeLeft)
      .jump_if(Jump::Equal, Register::R0, 0, landing_->done)
      .move(Register::R7, Register::R0);
}

void Coder::begin_part(const query::Source& source, bool elapsed) {
  source_ = &source;
  lets_.clear();
  ticks_.reset();
  frame_used_ = 0;
  samples_ = 0;
  exit_ = builder_.label();
  landing_->next_part = builder_.label();
  const auto index = static_cast<int32_t>(source_ - query_.sources.data());
  builder_.load(Size::Double, Register::R0, Register::R7, environment_.source_at())
      .jump_if(Jump::NotEqual, Register::R0, index, landing_->next_part);
  if (elapsed) builder_.load(Size::Double, Register::R8, Register::R7, 0);
}

// Of the call that is left, from its caller on, as at a return.
void Coder::walk_left(const query::Expression& stack, Register base, int32_t offset) {
  const int32_t registers = environment_.registers_at();
  builder_.move(Register::R1, base)
      .alu(Alu::Add, Register::R1, offset)
      .move(Register::R2, static_cast<int32_t>(frames_of(stack)))
      .load(Size::Double, Register::R3, Register::R6, kLandingOffset)
      .load(Size::Double, Register::R4, Register::R7, registers)
      .load(Size::Double, Register::R5, Register::R7, registers + kWord)
      .call(abi::Accessor::WalkLeft)
      .jump_if(Jump::Equal, Register::R0, 0, unreadable());
}

void Coder::end_part() {
  builder_.bind(exit_).jump(landing_->next_record);
  write_out_of_line();
  unreadable_.reset();
  builder_.bind(landing_->next_part);
  exit_ = landing_->done;
}

void Coder::end_landing() {
  builder_.jump(landing_->next_record);
}

void Coder::load_site(Register into, SiteConstant kind) {
  if (landing_) {
    builder_.load(Size::Double, into, Register::R7, environment_.constant_at(kind));
    return;
  }
  builder_.load_site_constant(into, site_constant(kind));
}

}  // namespace clew::plan
