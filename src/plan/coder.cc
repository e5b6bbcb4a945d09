// SPDX-License-Identifier: Apache-2.0
// The frame of a program: begin and end, records of open calls, and time. What is computed in
// between is in coder_integer.cc, coder_branch.cc and coder_text.cc; calls that are left by
// exceptions are in coder_unwind.cc.
#include "plan/coder.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "abi/context.h"
#include "isa/validator.h"
#include "plan/coder_parts.h"
#include "plan/ticks.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;
using isa::Width;

namespace {

// So many ticks times a multiplier of 22 bits (4 ns a tick and less) fit in 64 bits.
constexpr int32_t kShortTicksLog2 = 42;

constexpr uint32_t kFrameStep = 16;  // Frames are this far apart (abi/region.h, records).

}  // namespace

Coder::Coder(const query::Query& query, const query::Source& source,
             const CoderEnvironment& environment)
    : query_(query), source_(&source), environment_(environment), exit_(builder_.label()) {}

void Coder::begin() {
  builder_.move(kContext, Register::R1);
  if (environment_.for_kernel) builder_.move(kReadable, 0);
}

Expected<isa::Program> Coder::finish(std::string name) {
  builder_.bind(exit_).move(Register::R0, 0).exit();
  write_out_of_line();
  isa::Program built = CLEW_TRY(builder_.finish(std::move(name)));
  isa::Program program = CLEW_TRY(with_functions(std::move(built)));
  if (environment_.for_kernel) return program;
  // What is out of line jumps back to the line; there are no cycles.
  CLEW_TRY(isa::validate_probe(program, {.loops_allowed = true}));
  return program;
}

Expected<int32_t> Coder::reserve(uint32_t size_bytes) {
  frame_used_ += static_cast<int32_t>((size_bytes + 7) / 8 * 8);
  if (frame_used_ > static_cast<int32_t>(isa::kFrameSizeBytes)) {
    return fail(ErrorCode::Limit,
                "the query needs more than 512 bytes of scratch memory in the probe; use shorter "
                "strings or fewer of them");
  }
  return -frame_used_;
}

void Coder::write_out_of_line() {
  for (size_t i = 0; i < out_of_line_.size(); ++i) {  // A writer may add another.
    const std::function<void()> write = out_of_line_[i];
    write();
  }
  out_of_line_.clear();
}

uint32_t Coder::site_constant(SiteConstant kind) {
  const auto found = std::find(site_constants_.begin(), site_constants_.end(), kind);
  if (found != site_constants_.end()) {
    return static_cast<uint32_t>(found - site_constants_.begin());
  }
  site_constants_.push_back(kind);
  return static_cast<uint32_t>(site_constants_.size() - 1);
}

void Coder::out_of_line(std::function<void()> write) {
  out_of_line_.push_back(std::move(write));
}

void Coder::count_loss(uint32_t header_offset) {
  builder_.load_window(Register::R2, header_offset)
      .load(Size::Double, Register::R3, Register::R2, 0)
      .alu(Alu::Add, Register::R3, 1)
      .store(Size::Double, Register::R2, 0, Register::R3);
}

// --- records -----------------------------------------------------------------------------------

// Offsets in instructions have 16 bits, so a place near the start of the window needs no addition.
int32_t Coder::record_place(Register place) {
  constexpr uint32_t kNear = 16'384;
  const abi::RecordLayout& records = environment_.records;
  const uint32_t size = records.record_size_bytes();
  const uint32_t mask = (1U << records.records_log2) - 1;
  builder_.load(Size::Double, Register::R1, kContext, offsetof(abi::Context, frame))
      .move(place, Register::R1);
  if (size == kFrameStep) {
    builder_.alu(Alu::And, place, static_cast<int32_t>(mask * size));
  } else {
    builder_.alu(Alu::ShiftRight, place, std::countr_zero(kFrameStep))
        .alu(Alu::And, place, static_cast<int32_t>(mask))
        .alu(Alu::Multiply, place, static_cast<int32_t>(size));
  }
  builder_.load_site_constant(Register::R3, site_constant(SiteConstant::RecordTag))
      .alu(Alu::Or, Register::R1, Register::R3);
  if (records.offset < kNear) return static_cast<int32_t>(records.offset);
  builder_.load_window(Register::R3, records.offset).alu(Alu::Add, place, Register::R3);
  return 0;
}

void Coder::take_record(const RecordUse& use) {
  const Label slow = builder_.label();
  const Label found = builder_.label();
  const Register place = use.arguments ? kRecord : kElapsed;
  const int32_t offset = record_place(place);
  builder_.load(Size::Double, Register::R3, place, offset)
      .jump_if(Jump::NotEqual, Register::R3, Register::R1, slow)
      .store(Size::Double, place, offset, 0);
  // Nothing is known of a pointer behind the label, so the word is loaded in front of it.
  if (use.elapsed) builder_.load(Size::Double, kElapsed, place, offset + 8);
  if (use.arguments) builder_.alu(Alu::Add, kRecord, offset + 8);
  builder_.bind(found);
  out_of_line([this, use, slow, found] {
    builder_.bind(slow)
        .call(abi::Accessor::RecordTake)
        .jump_if(Jump::Equal, Register::R0, 0, exit_);
    if (use.elapsed) builder_.load(Size::Double, kElapsed, Register::R0, 0);
    if (use.arguments) builder_.move(kRecord, Register::R0);
    builder_.jump(found);
  });
}

bool Coder::is_above_frame(uint16_t argument) const {
  return !environment_.for_kernel && argument >= 6 && argument < query::kVectorArgument;
}

