// SPDX-License-Identifier: Apache-2.0
#include "plan/d/firing.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "abi/context.h"
#include "abi/machine/process.h"
#include "base/assert.h"
#include "isa/builder.h"
#include "isa/opcode.h"
#include "plan/d/clause_uses.h"
#include "plan/d/one_of.h"
#include "plan/d/static_arguments.h"

namespace clew::plan::d {

using abi::MachineAccessor;
using abi::MachineProcessAccessor;
using abi::MachineWindowHeader;
using isa::Builder;
using isa::Instruction;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;

namespace {

constexpr uint32_t kRegisterArguments = 6;
constexpr auto kSiteNumbers = static_cast<uint32_t>(FiringConstant::Count);
constexpr auto kRunWhen = static_cast<int32_t>(abi::MachineActivity::Active);

constexpr int32_t argument_offset(uint32_t index) {
  return static_cast<int32_t>(offsetof(MachineWindowHeader, arguments) + 8 * size_t{index});
}

ClauseUses uses_of_all(std::span<const FiringClause> clauses,
                       std::span<const FiringClause> error_clauses) {
  ClauseUses uses;
  for (const FiringClause& one : clauses)
    uses |= uses_of(*one.program);
  for (const FiringClause& one : error_clauses)
    uses |= uses_of(*one.program);
  return uses;
}

// A pointer that another clause left in a variable may be the kernel's.
bool is_for_process(const ClauseUses& uses) {
  const bool may_read_kernel =
      uses.follows_pointers && (uses.reads_variables || uses.has_kernel_constant);
  return !uses.needs_kernel && !may_read_kernel;
}

void call(Builder& b, MachineProcessAccessor accessor) {
  b.call(static_cast<abi::Accessor>(accessor));
}

// The number of the entry that a call in a clause is for: that of the built-in variable itself
// where r2 has a constant.
int32_t entry_of(const isa::Program& program, size_t at) {
  const int32_t number = program.code[at].immediate;
  const auto accessor = static_cast<MachineAccessor>(number);
  if (!is_one_of(accessor, MachineAccessor::BuiltinInteger, MachineAccessor::BuiltinString))
    return number;
  const auto builtin = constant_before(program, at, static_cast<uint8_t>(Register::R2));
  CLEW_ASSERT(builtin.has_value());
  return static_cast<int32_t>(static_cast<uint64_t>(MachineProcessAccessor::Builtin) + *builtin);
}

bool is_call(const Instruction& i) {
  return i.opcode == isa::kCallOpcode;
}

bool is_site_constant(const Instruction& i) {
  return i.opcode == isa::kLoad64Opcode &&
         i.source() == static_cast<uint8_t>(isa::Load64::SiteConstant);
}

// As Emitter::load_header() writes it.
bool loads_argument(const isa::Program& program, size_t at) {
  if (at + 2 >= program.code.size() || program.code[at].immediate != 0) return false;
  const Instruction& load = program.code[at + 2];
  return isa::class_of(load) == isa::Class::Ldx && load.offset >= argument_offset(0) &&
         load.offset < argument_offset(kProbeArguments);
}

// Whether it calls no accessor of D, and looks at nothing of the window but arguments and private
// variables: then nobody need prepare that, nor look at what came of it.
bool is_pure(const isa::Program& program, const PrivateArea& privates) {
  for (size_t at = 0; at < program.code.size(); ++at) {
    const Instruction& i = program.code[at];
    const bool is_accessor = is_call(i) && !calls_function(i);
    if (is_accessor && i.immediate >= int32_t{abi::kMachineAccessorBase}) return false;
    if (i.opcode != isa::kLoad64Opcode) continue;
    const bool is_pointer = i.source() == static_cast<uint8_t>(isa::Load64::Window);
    const bool is_private = privates.contains(static_cast<uint32_t>(i.immediate));
    if (is_pointer && !is_private && !loads_argument(program, at)) return false;
    ++at;
  }
  return true;
}

class Composer {
 public:
  Composer(FiringPoint point, std::span<const FiringClause> error_clauses, const ClauseUses& uses,
           std::string_view static_arguments, const FiringState& state)
      : point_(point),
        error_clauses_(error_clauses),
        uses_(uses),
        static_arguments_(uses.arguments == 0 ? std::string_view() : static_arguments),
        state_(state) {
    const uint32_t on_stack = uses.arguments >> kRegisterArguments;
    has_stack_arguments_ = point == FiringPoint::Entry && on_stack != 0;
    firing_.wants_registers =
        uses.needs_registers || has_stack_arguments_ || !static_arguments_.empty();
  }

