// SPDX-License-Identifier: Apache-2.0
// One abstract run, to a fixed point: which registers have the context, an address above the frame,
// or a constant.
#include "isa/context_reads.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <vector>

#include "abi/context.h"
#include "abi/machine/process.h"
#include "isa/opcode.h"

namespace clew::isa {
namespace {

constexpr uint32_t kFrameWord = offsetof(abi::Context, frame) / 8;
constexpr int64_t kArgumentsEnd = 8 + 8 * int64_t{abi::kStackArgumentsMax};

struct Value {
  enum class Kind : uint8_t { Other, Context, AboveFrame, Constant };
  Kind kind = Kind::Other;
  int64_t number = 0;  // From the frame, or the constant.

  bool operator==(const Value&) const = default;
};
using ValueKind = Value::Kind;
using Values = std::array<Value, kRegisterCount>;

// Those that work on the window, on variables and on records leave the program alone.
constexpr abi::MachineAccessor kOfTheSession[] = {abi::MachineAccessor::VariableLoad,
                                                  abi::MachineAccessor::VariableStore,
                                                  abi::MachineAccessor::VariableLoadBytes,
                                                  abi::MachineAccessor::VariableStoreBytes,
                                                  abi::MachineAccessor::VariableDelete,
                                                  abi::MachineAccessor::GlobalLoadBytes,
                                                  abi::MachineAccessor::GlobalStoreBytes,
                                                  abi::MachineAccessor::MoveString,
                                                  abi::MachineAccessor::PadString,
                                                  abi::MachineAccessor::StringLength,
                                                  abi::MachineAccessor::StringCompare,
                                                  abi::MachineAccessor::StringJoin,
                                                  abi::MachineAccessor::NumberToString,
                                                  abi::MachineAccessor::StringToNumber,
                                                  abi::MachineAccessor::Random,
                                                  abi::MachineAccessor::Aggregate,
                                                  abi::MachineAccessor::Commit,
                                                  abi::MachineAccessor::Speculation,
                                                  abi::MachineAccessor::Speculate,
                                                  abi::MachineAccessor::SpeculateCommit,
                                                  abi::MachineAccessor::SpeculateDiscard,
                                                  abi::MachineAccessor::Exit,
                                                  abi::MachineAccessor::ProbeName};

// The thread's, the machine's or the session's.
constexpr abi::MachineBuiltin kNotOfTheStack[] = {
    abi::MachineBuiltin::Cpu,        abi::MachineBuiltin::Epid,
    abi::MachineBuiltin::Execname,   abi::MachineBuiltin::Gid,
    abi::MachineBuiltin::Id,         abi::MachineBuiltin::Pid,
    abi::MachineBuiltin::Ppid,       abi::MachineBuiltin::Probefunc,
    abi::MachineBuiltin::Probemod,   abi::MachineBuiltin::Probename,
    abi::MachineBuiltin::Probeprov,  abi::MachineBuiltin::Tid,
    abi::MachineBuiltin::Timestamp,  abi::MachineBuiltin::Uid,
    abi::MachineBuiltin::Vtimestamp, abi::MachineBuiltin::Walltimestamp};

template <typename Enum, size_t kCount>
bool is_one_of(Enum value, const Enum (&all)[kCount]) {
  return std::find(std::begin(all), std::end(all), value) != std::end(all);
}

class Reads {
 public:
  explicit Reads(const Program& program)
      : code_(program.code), before_(code_.size()), reached_(code_.size()) {}

  ContextReads find() {
    Values entry{};
    entry[1].kind = ValueKind::Context;
    reach(0, entry);
    while (!open_.empty()) {
      const size_t at = open_.back();
      open_.pop_back();
      visit(at);
    }
    return reads_;
  }

 private:
  // Each value falls to Other once at most, so this ends.
  void reach(size_t at, const Values& values) {
    if (at >= code_.size()) return;
    Values joined = values;
    if (reached_[at]) {
      for (size_t k = 0; k < joined.size(); ++k) {
        if (joined[k] != before_[at][k]) joined[k] = {};
      }
      if (joined == before_[at]) return;
    }
    reached_[at] = true;
    before_[at] = joined;
    open_.push_back(at);
  }

  void visit(size_t at) {
    const Instruction& i = code_[at];
    const OpcodeRow* const row = find_row(i);
    if (row == nullptr) return give_up();
    const Values after = apply(*row, i, before_[at]);
    const auto target = branch_target(code_, at);
    if (target) reach(static_cast<size_t>(*target), after);
    const bool goes_on =
        row->form != Form::Exit && row->form != Form::Jump && row->form != Form::JumpFar;
    if (goes_on) reach(at + (i.opcode == kLoad64Opcode ? 2 : 1), after);
  }

  void give_up() {
    reads_ = {
        .words = UINT64_MAX, .arguments = true, .memory = true, .unwinds = true, .registers = true};
  }

