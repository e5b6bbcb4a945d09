// SPDX-License-Identifier: Apache-2.0
// Private variables (private_variables.h) as words of the window, and times that are ticks.
#include <algorithm>
#include <iterator>

#include "plan/d/clause_coder.h"
#include "plan/ticks.h"

namespace clew::plan::d {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Size;
using query::d::NodeKind;

namespace {

constexpr uint32_t kTickConstant = 0;  // CellClause

}  // namespace

uint32_t ClauseCoder::private_word(uint32_t variable) const {
  const auto& words = generated_.privates.words;
  const auto number = std::distance(words.begin(), words.find(variable));
  return generated_.private_area.word(static_cast<uint32_t>(number));
}

// The variable, if it holds ticks in this program.
std::optional<uint32_t> ClauseCoder::private_time(const Node& node) const {
  if (!form_.has_privates) return std::nullopt;
  const auto variable = thread_variable(script_, node);
  return variable && generated_.privates.is_time(*variable) ? variable : std::nullopt;
}

bool ClauseCoder::is_elapsed(const Node& node) const {
  return node.binary == query::d::BinaryOperator::Subtract && is_timestamp(node.operands[0]) &&
         private_time(node.operands[1]).has_value();
}

bool ClauseCoder::notes_time(const Node& node) const {
  return !node.is_compound && is_timestamp(node.operands[1]) &&
         private_time(node.operands[0]).has_value();
}

// All of a clause happens at one time.
void ClauseCoder::read_clock_once() {
  const auto reads = generated_.privates.reads.find(clause_);
  const bool is_shared =
      form_.has_privates && reads != generated_.privates.reads.end() && reads->second > 1;
  if (!is_shared) return;
  code().call(abi::Accessor::Time).load_window(Register::R1, generated_.private_area.time_word());
  code().store(Size::Double, Register::R1, 0, Register::R0);
}

void ClauseCoder::ticks() {
  if (generated_.privates.reads.at(clause_) == 1) {
    code().call(abi::Accessor::Time);
    return;
  }
  code().load_window(Register::R1, generated_.private_area.time_word());
  code().load(Size::Double, Register::R0, Register::R1, 0);
}

// Not less than nothing: on another processor the counter may be a little behind.
void ClauseCoder::elapsed(const Node& node) {
  const Label forward = code().label();
  ticks();
  code().load_window(Register::R1, private_word(*private_time(node.operands[1])));
  code().load(Size::Double, Register::R1, Register::R1, 0);
  code().alu(Alu::Subtract, Register::R0, Register::R1);
  code().jump_if(Jump::SignedGreaterOrEqual, Register::R0, 0, forward).move(Register::R0, 0);
  code().bind(forward).load_site_constant(Register::R2, kTickConstant);
  scale_ticks(code(), kTickShift);
  emit_.fit(Register::R0, node.type);
}

void ClauseCoder::note_time(const Node& node) {
  ticks();
  code().load_window(Register::R1, private_word(*private_time(node.operands[0])));
  code().store(Size::Double, Register::R1, 0, Register::R0);
}

}  // namespace clew::plan::d
