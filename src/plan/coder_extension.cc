// SPDX-License-Identifier: Apache-2.0
// Calls of functions of extensions. While a program is written such a call is a placeholder; in the
// end the function's code stands in its place (isa/inline_calls.h).
//
//     r1 … = arguments ; call ; r6 = context ; r0 = result, canonical
//
// A function keeps r7 to r9 as every function does. The context cannot be kept in memory, so it is
// loaded again, which costs no instruction. In the kernel the placeholder stays: the function is
// one of the kernel's program there (kernel/extensions.h).
#include <cstddef>

#include <fmt/format.h>

#include "abi/query_window.h"
#include "abi/region.h"
#include "plan/coder.h"
#include "plan/coder_parts.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;
using query::Expression;

namespace {

// After so many hits of a probe that ran out of fuel, in all threads together, its hits end at
// once, until the tracer has taken the probe out (engine/fuel_guard.h).
constexpr int32_t kExhaustedMax = 8;
constexpr isa::InlineLimits kLimits = {.calls_max = 4096, .frame_bytes_max = isa::kFrameSizeBytes};

Register argument_register(size_t index) {
  return static_cast<Register>(static_cast<size_t>(Register::R1) + index);
}

}  // namespace

void Coder::initialise(const LinkedState& state) {
  const Label fresh = builder_.label();
  const Label ready = builder_.label();
  builder_.load_window(Register::R2, state.ready_offset)
      .load(Size::Double, Register::R3, Register::R2, 0)
      .jump_if(Jump::Equal, Register::R3, 0, fresh)
      .bind(ready);
  out_of_line([this, state, fresh, ready] {
    builder_.bind(fresh);
    for (const extension::InitialWord& word : state.initial_words) {
      builder_.load_window(Register::R2, state.offset + word.offset_bytes)
          .load_constant(Register::R3, word.value)
          .store(Size::Double, Register::R2, 0, Register::R3);
    }
    builder_.load_window(Register::R2, state.ready_offset)
        .store(Size::Double, Register::R2, 0, 1)
        .jump(ready);
  });
}

void Coder::prepare_extensions(const std::set<std::string>& functions) {
  bool has_loops = false;
  std::set<uint16_t> fresh;
  for (const std::string& name : functions) {
    const LinkedFunction& linked = environment_.functions.at(name);
    has_loops |= linked.function->has_loops;
    if (!environment_.extension_states[linked.extension].initial_words.empty())
      fresh.insert(linked.extension);
  }
  if (has_loops) {
    const Label exhausted = builder_.label();
    builder_
        .load_global(Register::R2, 0)  // The probe's word of abi::TargetPage::spent.
        .load(Size::Word, Register::R3, Register::R2, 0)
        .jump_if(Jump::GreaterOrEqual, Register::R3, kExhaustedMax, exhausted);
    out_of_line([this, exhausted] {
      builder_.bind(exhausted)
          .load_window(Register::R2, environment_.left_alone_offset)
          .load(Size::Double, Register::R3, Register::R2, 0)
          .alu(Alu::Add, Register::R3, 1)
          .store(Size::Double, Register::R2, 0, Register::R3)
          .jump(exit_);
    });
  }
  for (const uint16_t extension : fresh)
    initialise(environment_.extension_states[extension]);
}

Expected<void> Coder::extension_call(const Expression& expression) {
  const auto linked = environment_.functions.find(expression.text);
  if (linked == environment_.functions.end()) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("'{}' is a function of an extension, which is not possible here",
                            expression.text));
  }
  const int32_t mark = frame_used_;
  std::vector<int32_t> areas;
  for (const Expression& argument : expression.operands) {
    areas.push_back(CLEW_TRY(reserve(8)));
    CLEW_TRY(integer(argument));
    builder_.store(Size::Double, Register::R10, areas.back(), Register::R0);
  }
  for (size_t i = 0; i < areas.size(); ++i)
    builder_.load(Size::Double, argument_register(i), Register::R10, areas[i]);
  release(mark);
  std::vector<isa::Reference>& calls = environment_.for_kernel ? kernel_calls_ : references_;
  calls.push_back({builder_.size(), true, expression.text});
  builder_.call_local(exit_).load_context(kContext);
  if (environment_.for_kernel) {
    // The function may have ended the hit.
    builder_
        .load_window(Register::R1, abi::kQueryMachine + offsetof(abi::MachineWindowHeader, fault))
        .load(Size::Double, Register::R1, Register::R1, 0)
        .jump_if(Jump::NotEqual, Register::R1, 0, exit_);
  }
  canonical(expression.type);
  return {};
}

// The functions' code instead of the placeholders.
Expected<isa::Program> Coder::with_functions(isa::Program program) const {
  if (references_.empty()) return program;
  const auto find = [this](const std::string& name) {
    return &environment_.functions.at(name).body;
  };
  isa::Body whole = isa::with_inlined_calls(
      {.code = std::move(program.code), .references = references_}, find,
      [](std::string_view) { return true; }, kLimits);
  if (!whole.references.empty()) {
    return fail(ErrorCode::Limit,
                fmt::format("the query with the code of '{}' is too long, or needs more than {} "
                            "bytes of local variables",
                            whole.references[0].symbol, isa::kFrameSizeBytes));
  }
  program.code = std::move(whole.code);
  return program;
}

}  // namespace clew::plan