  Expected<Firing> compose(std::span<const FiringClause> clauses) {
    const bool is_simple = !firing_.wants_registers &&
                           std::all_of(clauses.begin(), clauses.end(), [this](const auto& one) {
                             return is_pure(*one.program, state_.privates);
                           });
    has_privates_ = std::any_of(clauses.begin(), clauses.end(),
                                [](const FiringClause& one) { return one.has_privates; });
    note_calls(clauses);
    note_calls(error_clauses_);
    CLEW_TRY(is_simple ? append_simple(clauses) : append_all(clauses));
    Builder end;
    end.move(Register::R0, 0).exit();
    CLEW_TRY(append(end));
    CLEW_TRY(put_functions());
    firing_.program.name = "firing";
    firing_.program.site_constant_count =
        static_cast<uint32_t>(size_t{kSiteNumbers} + firing_.updates.size());
    return std::move(firing_);
  }

 private:
  void note_calls(std::span<const FiringClause> clauses) {
    for (const FiringClause& clause : clauses) {
      for (const ExtensionCall& call : clause.calls) {
        CLEW_ASSERT(state_.extensions != nullptr);
        calls_extensions_ = true;
        has_loops_ |= state_.extensions->functions.at(call.function).has_loops;
      }
    }
  }

  // The functions' code instead of the placeholders.
  Expected<void> put_functions() {
    constexpr isa::InlineLimits kLimits = {.calls_max = 4096,
                                           .frame_bytes_max = int32_t{isa::kFrameSizeBytes}};
    if (!calls_extensions_) return {};
    isa::Body whole = isa::with_inlined_calls(
        {.code = std::move(firing_.program.code), .references = std::move(references_)},
        [this](const std::string& name) { return state_.extensions->find_body(name); },
        [](std::string_view) { return true; }, kLimits);
    if (!whole.references.empty()) {
      return fail(ErrorCode::Limit,
                  fmt::format("the clauses with the code of '{}' are too long, or need more than "
                              "{} bytes of local variables",
                              whole.references[0].symbol, isa::kFrameSizeBytes));
    }
    firing_.program.code = std::move(whole.code);
    return {};
  }

  Expected<void> append_simple(std::span<const FiringClause> clauses) {
    CLEW_TRY(append_activity_check());
    Builder b;
    own_state(b);
    put_arguments(b);
    CLEW_TRY(append(b));
    for (const FiringClause& one : clauses)
      append_program(one);
    return {};
  }

  Expected<void> append_all(std::span<const FiringClause> clauses) {
    CLEW_TRY(append_begin());
    bool is_first = true;
    for (const FiringClause& one : clauses) {
      if (!is_first) CLEW_TRY(append_activity_check());
      is_first = false;
      CLEW_TRY(append_clause(one));
      CLEW_TRY(append_aftermath(true));
    }
    return {};
  }

  Expected<void> append(const Builder& piece) {
    const isa::Program program = CLEW_TRY(piece.finish("piece"));
    auto& code = firing_.program.code;
    code.insert(code.end(), program.code.begin(), program.code.end());
    return {};
  }

  [[nodiscard]] int32_t place_bit() const {
    switch (point_) {
      case FiringPoint::Entry:
        return 0;
      case FiringPoint::Return:
        return static_cast<int32_t>(abi::kMachineAtReturn);
      case FiringPoint::Offset:
        return static_cast<int32_t>(abi::kMachineAtOffset);
    }
    return 0;
  }

  // An exit in a piece of our own ends the firing.
  Expected<void> append_begin() {
    CLEW_TRY(append_activity_check());
    Builder b;
    const Label runs = b.label();
    const auto constant = [&](Register r, FiringConstant which) {
      b.load_site_constant(r, static_cast<uint32_t>(which));
    };
    constant(Register::R2, FiringConstant::Cookie);
    if (firing_.wants_registers) {
      b.move(Register::R3, kRunWhen | place_bit());
      constant(Register::R4, FiringConstant::ProgramCounter);
      call(b, MachineProcessAccessor::BeginWithRegisters);
    } else {
      b.move(Register::R3, kRunWhen);
      call(b, MachineProcessAccessor::Begin);
    }
    b.jump_if(Jump::NotEqual, Register::R0, 0, runs).exit().bind(runs);
    own_state(b);
    if (static_arguments_.empty()) {
      put_arguments(b);
    } else if (!put_static_arguments(b, static_arguments_, uses_.arguments)) {
      return fail(ErrorCode::InvalidQuery, "the probe's arguments are not understood");
    }
    if (has_stack_arguments_) call(b, MachineProcessAccessor::StackArguments);
    return append(b);
  }

  // What another thread has left in this window is not this one's.
  void own_state(Builder& b) const {
    if (has_privates_) own_privates(b);
    if (calls_extensions_) own_extensions(b);
    if (has_loops_) leave_exhausted(b);
  }

