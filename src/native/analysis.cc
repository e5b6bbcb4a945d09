// SPDX-License-Identifier: Apache-2.0
// The two data-flow passes. States are kept per operation: programs are short.
#include "native/analysis.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "abi/context.h"
#include "abi/region.h"
#include "abi/slot.h"

namespace clew::native {
namespace {

using Kind = OperationKind;

constexpr Value constant(uint64_t value) {
  return {.kind = Value::Kind::Constant, .constant = value};
}
constexpr Value in_register() {
  return {.kind = Value::Kind::Register};
}

constexpr uint16_t register_bit(uint8_t bpf_register) {
  return static_cast<uint16_t>(1U << bpf_register);
}

Value merge(const Value& a, const Value& b) {
  if (a.kind == Value::Kind::Unreached) return b;
  return a == b || b.kind == Value::Kind::Unreached ? a : in_register();
}

int64_t as_signed(uint64_t value, bool wide) {
  return wide ? static_cast<int64_t>(value) : int64_t{static_cast<int32_t>(value)};
}

uint64_t divide(const Operation& op, uint64_t a, uint64_t b) {
  const bool remainder = op.alu == isa::Alu::Modulo;
  if (b == 0) return remainder ? a : 0;
  if (!op.is_signed) return remainder ? a % b : a / b;
  const int64_t x = as_signed(a, op.wide);
  const int64_t y = as_signed(b, op.wide);
  if (y == -1) return remainder ? 0 : 0 - static_cast<uint64_t>(x);
  return static_cast<uint64_t>(remainder ? x % y : x / y);
}

uint64_t fold(const Operation& op, uint64_t a, uint64_t b) {
  const uint64_t width_mask = op.wide ? 63 : 31;
  if (!op.wide) {
    a = static_cast<uint32_t>(a);
    b = static_cast<uint32_t>(b);
  }
  uint64_t result = 0;
  switch (op.alu) {
    case isa::Alu::Add:
      result = a + b;
      break;
    case isa::Alu::Subtract:
      result = a - b;
      break;
    case isa::Alu::Multiply:
      result = a * b;
      break;
    case isa::Alu::Divide:
    case isa::Alu::Modulo:
      result = divide(op, a, b);
      break;
    case isa::Alu::Or:
      result = a | b;
      break;
    case isa::Alu::And:
      result = a & b;
      break;
    case isa::Alu::Xor:
      result = a ^ b;
      break;
    case isa::Alu::ShiftLeft:
      result = a << (b & width_mask);
      break;
    case isa::Alu::ShiftRight:
      result = a >> (b & width_mask);
      break;
    case isa::Alu::ShiftRightSigned:
      result = static_cast<uint64_t>(as_signed(a, op.wide) >> (b & width_mask));
      break;
    case isa::Alu::Negate:
      result = 0 - a;
      break;
    case isa::Alu::Move:
      result = b;
      break;
    case isa::Alu::Swap:
      break;
  }
  return op.wide ? result : static_cast<uint32_t>(result);
}

uint64_t sign_extend(uint64_t value, uint32_t size_bytes, bool wide) {
  const uint32_t shift = 64 - 8 * size_bytes;
  const auto extended = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
  return wide ? extended : static_cast<uint32_t>(extended);
}

uint64_t swap(const Operation& op, uint64_t value) {
  const uint32_t shift = 64 - 8U * op.size_bytes;
  if (op.reversed) return __builtin_bswap64(value) >> shift;
  return value << shift >> shift;
}

bool holds(const Operation& op, uint64_t a, uint64_t b) {
  if (!op.wide) {
    a = static_cast<uint32_t>(a);
    b = static_cast<uint32_t>(b);
  }
  const int64_t x = as_signed(a, op.wide);
  const int64_t y = as_signed(b, op.wide);
  switch (op.jump) {
    case isa::Jump::Equal:
      return a == b;
    case isa::Jump::NotEqual:
      return a != b;
    case isa::Jump::Greater:
      return a > b;
    case isa::Jump::GreaterOrEqual:
      return a >= b;
    case isa::Jump::Less:
      return a < b;
    case isa::Jump::LessOrEqual:
      return a <= b;
    case isa::Jump::BitsSet:
      return (a & b) != 0;
    case isa::Jump::SignedGreater:
      return x > y;
    case isa::Jump::SignedGreaterOrEqual:
      return x >= y;
    case isa::Jump::SignedLess:
      return x < y;
    case isa::Jump::SignedLessOrEqual:
      return x <= y;
    case isa::Jump::Always:
      return true;
    case isa::Jump::Call:
    case isa::Jump::Exit:
      return false;
  }
  return false;
}

// What is known of a branch.
enum class Outcome : uint8_t { Open, Taken, NotTaken };

class Analysis {
 public:
  Analysis(std::span<const Operation> operations, PointKind point, abi::RegisterSet clobbers)
      : operations_(operations), point_(point), clobbers_(clobbers), facts_(operations.size()) {}

