// SPDX-License-Identifier: Apache-2.0
// The rules for programs that engines run: the shape of the control flow, then one abstract run
// that knows of each register whether it is unwritten, a number, or the context.
#include <algorithm>
#include <array>
#include <vector>

#include "abi/context.h"
#include "base/assert.h"
#include "isa/opcode.h"
#include "isa/validator.h"
#include "isa/violation.h"

namespace clew::isa {
namespace {

// Of a register, at one instruction, over all paths that lead there.
enum class Kind : uint8_t {
  Number,     // Also window pointers.
  Context,    // The pointer that r1 is at entry.
  Mixed,      // A number on one path, the context on another.
  Unwritten,  // On at least one path.
};

Kind join(Kind a, Kind b) {
  if (a == b) return a;
  if (a == Kind::Unwritten || b == Kind::Unwritten) return Kind::Unwritten;
  return Kind::Mixed;
}

using Registers = std::array<Kind, kRegisterCount>;

Registers unwritten() {
  Registers registers{};
  registers.fill(Kind::Unwritten);
  registers[10] = Kind::Number;
  return registers;
}

class ProbeValidator {
 public:
  ProbeValidator(const Program& program, const ProbeRules& rules)
      : program_(program),
        code_(program.code),
        rules_(rules),
        before_(code_.size()),
        reached_(code_.size()),
        height_(code_.size()) {}

  Expected<void> validate() {
    for (size_t at = 0; at < code_.size(); at += length(at))
      CLEW_TRY(check_control(at));
    CLEW_TRY(check_calls(0, 1));
    CLEW_TRY(run());
    return check_reached();
  }

 private:
  [[nodiscard]] const OpcodeRow& row(size_t at) const { return *find_row(code_[at]); }

  [[nodiscard]] size_t length(size_t at) const { return code_[at].opcode == kLoad64Opcode ? 2 : 1; }

  [[nodiscard]] size_t target(size_t at) const {
    const std::optional<int64_t> target = branch_target(code_, at);
    CLEW_ASSERT(target.has_value());
    return static_cast<size_t>(*target);
  }

  Expected<void> check_control(size_t at) {
    if (row(at).form == Form::CallLocal) {
      has_local_calls_ = true;
      if (rules_.local_calls_allowed) return {};
      return broken(at, Rule::LocalCall, "this engine runs no local calls");
    }
    if (rules_.loops_allowed || !branch_target(code_, at) || target(at) > at) return {};
    return broken(at, Rule::Loop, fmt::format("a branch back to {}", target(at)));
  }

  // Depth-first over the functions; `depth` counts those that are open. Bounded by kCallDepthMax,
  // and each function is looked at once per depth at most.
  Expected<void> check_calls(size_t function, uint32_t depth) {
    if (depth <= height_[function]) return {};
    height_[function] = depth;
    for (const size_t call : calls_of(function)) {
      if (depth == kCallDepthMax) {
        return broken(
            call, Rule::Recursion,
            fmt::format("recursion, or calls more than {} functions deep", kCallDepthMax));
      }
      CLEW_TRY(check_calls(target(call), depth + 1));
    }
    return {};
  }

  // The local calls that a function reaches without leaving it.
  [[nodiscard]] std::vector<size_t> calls_of(size_t function) const {
    std::vector<size_t> calls;
    std::vector<bool> seen(code_.size());
    std::vector<size_t> open{function};
    while (!open.empty()) {
      const size_t at = open.back();
      open.pop_back();
      if (at >= code_.size() || seen[at]) continue;
      seen[at] = true;
      const Form form = row(at).form;
      if (form == Form::CallLocal) calls.push_back(at);
      if (form != Form::CallLocal && branch_target(code_, at)) open.push_back(target(at));
      if (continues(form)) open.push_back(at + length(at));
    }
    return calls;
  }

  static bool continues(Form form) {
    return form != Form::Exit && form != Form::Jump && form != Form::JumpFar;
  }