  // Goes to `owned` when the words from `begin` (r5) on are this thread's, whose id is the first.
  // Else whoever clears them stores the id (r0) last: a signal's longjmp may be in between.
  static void check_owner(Builder& b, uint32_t begin, Label owned) {
    call(b, MachineProcessAccessor::Thread);
    b.load_window(Register::R5, begin).load(Size::Double, Register::R1, Register::R5, 0);
    b.jump_if(Jump::Equal, Register::R1, Register::R0, owned);
  }

  void own_privates(Builder& b) const {
    const PrivateArea& area = state_.privates;
    const Label owned = b.label();
    b.load_window(Register::R5, area.time_word())
        .store(Size::Double, Register::R5, 0, 0);  // Another firing's.
    check_owner(b, area.begin, owned);
    for (uint32_t at = area.word(0); at < area.end(); at += 8)
      b.store(Size::Double, Register::R5, static_cast<int32_t>(at - area.begin), 0);
    b.store(Size::Double, Register::R5, 0, Register::R0).bind(owned);
  }

  void own_extensions(Builder& b) const {
    const ExtensionState& area = *state_.extensions;
    const Label owned = b.label();
    check_owner(b, area.begin, owned);
    b.load_constant(Register::R2, area.begin + 8)
        .load_constant(Register::R3, area.end - area.begin - 8);
    call(b, MachineProcessAccessor::Clear);
    for (const extension::InitialWord& word : area.initial_words) {
      b.load_window(Register::R2, word.offset_bytes)
          .load_constant(Register::R3, word.value)
          .store(Size::Double, Register::R2, 0, Register::R3);
    }
    call(b, MachineProcessAccessor::Thread);
    b.load_window(Register::R5, area.begin)
        .store(Size::Double, Register::R5, 0, Register::R0)
        .bind(owned);
  }

  void leave_exhausted(Builder& b) const {
    const Label goes_on = b.label();
    b.load_site_constant(Register::R1, static_cast<uint32_t>(FiringConstant::Fuel))
        .load(Size::Double, Register::R0, Register::R1, 0)
        .jump_if(Jump::Less, Register::R0, kExhaustedMax, goes_on)
        .load_window(Register::R1, state_.left_alone_offset)
        .load(Size::Double, Register::R3, Register::R1, 0)
        .alu(isa::Alu::Add, Register::R3, 1)
        .store(Size::Double, Register::R1, 0, Register::R3)
        .exit()
        .bind(goes_on);
  }

  [[nodiscard]] bool reads(uint32_t index) const { return (uses_.arguments >> index & 1U) != 0; }

  // The context (r6) has registers as they were; the accessors keep them.
  void put_arguments(Builder& b) const {
    b.load_window(Register::R5, 0);
    for (uint32_t i = 0; i < kProbeArguments; ++i) {
      const bool is_on_stack = has_stack_arguments_ && i >= kRegisterArguments;
      if (!reads(i) || is_on_stack) continue;
      if (const auto field = context_field(i)) {
        b.load(Size::Double, Register::R0, Register::R6, *field)
            .store(Size::Double, Register::R5, argument_offset(i), Register::R0);
      } else if (point_ == FiringPoint::Return && i == 0) {
        b.load_site_constant(Register::R0, static_cast<uint32_t>(FiringConstant::ReturnOffset))
            .store(Size::Double, Register::R5, argument_offset(i), Register::R0);
      } else {
        b.store(Size::Double, Register::R5, argument_offset(i), 0);
      }
    }
  }

  // Where the context has argument `index`, if it does.
  [[nodiscard]] std::optional<int32_t> context_field(uint32_t index) const {
    if (point_ == FiringPoint::Return && index == 1) return offsetof(abi::Context, return_value);
    if (point_ != FiringPoint::Entry || index >= kRegisterArguments) return std::nullopt;
    return static_cast<int32_t>(offsetof(abi::Context, arguments) + 8 * size_t{index});
  }

  // exit() stops the clauses that follow, too, whoever called it.
  Expected<void> append_activity_check() {
    Builder b;
    const Label goes_on = b.label();
    if (firing_.program.code.empty()) b.move(Register::R6, Register::R1);
    b.load(Size::Double, Register::R0, Register::R6, offsetof(abi::Context, generation));
    b.jump_if(Jump::Equal, Register::R0, kRunWhen, goes_on).exit().bind(goes_on);
    return append(b);
  }