  Expected<std::vector<Facts>> run() {
    CLEW_TRY(propagate());
    find_live();
    mark_targets();
    return std::move(facts_);
  }

 private:
  Expected<void> propagate();
  [[nodiscard]] Value operand(const Operation& op, const Values& values) const;
  [[nodiscard]] Value result(const Operation& op, const Facts& facts) const;
  [[nodiscard]] Value loaded(const Operation& op, const Facts& facts) const;
  [[nodiscard]] Value loaded_context(const Operation& op) const;
  void store(const Operation& op, State& state) const;
  [[nodiscard]] Expected<void> check(size_t index) const;
  void reach(uint32_t index, const State& state);
  void follow(uint32_t index, const State& after);
  void find_live();
  bool update_live(size_t index);
  [[nodiscard]] uint16_t live_before(size_t index) const;
  [[nodiscard]] Outcome decided(const Operation& op, const Values& values) const;
  void mark_targets();

  std::span<const Operation> operations_;
  PointKind point_;
  abi::RegisterSet clobbers_;
  std::vector<Facts> facts_;
  std::vector<uint32_t> pending_;
};

Value Analysis::operand(const Operation& op, const Values& values) const {
  return op.has_source ? values[op.source] : constant(op.immediate);
}

// The place in the window of a memory operand, when it is known.
std::optional<uint64_t> place_of(const Operation& op, const Value& base) {
  if (!base.is_constant()) return std::nullopt;
  const uint64_t place = base.constant + static_cast<uint64_t>(int64_t{op.offset_bytes});
  if (place > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return place;
}

Value Analysis::loaded(const Operation& op, const Facts& facts) const {
  const Value& base = facts.values[op.source];
  if (base.kind == Value::Kind::Context) return loaded_context(op);
  const auto place = place_of(op, base);
  for (const KnownWord& word : facts.words) {
    const bool found = word.place != 0 && place == word.place && op.size_bytes == 8;
    if (found) return word.value;
  }
  return in_register();
}

// What a store, an atomic or a call leaves of the known words.
void Analysis::store(const Operation& op, State& state) const {
  const bool calls = op.kind == Kind::Call && !is_inline(op.accessor);
  const bool stores = op.kind == Kind::Store;
  if (!stores && !calls && op.kind != Kind::Atomic) return;
  const auto place = stores ? place_of(op, state.values[op.destination]) : std::nullopt;
  if (!place) {
    state.words = {};
    return;
  }
  for (KnownWord& word : state.words) {
    const bool apart = *place + op.size_bytes <= word.place || *place >= word.place + 8;
    if (!apart) word = {};
  }
  const Value value = operand(op, state.values);
  const bool known = value.is_constant() || value.kind == Value::Kind::Live;
  const bool in_frame = *place >= abi::kFrameOffset && *place + 8 <= abi::kFrameEnd;
  if (!known || !in_frame || op.size_bytes != 8) return;
  for (KnownWord& word : state.words) {
    if (word.place != 0) continue;
    word = {.place = static_cast<uint32_t>(*place), .value = value};
    return;
  }
}

Value Analysis::loaded_context(const Operation& op) const {
  const auto offset = static_cast<uint32_t>(op.offset_bytes);
  const auto word = context_word(point_, offset);
  const bool whole = op.size_bytes == 8 && offset % 8 == 0 && word.has_value();
  if (!whole || word->where != ContextWord::Where::Argument || clobbers_.has(word->argument)) {
    return in_register();
  }
  return {.kind = Value::Kind::Live, .live = word->argument};
}

Value Analysis::result(const Operation& op, const Facts& facts) const {
  const Value& left = facts.values[op.destination];
  const Value right = operand(op, facts.values);
  switch (op.kind) {
    case Kind::Move:
      if (op.is_context) return {.kind = Value::Kind::Context};
      if (op.wide) return right;
      return right.is_constant() ? constant(static_cast<uint32_t>(right.constant)) : in_register();
    case Kind::MoveSigned:
      if (!right.is_constant()) return in_register();
      return constant(sign_extend(right.constant, op.size_bytes, op.wide));
    case Kind::Binary:
      if (!left.is_constant() || !right.is_constant()) return in_register();
      return constant(fold(op, left.constant, right.constant));
    case Kind::Negate:
      if (!left.is_constant()) return in_register();
      return constant(op.wide ? 0 - left.constant : static_cast<uint32_t>(0 - left.constant));
    case Kind::Swap:
      return left.is_constant() ? constant(swap(op, left.constant)) : in_register();
    case Kind::Load:
      return loaded(op, facts);
    case Kind::Atomic:
    case Kind::Call:
    case Kind::Nothing:
    case Kind::Store:
    case Kind::Branch:
    case Kind::Jump:
    case Kind::Exit:
      return in_register();
  }
  return in_register();
}

Outcome Analysis::decided(const Operation& op, const Values& values) const {
  if (op.kind != Kind::Branch) return op.kind == Kind::Jump ? Outcome::Taken : Outcome::NotTaken;
  const Value right = operand(op, values);
  const Value& left = values[op.destination];
  if (!left.is_constant() || !right.is_constant()) return Outcome::Open;
  return holds(op, left.constant, right.constant) ? Outcome::Taken : Outcome::NotTaken;
}

// The validator has these rules too; here they keep a program that skipped it from being
// mistranslated.
Expected<void> Analysis::check(size_t index) const {
  const Operation& op = operations_[index];
  const Values& values = facts_[index].values;
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::InvalidQuery, fmt::format("instruction {}: {}", index, why));
  };
  const auto is_context = [&](uint8_t r) { return values[r].kind == Value::Kind::Context; };
  const bool is_move = op.kind == Kind::Move && op.wide;
  const bool is_load = op.kind == Kind::Load;
  if (is_load && is_context(op.source)) {
    const auto offset = static_cast<uint32_t>(op.offset_bytes);
    if (op.offset_bytes < 0 || offset % 8 + op.size_bytes > 8) {
      return refuse("a load that is not inside a word of the context");
    }
    if (!context_word(point_, offset))
      return refuse("a context field that this point does not have");
    return {};
  }
  const bool has_left = op.kind == Kind::Binary || op.kind == Kind::Negate ||
                        op.kind == Kind::Swap || op.kind == Kind::Store ||
                        op.kind == Kind::Atomic || op.kind == Kind::Branch;
  const bool has_right =
      op.has_source || is_load || op.kind == Kind::MoveSigned || op.kind == Kind::Atomic;
  const bool misused =
      (has_left && is_context(op.destination)) || (has_right && !is_move && is_context(op.source));
  if (misused) return refuse("the context pointer is used for more than loads");
  if (op.kind != Kind::Call) return {};
  const uint16_t arguments = argument_registers(op.accessor);
  for (uint8_t r = 1; r <= 5; ++r) {
    const bool is_read = (arguments & register_bit(r)) != 0;
    if (is_read && is_context(r)) return refuse("the context pointer is given to an accessor");
  }
  return {};
}

void Analysis::reach(uint32_t index, const State& state) {
  Facts& facts = facts_[index];
  bool changed = !facts.reached;
  if (changed) facts.words = state.words;
  facts.reached = true;
  for (uint32_t r = 0; r < kBpfRegisters; ++r) {
    const Value merged = merge(facts.values[r], state.values[r]);
    changed = changed || merged != facts.values[r];
    facts.values[r] = merged;
  }
  for (KnownWord& word : facts.words) {
    const bool agreed =
        std::find(state.words.begin(), state.words.end(), word) != state.words.end();
    if (word.place == 0 || agreed) continue;
    word = {};
    changed = true;
  }
  if (changed) pending_.push_back(index);
}

void Analysis::follow(uint32_t index, const State& after) {
  const Operation& op = operations_[index];
  if (op.kind == Kind::Exit) return;
  const Outcome outcome = decided(op, facts_[index].values);
  if (outcome != Outcome::NotTaken) reach(op.target, after);
  if (outcome != Outcome::Taken) reach(index + 1, after);
}

Expected<void> Analysis::propagate() {
  State entry = {};
  entry.values.fill(in_register());
  entry.values[1] = {.kind = Value::Kind::Context};
  entry.values[10] = constant(abi::kFrameEnd);
  reach(0, entry);
  while (!pending_.empty()) {
    const uint32_t index = pending_.back();
    pending_.pop_back();
    CLEW_TRY(check(index));
    Facts& facts = facts_[index];
    const Operation& op = operations_[index];
    State after = {.values = facts.values, .words = facts.words};
    store(op, after);
    const auto written = result_register(op);
    if (written) {
      facts.result = result(op, facts);
      after.values[*written] = facts.result;
    }
    follow(index, after);
  }
  return {};
}

uint16_t Analysis::live_before(size_t index) const {
  const Operation& op = operations_[index];
  const Facts& facts = facts_[index];
  uint32_t live = facts.live_after;
  const auto written = result_register(op);
  if (written) live &= ~uint32_t{register_bit(*written)};
  if (facts.needed) live |= register_reads(op, facts);
  return static_cast<uint16_t>(live);
}

bool has_effect(const Operation& op) {
  switch (op.kind) {
    case Kind::Store:
    case Kind::Atomic:
    case Kind::Branch:
    case Kind::Jump:
    case Kind::Exit:
      return true;
    case Kind::Call:
      return !is_inline(op.accessor);
    case Kind::Nothing:
    case Kind::Move:
    case Kind::MoveSigned:
    case Kind::Binary:
    case Kind::Negate:
    case Kind::Swap:
    case Kind::Load:
      return false;
  }
  return true;
}

bool Analysis::update_live(size_t index) {
  const Operation& op = operations_[index];
  Facts& facts = facts_[index];
  if (!facts.reached) return false;
  uint32_t live = 0;
  const auto add = [&](size_t next) {
    if (next < facts_.size() && facts_[next].reached) live |= live_before(next);
  };
  const Outcome outcome = decided(op, facts.values);
  const bool goes_on = outcome == Outcome::NotTaken || op.target == index + 1;
  const bool dead_branch = op.kind == Kind::Branch && goes_on;
  facts.always_taken = outcome == Outcome::Taken;
  if (outcome != Outcome::NotTaken) add(op.target);
  if (outcome != Outcome::Taken && op.kind != Kind::Exit) add(index + 1);
  const auto written = result_register(op);
  const bool wanted = written && (live & register_bit(*written)) != 0;
  const bool needed = (has_effect(op) && !dead_branch) || wanted;
  const bool changed = live != facts.live_after || needed != facts.needed;
  facts.live_after = static_cast<uint16_t>(live);
  facts.needed = needed;
  return changed;
}

void Analysis::find_live() {
  bool changed = true;
  while (changed) {  // Sets only grow, so this ends.
    changed = false;
    for (size_t index = facts_.size(); index-- > 0;) {
      changed = update_live(index) || changed;
    }
  }
}

void Analysis::mark_targets() {
  for (uint32_t index = 0; index < facts_.size(); ++index) {
    const Operation& op = operations_[index];
    const bool jumps = op.kind == Kind::Jump || op.kind == Kind::Branch;
    if (!jumps || !facts_[index].reached) continue;
    if (decided(op, facts_[index].values) == Outcome::NotTaken) continue;
    facts_[op.target].is_target = true;
  }
}

}  // namespace