  // What is not understood stays as it was only where no register is written.
  Values apply(const OpcodeRow& row, const Instruction& i, Values values) {
    switch (row.form) {
      case Form::Binary:
        values[i.destination()] = result_of(i, values);
        break;
      case Form::Load:
        values[i.destination()] = load(i, values);
        break;
      case Form::MoveSigned:
      case Form::Unary:
      case Form::Swap:
        values[i.destination()] = {};
        break;
      case Form::Load64: {
        const bool is_context = i.source() == static_cast<uint8_t>(Load64::Context);
        values[i.destination()] = {.kind = is_context ? ValueKind::Context : ValueKind::Other};
        break;
      }
      case Form::Atomic:
        values[0] = values[i.source()] = {};
        break;
      case Form::CallAccessor:
        note_call(i.immediate, values);
        std::fill(values.begin(), values.begin() + 6, Value{});
        break;
      case Form::CallLocal:  // Engines of processes run none.
        give_up();
        std::fill(values.begin(), values.end(), Value{});
        break;
      case Form::Jump:
      case Form::JumpFar:
      case Form::JumpIf:
      case Form::Exit:
      case Form::StoreImmediate:
      case Form::StoreRegister:
        break;
    }
    return values;
  }

  static Value result_of(const Instruction& i, const Values& values) {
    if (class_of(i) != Class::Alu64 || i.offset != 0) return {};
    const Value operand = has_register_source(i)
                              ? values[i.source()]
                              : Value{.kind = ValueKind::Constant, .number = i.immediate};
    if (alu_of(i) == Alu::Move) return operand;
    const Value& base = values[i.destination()];
    const bool is_step = base.kind == ValueKind::AboveFrame && operand.kind == ValueKind::Constant;
    if (alu_of(i) != Alu::Add || !is_step) return {};
    // A constant is of 32 bits, and what is beyond the arguments is no matter.
    const int64_t sum = base.number + operand.number;
    return sum >= 0 && sum < kArgumentsEnd ? Value{ValueKind::AboveFrame, sum} : Value{};
  }

  Value load(const Instruction& i, const Values& values) {
    const Value& base = values[i.source()];
    if (base.kind != ValueKind::Context) return {};
    const auto word = static_cast<uint32_t>(i.offset) / 8;
    reads_.words |= uint64_t{1} << word;
    return {.kind = word == kFrameWord ? ValueKind::AboveFrame : ValueKind::Other};
  }

  void note_call(int32_t number, const Values& values) {
    if (number < static_cast<int32_t>(abi::kMachineAccessorBase)) {
      return note_read(static_cast<abi::Accessor>(number), values);
    }
    if (number < static_cast<int32_t>(abi::MachineAccessor::End)) {
      return note_d_call(static_cast<abi::MachineAccessor>(number));
    }
    note_process_call(static_cast<abi::MachineProcessAccessor>(number));
  }

  void note_read(abi::Accessor accessor, const Values& values) {
    if (accessor == abi::Accessor::WalkWithin) return give_up();
    const bool unwinds =
        accessor == abi::Accessor::WalkStack || accessor == abi::Accessor::WalkLeft;
    if (unwinds) reads_.unwinds = true;
    const bool reads =
        accessor == abi::Accessor::TryRead || accessor == abi::Accessor::TryReadString;
    if (!reads) return;
    const Value& from = values[3];
    const Value& size = values[2];
    const bool is_argument =
        accessor == abi::Accessor::TryRead && from.kind == ValueKind::AboveFrame &&
        size.kind == ValueKind::Constant && from.number + size.number <= kArgumentsEnd;
    (is_argument ? reads_.arguments : reads_.memory) = true;
  }

  void note_d_call(abi::MachineAccessor accessor) {
    const bool is_register = accessor == abi::MachineAccessor::UserRegister ||
                             accessor == abi::MachineAccessor::UserArgument;
    if (is_register) return give_up();
    if (accessor == abi::MachineAccessor::Stack || accessor == abi::MachineAccessor::StackDepth) {
      reads_.unwinds = true;
    } else if (!is_one_of(accessor, kOfTheSession)) {
      reads_.memory = true;  // Anything with an address.
    }
  }

  void note_process_call(abi::MachineProcessAccessor accessor) {
    switch (accessor) {
      case abi::MachineProcessAccessor::BeginWithRegisters:  // For what is called later.
      case abi::MachineProcessAccessor::Begin:
      case abi::MachineProcessAccessor::AfterClause:
      case abi::MachineProcessAccessor::AfterError:
      case abi::MachineProcessAccessor::Thread:
      case abi::MachineProcessAccessor::Clear:
        return;
      case abi::MachineProcessAccessor::StackArguments:
        reads_.arguments = true;
        return;
      case abi::MachineProcessAccessor::Builtin:
      case abi::MachineProcessAccessor::End:
        break;
    }
    const int32_t first = static_cast<int32_t>(abi::MachineProcessAccessor::Builtin);
    note_builtin(static_cast<abi::MachineBuiltin>(static_cast<int32_t>(accessor) - first));
  }

  void note_builtin(abi::MachineBuiltin builtin) {
    if (!is_one_of(builtin, kNotOfTheStack)) reads_.unwinds = reads_.memory = true;
  }

  const std::vector<Instruction>& code_;
  std::vector<Values> before_;
  std::vector<bool> reached_;
  std::vector<size_t> open_;
  ContextReads reads_;
};

}  // namespace

ContextReads context_reads(const Program& program) {
  return Reads(program).find();
}

}  // namespace clew::isa