  // To a fixed point: a register's kind only rises, at most 3 times per instruction.
  Expected<void> run() {
    Registers entry = unwritten();
    entry[1] = Kind::Context;
    reach(0, entry);
    while (!open_.empty()) {
      const size_t at = open_.back();
      open_.pop_back();
      CLEW_TRY(visit(at));
    }
    return {};
  }

  void reach(size_t at, const Registers& registers) {
    Registers joined = registers;
    if (reached_[at]) {
      for (size_t k = 0; k < joined.size(); ++k)
        joined[k] = join(joined[k], before_[at][k]);
      if (joined == before_[at]) return;
    }
    reached_[at] = true;
    before_[at] = joined;
    open_.push_back(at);
  }

  Expected<void> visit(size_t at) {
    const Form form = row(at).form;
    CLEW_TRY(check_reads(at));
    CLEW_TRY(check_frame(at));
    const Registers after = apply(at);
    if (form == Form::CallLocal) {
      reach(target(at), at_callee(before_[at]));
    } else if (branch_target(code_, at)) {
      reach(target(at), after);
    }
    if (continues(form)) reach(at + length(at), after);
    return {};
  }

  static Registers at_callee(const Registers& caller) {
    Registers registers = unwritten();
    for (size_t k = 1; k <= 5; ++k)
      registers[k] = caller[k];
    return registers;
  }

  [[nodiscard]] Expected<void> check_reads(size_t at) const {
    const Instruction& i = code_[at];
    const Form form = row(at).form;
    switch (form) {
      case Form::Binary:
        if (alu_of(i) != Alu::Move) CLEW_TRY(read_number(at, i.destination()));
        if (is_whole_copy(i)) return read_written(at, i.source());
        return has_register_source(i) ? read_number(at, i.source()) : Expected<void>();
      case Form::MoveSigned:
        return read_number(at, i.source());
      case Form::Unary:
      case Form::Swap:
      case Form::StoreImmediate:
        return read_number(at, i.destination());
      case Form::JumpIf:
        CLEW_TRY(read_number(at, i.destination()));
        return has_register_source(i) ? read_number(at, i.source()) : Expected<void>();
      case Form::CallAccessor:
        return check_arguments(at);
      case Form::Exit:
        return read_number(at, 0);
      case Form::Load:
        return check_load(at);
      case Form::StoreRegister:
        CLEW_TRY(read_number(at, i.destination()));
        return read_number(at, i.source());
      case Form::Atomic:
        CLEW_TRY(read_number(at, i.destination()));
        CLEW_TRY(read_number(at, i.source()));
        return is_compare_exchange(i) ? read_number(at, 0) : Expected<void>();
      case Form::Jump:
      case Form::JumpFar:
      case Form::CallLocal:
      case Form::Load64:
        return {};
    }
    return {};
  }

  static bool is_whole_copy(const Instruction& i) {
    return class_of(i) == Class::Alu64 && alu_of(i) == Alu::Move && has_register_source(i);
  }

  static bool is_compare_exchange(const Instruction& i) {
    return static_cast<Atomic>(i.immediate) == Atomic::CompareExchange;
  }

  [[nodiscard]] Expected<void> read_written(size_t at, size_t number) const {
    switch (before_[at][number]) {
      case Kind::Number:
      case Kind::Context:
        return {};
      case Kind::Mixed:
        return broken(at, Rule::Context,
                      fmt::format("r{} is the context on some paths only", number));
      case Kind::Unwritten:
        break;
    }
    return broken(at, Rule::Uninitialised,
                  fmt::format("r{} is not written on every path to here", number));
  }

  [[nodiscard]] Expected<void> read_number(size_t at, size_t number) const {
    CLEW_TRY(read_written(at, number));
    if (before_[at][number] == Kind::Number) return {};
    return broken(at, Rule::Context,
                  fmt::format("r{} is the context, which can only be loaded from", number));
  }