Expected<std::vector<Facts>> analyse(std::span<const Operation> operations, PointKind point,
                                     abi::RegisterSet clobbers) {
  return Analysis(operations, point, clobbers).run();
}

std::optional<ContextWord> context_word(PointKind point, uint32_t offset_bytes) {
  using Where = ContextWord::Where;
  constexpr std::array<Register, 6> kArguments = {Register::Rdi, Register::Rsi, Register::Rdx,
                                                  Register::Rcx, Register::R8,  Register::R9};
  const uint32_t word = offset_bytes / 8 * 8;
  const bool framed = point != PointKind::Offset;
  if (word < 48) {
    if (point == PointKind::Exit) return std::nullopt;
    return ContextWord{Where::Argument, kArguments[word / 8]};
  }
  if (word == offsetof(abi::Context, return_value) ||
      word == offsetof(abi::Context, return_value_high)) {
    if (point != PointKind::Exit) return std::nullopt;
    const bool low = word == offsetof(abi::Context, return_value);
    return ContextWord{Where::Argument, low ? Register::Rax : Register::Rdx};
  }
  if (word == offsetof(abi::Context, frame) && framed) return ContextWord{Where::Frame};
  if (word == offsetof(abi::Context, caller) && framed) return ContextWord{Where::Stack};
  if (word == offsetof(abi::Context, tid)) return ContextWord{Where::Tid};
  if (word == offsetof(abi::Context, process)) {
    return ContextWord{Where::SlotWord, Register::Rax, offsetof(abi::SlotControl, process)};
  }
  if (word == offsetof(abi::Context, generation)) return ContextWord{Where::Generation};
  constexpr uint32_t kVectors = offsetof(abi::Context, vectors);
  if (word >= kVectors && word < offsetof(abi::Context, base_pointer)) {
    return ContextWord{.where = Where::Vector,
                       .vector = static_cast<uint8_t>((word - kVectors) / 8)};
  }
  if (word == offsetof(abi::Context, base_pointer)) {
    return ContextWord{Where::Argument, Register::Rbp};
  }
  if (word == offsetof(abi::Context, rbx)) return ContextWord{Where::Argument, Register::Rbx};
  const bool on_stack = word >= offsetof(abi::Context, stack_arguments) && word < kVectors &&
                        point == PointKind::Entry;
  if (!on_stack) return std::nullopt;
  const auto above = word - static_cast<uint32_t>(offsetof(abi::Context, stack_arguments));
  return ContextWord{Where::Stack, Register::Rax, 8 + above};
}

