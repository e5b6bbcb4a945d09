// SPDX-License-Identifier: Apache-2.0
// Private variables (private_variables.h) as words of the window, and times that are ticks.
#include "plan/d/clause_coder.h"
#include "plan/ticks.h"

namespace clew::plan::d {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Size;

// The variable's word, if it has one in this program.
std::optional<uint32_t> ClauseCoder::private_word(uint32_t variable) const {
  const auto& words = generated_.privates.words;
  const auto found = form_.has_privates ? words.find(variable) : words.end();
  if (found == words.end()) return std::nullopt;
  return generated_.private_area.word(found->second);
}

// The word of a variable that holds ticks in this program.
std::optional<uint32_t> ClauseCoder::tick_word(std::optional<uint32_t> variable) const {
  if (!variable || !generated_.privates.times.contains(*variable)) return std::nullopt;
  return private_word(*variable);
}

// All of a firing happens at one time: that of whoever asks first.
void ClauseCoder::ticks() {
  const Label known = code().label();
  code().load_window(Register::R1, generated_.private_area.time_word());
  code().load(Size::Double, Register::R0, Register::R1, 0);
  code().jump_if(Jump::NotEqual, Register::R0, 0, known);
  code().call(abi::Accessor::Time).load_window(Register::R1, generated_.private_area.time_word());
  code().store(Size::Double, Register::R1, 0, Register::R0).bind(known);
}

// Not less than nothing: on another processor the counter may be a little behind.
void ClauseCoder::elapsed(uint32_t since, TypeId type) {
  const Label forward = code().label();
  ticks();
  code().load_window(Register::R1, since).load(Size::Double, Register::R1, Register::R1, 0);
  code().alu(Alu::Subtract, Register::R0, Register::R1);
  code().jump_if(Jump::SignedGreaterOrEqual, Register::R0, 0, forward).move(Register::R0, 0);
  code().bind(forward).load_site_constant(Register::R2, kTickConstant);
  scale_ticks(code(), kTickShift);
  emit_.fit(Register::R0, type);
}

void ClauseCoder::note_time(uint32_t word) {
  ticks();
  code().load_window(Register::R1, word).store(Size::Double, Register::R1, 0, Register::R0);
}

}  // namespace clew::plan::d