  [[nodiscard]] Expected<void> check_arguments(size_t at) const {
    const auto accessor = static_cast<abi::Accessor>(code_[at].immediate);
    const uint32_t count = accessor_argument_count(accessor);
    for (size_t k = 1; k <= count; ++k)
      CLEW_TRY(read_number(at, k));
    return {};
  }

  [[nodiscard]] Expected<void> check_load(size_t at) const {
    const Instruction& i = code_[at];
    CLEW_TRY(read_written(at, i.source()));
    if (before_[at][i.source()] == Kind::Number) return {};
    const auto size = static_cast<int32_t>(size_bytes(size_of(i)));
    const int32_t end = i.offset + size;
    const bool inside = i.offset >= 0 && end <= static_cast<int32_t>(sizeof(abi::Context));
    if (inside && i.offset % size == 0) return {};
    return broken(
        at, Rule::Context,
        fmt::format("{} bytes at offset {} are not a field of the context", size, i.offset));
  }

  [[nodiscard]] Expected<void> check_frame(size_t at) const {
    const Instruction& i = code_[at];
    const Form form = row(at).form;
    const bool stores =
        form == Form::StoreImmediate || form == Form::StoreRegister || form == Form::Atomic;
    const bool by_frame =
        (stores && i.destination() == 10) || (form == Form::Load && i.source() == 10);
    if (!by_frame) return {};
    const auto size = static_cast<int32_t>(size_bytes(size_of(i)));
    const uint32_t frame = has_local_calls_ ? kCalledFrameSizeBytes : kFrameSizeBytes;
    if (i.offset >= -static_cast<int32_t>(frame) && i.offset + size <= 0) return {};
    return broken(at, Rule::Frame,
                  fmt::format("{} bytes at r10{:+}, the frame is the {} bytes below r10", size,
                              i.offset, frame));
  }

  [[nodiscard]] Registers apply(size_t at) const {
    const Instruction& i = code_[at];
    Registers after = before_[at];
    switch (row(at).form) {
      case Form::Binary:
        after[i.destination()] = is_whole_copy(i) ? after[i.source()] : Kind::Number;
        break;
      case Form::MoveSigned:
      case Form::Unary:
      case Form::Swap:
      case Form::Load:
        after[i.destination()] = Kind::Number;
        break;
      case Form::Load64: {
        const bool is_context = i.source() == static_cast<uint8_t>(Load64::Context);
        after[i.destination()] = is_context ? Kind::Context : Kind::Number;
        break;
      }
      case Form::Atomic:
        if (is_compare_exchange(i)) {
          after[0] = Kind::Number;
        } else if (is_fetch(i)) {
          after[i.source()] = Kind::Number;
        }
        break;
      case Form::CallAccessor:
      case Form::CallLocal:
        std::fill(after.begin() + 1, after.begin() + 6, Kind::Unwritten);
        after[0] = Kind::Number;
        break;
      case Form::Jump:
      case Form::JumpFar:
      case Form::JumpIf:
      case Form::Exit:
      case Form::StoreImmediate:
      case Form::StoreRegister:
        break;
    }
    return after;
  }

  [[nodiscard]] Expected<void> check_reached() const {
    for (size_t at = 0; at < code_.size(); at += length(at)) {
      if (!reached_[at]) return broken(at, Rule::Unreachable, "no path leads here");
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> broken(size_t at, Rule rule, std::string_view what) const {
    return violation(program_, at, rule, what);
  }

  const Program& program_;
  const std::vector<Instruction>& code_;
  const ProbeRules rules_;
  bool has_local_calls_ = false;
  std::vector<Registers> before_;
  std::vector<bool> reached_;
  std::vector<uint32_t> height_;  // The greatest depth at which check_calls() saw a function.
  std::vector<size_t> open_;
};

}  // namespace

Expected<void> validate_probe(const Program& program, const ProbeRules& rules) {
  CLEW_TRY(validate(program));
  return ProbeValidator(program, rules).validate();
}

}  // namespace clew::isa