std::optional<uint8_t> result_register(const Operation& op) {
  switch (op.kind) {
    case Kind::Move:
    case Kind::MoveSigned:
    case Kind::Binary:
    case Kind::Negate:
    case Kind::Swap:
    case Kind::Load:
      return op.destination;
    case Kind::Call:
      return uint8_t{0};
    case Kind::Atomic:
      if (op.atomic == isa::Atomic::CompareExchange) return uint8_t{0};
      if ((static_cast<uint8_t>(op.atomic) & 1U) != 0) return op.source;
      return std::nullopt;
    case Kind::Nothing:
    case Kind::Store:
    case Kind::Branch:
    case Kind::Jump:
    case Kind::Exit:
      return std::nullopt;
  }
  return std::nullopt;
}

uint16_t register_reads(const Operation& op, const Facts& facts) {
  uint32_t reads = 0;
  const auto read = [&](uint8_t r) {
    if (facts.values[r].is_register()) reads |= register_bit(r);
  };
  const bool known = result_register(op) && !facts.result.is_register();
  if (known) return 0;  // The result is loaded as a constant, or moved from a live register.
  switch (op.kind) {
    case Kind::Binary:
    case Kind::Branch:
    case Kind::Store:
      read(op.destination);
      if (op.has_source) read(op.source);
      break;
    case Kind::Negate:
    case Kind::Swap:
      read(op.destination);
      break;
    case Kind::Move:
      if (op.has_source) read(op.source);
      break;
    case Kind::MoveSigned:
    case Kind::Load:
      read(op.source);
      break;
    case Kind::Atomic:
      read(op.destination);
      read(op.source);
      if (op.atomic == isa::Atomic::CompareExchange) read(0);
      break;
    case Kind::Call:
      for (uint8_t r = 1; r <= 5; ++r) {
        if ((argument_registers(op.accessor) & register_bit(r)) != 0) read(r);
      }
      break;
    case Kind::Nothing:
    case Kind::Jump:
    case Kind::Exit:
      break;
  }
  return static_cast<uint16_t>(reads);
}

}  // namespace clew::native