// Nobody has to have pushed it: the return address of the first function on a stack may be the
// stack's last word. What lies on the return address's page is there; else the kernel reads.
void Coder::load_above_frame(uint16_t argument, Scratch scratch, Label lost) {
  constexpr int32_t kPage = 4096;
  const int32_t above = 8 * (argument - 5);
  const Label on_next_page = builder_.label();
  const Label done = builder_.label();
  builder_.load(Size::Double, Register::R3, kContext, offsetof(abi::Context, frame))
      .move(Register::R0, Register::R3)
      .alu(Alu::And, Register::R0, kPage - 1)
      .jump_if(Jump::Greater, Register::R0, kPage - above - 8, on_next_page)
      .load(Size::Double, Register::R0, kContext, argument_offset(argument))
      .bind(done);
  out_of_line([this, above, scratch, lost, on_next_page, done] {
    builder_.bind(on_next_page)
        .alu(Alu::Add, Register::R3, above)
        .move(Register::R1, scratch.base)
        .alu(Alu::Add, Register::R1, scratch.offset)
        .move(Register::R2, 8)
        .call(abi::Accessor::TryRead)
        .jump_if(Jump::Equal, Register::R0, 0, lost)
        .load(Size::Double, Register::R0, scratch.base, scratch.offset)
        .jump(done);
  });
}

// The time comes last: what stands before it is not time of the traced function.
void Coder::record_payload(int32_t offset) {
  int32_t at = offset + (environment_.records_time ? 8 : 0);
  for (const uint16_t argument : environment_.record_arguments) {
    if (is_above_frame(argument)) {
      load_above_frame(argument, {.base = kRecord, .offset = at}, without_record(offset));
    } else {
      builder_.load(Size::Double, Register::R0, kContext, argument_offset(argument));
    }
    builder_.store(Size::Double, kRecord, at, Register::R0);
    at += 8;
  }
  record_origin(offset);
  if (!environment_.records_time) return;
  builder_.call(abi::Accessor::Time).store(Size::Double, kRecord, offset, Register::R0);
}

// The call's record is given back, and the hit left out.
Label Coder::without_record(int32_t offset) {
  const Label lost = builder_.label();
  out_of_line([this, offset, lost] {
    builder_.bind(lost).store(Size::Double, kRecord, offset - 8, 0).jump(unreadable());
  });
  return lost;
}

void Coder::put_record() {
  const Label slow = builder_.label();
  const int32_t offset = record_place(kRecord);
  builder_.load(Size::Double, Register::R3, kRecord, offset)
      .jump_if(Jump::NotEqual, Register::R3, 0, slow)
      .store(Size::Double, kRecord, offset, Register::R1);
  record_payload(offset + 8);
  out_of_line([this, slow] {
    builder_.bind(slow)
        .call(abi::Accessor::RecordPut)
        .jump_if(Jump::Equal, Register::R0, 0, exit_)
        .move(kRecord, Register::R0);
    record_payload(0);
    builder_.jump(exit_);
  });
}

Expected<void> Coder::measure_elapsed(bool keep_time) {
  if (keep_time) {
    stamp(Register::R10, CLEW_TRY(reserve(8)));
  } else {
    ticks();
  }
  const Label is_long = builder_.label();
  const Label done = builder_.label();
  builder_.alu(Alu::Subtract, Register::R0, kElapsed)
      .move(Register::R1, Register::R0)
      .alu(Alu::ShiftRight, Register::R1, kShortTicksLog2)
      .jump_if(Jump::NotEqual, Register::R1, 0, is_long)
      .load_constant(Register::R2, environment_.tick_multiplier)
      .alu(Alu::Multiply, Register::R0, Register::R2)
      .alu(Alu::ShiftRight, Register::R0, static_cast<int32_t>(environment_.tick_shift))
      .bind(done)
      .move(kElapsed, Register::R0);
  out_of_line([this, is_long, done] {
    const Label forward = builder_.label();
    builder_.bind(is_long)
        .jump_if(Jump::SignedGreaterOrEqual, Register::R0, 0, forward)
        .move(Register::R0, 0)  // The thread moved to a processor whose counter is behind.
        .bind(forward);
    scale_ticks();
    builder_.jump(done);
  });
  return {};
}

// --- time --------------------------------------------------------------------------------------

void Coder::ticks() {
  if (ticks_) {
    builder_.load(Size::Double, Register::R0, ticks_->base, ticks_->offset);
  } else {
    builder_.call(abi::Accessor::Time);
  }
}

void Coder::stamp(Register base, int32_t offset) {
  ticks();
  builder_.store(Size::Double, base, offset, Register::R0);
  ticks_ = {.base = base, .offset = offset};
}

Expected<void> Coder::keep_time() {
  if (!ticks_) stamp(Register::R10, CLEW_TRY(reserve(8)));
  return {};
}

// r0 = nanoseconds of CLOCK_MONOTONIC.
void Coder::monotonic_time() {
  ticks();
  builder_.load_constant(Register::R2, environment_.base_ticks)
      .alu(Alu::Subtract, Register::R0, Register::R2);
  scale_ticks();
  builder_.load_constant(Register::R2, environment_.base_ns)
      .alu(Alu::Add, Register::R0, Register::R2);
}

// r0 = ticks in nanoseconds. Uses r1 and r2.
void Coder::scale_ticks() {
  builder_.load_constant(Register::R2, environment_.tick_multiplier);
  plan::scale_ticks(builder_, environment_.tick_shift);
}

}  // namespace clew::plan