  Expected<void> append_clause(const FiringClause& one) {
    Builder b;
    const auto scratch = static_cast<int32_t>(one.scratch_begin);
    const auto header = [](size_t offset) { return static_cast<int32_t>(offset); };
    b.load_window(Register::R5, 0)
        .store(Size::Word, Register::R5, header(offsetof(MachineWindowHeader, clause)),
               static_cast<int32_t>(one.clause))
        .store(Size::Double, Register::R5, header(offsetof(MachineWindowHeader, fault)), 0)
        .store(Size::Double, Register::R5, header(offsetof(MachineWindowHeader, speculation)), 0)
        .store(Size::Double, Register::R5, header(offsetof(MachineWindowHeader, alloca_top)),
               scratch)
        .store(Size::Double, Register::R5, header(offsetof(MachineWindowHeader, scratch_begin)),
               scratch);
    CLEW_TRY(append(b));
    append_program(one);
    return {};
  }

  // The clause ends by reaching what follows it.
  void append_program(const FiringClause& clause) {
    const isa::Program& program = *clause.program;
    const auto first_update = static_cast<int32_t>(kSiteNumbers + firing_.updates.size());
    const auto constant_of = [first_update](int32_t own) {
      const bool is_tick = own == static_cast<int32_t>(kTickConstant);
      return is_tick ? static_cast<int32_t>(FiringConstant::Tick)
                     : first_update + own - static_cast<int32_t>(cells_constant(0));
    };
    firing_.updates.insert(firing_.updates.end(), clause.updates.begin(), clause.updates.end());
    auto& code = firing_.program.code;
    for (const ExtensionCall& call : clause.calls) {
      const auto at = static_cast<uint32_t>(code.size() + call.instruction);
      references_.push_back({at, true, call.function});
    }
    for (size_t at = 0; at < program.code.size(); ++at) {
      Instruction i = program.code[at];
      if (i.opcode == isa::kExitOpcode) {
        const size_t left = program.code.size() - at - 1;
        i = {isa::kJumpFarOpcode, 0, 0, static_cast<int32_t>(left)};
      } else if (is_call(i)) {
        if (!calls_function(i)) i.immediate = entry_of(program, at);
      } else if (is_site_constant(i)) {
        i.immediate = constant_of(i.immediate);
      }
      code.push_back(i);
      if (i.opcode != isa::kLoad64Opcode) continue;
      ++at;
      code.push_back(program.code[at]);
    }
  }

  // A fault or an exit; most clauses leave neither.
  Expected<void> append_aftermath(bool runs_errors) {
    Builder b;
    const bool has_errors = runs_errors && !error_clauses_.empty();
    const Label fine = b.label();
    const Label found = b.label();
    b.load_window(Register::R5, 0)
        .load(Size::Double, Register::R1, Register::R5, offsetof(MachineWindowHeader, fault))
        .jump_if(Jump::NotEqual, Register::R1, 0, found)
        .load(Size::Double, Register::R1, Register::R5, offsetof(MachineWindowHeader, exit_pending))
        .jump_if(Jump::Equal, Register::R1, 0, fine)
        .bind(found);
    call(b, MachineProcessAccessor::AfterClause);
    if (!has_errors) {
      b.bind(fine);
      return append(b);
    }
    // The ERROR clauses are pieces of their own: jumps over them are set when they are known.
    const Label runs = b.label();
    b.jump_if(Jump::NotEqual, Register::R0, 0, runs).bind(fine);
    const uint32_t skip = b.size();
    b.jump(runs).bind(runs);
    const size_t place = firing_.program.code.size() + skip;
    CLEW_TRY(append(b));
    for (const FiringClause& one : error_clauses_) {
      CLEW_TRY(append_clause(one));
      CLEW_TRY(append_aftermath(false));
    }
    Builder after;
    call(after, MachineProcessAccessor::AfterError);
    CLEW_TRY(append(after));
    auto& code = firing_.program.code;
    code[place] = {isa::kJumpFarOpcode, 0, 0, static_cast<int32_t>(code.size() - place - 1)};
    return {};
  }

  FiringPoint point_;
  std::span<const FiringClause> error_clauses_;
  ClauseUses uses_;
  std::string_view static_arguments_;
  FiringState state_;
  bool has_privates_ = false;
  bool calls_extensions_ = false;
  bool has_loops_ = false;  // In the functions that are called.
  std::vector<isa::Reference> references_;
  bool has_stack_arguments_ = false;
  Firing firing_;
};

}  // namespace

bool runs_in_process(std::span<const FiringClause> clauses,
                     std::span<const FiringClause> error_clauses) {
  return is_for_process(uses_of_all(clauses, error_clauses));
}

Expected<Firing> compose(FiringPoint point, std::span<const FiringClause> clauses,
                         std::span<const FiringClause> error_clauses,
                         std::string_view static_arguments, const FiringState& state) {
  const ClauseUses uses = uses_of_all(clauses, error_clauses);
  if (!is_for_process(uses)) {
    return fail(ErrorCode::InvalidQuery, "a clause asks for what only the kernel knows");
  }
  return Composer(point, error_clauses, uses, static_arguments, state).compose(clauses);
}

}  // namespace clew::plan::d
