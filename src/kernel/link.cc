// SPDX-License-Identifier: Apache-2.0
#include "kernel/link.h"

#include <deque>

#include <fmt/format.h>
#include <linux/bpf.h>

#include "abi/machine/window.h"
#include "base/assert.h"
#include "isa/builder.h"
#include "isa/inline_calls.h"
#include "isa/opcode.h"
#include "kernel/link_types.h"
#include "kernel/older.h"
#include "kernel/opcodes.h"
#include "kernel/short_accessors.h"
#include "kernel/to_bpf.h"

namespace clew::kernel {
namespace {

using isa::Builder;
using isa::Instruction;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;

constexpr uint32_t kFunctionsMax = 256;  // BPF_MAX_SUBPROGS

// Builds a function with calls of others; the linker fills them in.
class FunctionBuilder {
 public:
  Builder& code() { return builder_; }

  void call(std::string name) {
    references_.push_back({builder_.size(), true, std::move(name)});
    builder_.call_local(here_);
  }
  void load_symbol(Register dst, std::string name) {
    references_.push_back({builder_.size(), false, std::move(name)});
    builder_.load_global(dst, 0);
  }

  // Fails where there are more clauses than a jump reaches over.
  Expected<Function> finish(std::string name) {
    builder_.bind(here_);
    isa::Program program = CLEW_TRY(builder_.finish(name));
    return Function{{std::move(program.code), std::move(references_)}, std::move(name)};
  }

 private:
  Builder builder_;
  Label here_ = builder_.label();
  std::vector<Reference> references_;
};

constexpr int32_t header(size_t offset) {
  return static_cast<int32_t>(offset);
}

// Makes the window ready for the clause of `step`. It is in r6, and then in r1.
void put_preparation(FunctionBuilder& b, const ClauseStep& step) {
  using abi::MachineWindowHeader;
  const auto scratch = static_cast<int32_t>(step.scratch_begin);
  b.code()
      .store(Size::Word, Register::R6, header(offsetof(MachineWindowHeader, clause)),
             static_cast<int32_t>(step.clause))
      .store(Size::Double, Register::R6, header(offsetof(MachineWindowHeader, fault)), 0)
      .store(Size::Double, Register::R6, header(offsetof(MachineWindowHeader, speculation)), 0)
      .store(Size::Double, Register::R6, header(offsetof(MachineWindowHeader, alloca_top)), scratch)
      .store(Size::Double, Register::R6, header(offsetof(MachineWindowHeader, scratch_begin)),
             scratch)
      .move(Register::R1, Register::R6);
}

void put_clause(FunctionBuilder& b, const ClauseStep& step) {
  put_preparation(b, step);
  b.call(clause_name(step.clause));
}

// Leaves a fault or an exit to d_after_clause; most clauses have neither.
void put_aftermath(FunctionBuilder& b, bool runs_errors) {
  using abi::MachineWindowHeader;
  const Label fine = b.code().label();
  b.code()
      .load(Size::Double, Register::R1, Register::R6, header(offsetof(MachineWindowHeader, fault)))
      .load(Size::Double, Register::R2, Register::R6,
            header(offsetof(MachineWindowHeader, exit_pending)))
      .alu(isa::Alu::Or, Register::R1, Register::R2)
      .jump_if(Jump::Equal, Register::R1, 0, fine)
      .move(Register::R1, Register::R6);
  b.call("d_after_clause");
  if (runs_errors) {
    b.code().jump_if(Jump::Equal, Register::R0, 0, fine).move(Register::R1, Register::R6);
    b.call("d_run_errors");
    b.code().move(Register::R1, Register::R6);
    b.call("d_after_error");
  }
  b.code().bind(fine);
}

Expected<Function> make_run(std::span<const ClauseStep> clauses, bool has_errors) {
  FunctionBuilder b;
  const Label end = b.code().label();
  b.code().move(Register::R6, Register::R1);
  bool is_first = true;
  for (const ClauseStep& step : clauses) {
    if (!is_first) {
      // exit() stops the clauses that follow, too.
      b.load_symbol(Register::R1, "d_shared");
      b.code()
          .load(Size::Double, Register::R1, Register::R1,
                header(offsetof(abi::MachineShared, activity)))
          .load(Size::Double, Register::R2, Register::R6,
                header(offsetof(abi::MachineWindowHeader, run_when)))
          .jump_if(Jump::NotEqual, Register::R1, Register::R2, end);
    }
    is_first = false;
    put_clause(b, step);
    put_aftermath(b, has_errors);
  }
  b.code().bind(end).move(Register::R0, 0).exit();
  return b.finish("d_run");
}

Expected<Function> make_run_errors(std::span<const ClauseStep> clauses) {
  FunctionBuilder b;
  b.code().move(Register::R6, Register::R1);
  for (const ClauseStep& step : clauses) {
    put_clause(b, step);
    put_aftermath(b, false);
  }
  b.code().move(Register::R0, 0).exit();
  return b.finish("d_run_errors");
}

class Linker {
 public:
  Linker(const LinkInput& input, const std::vector<Function>& clauses, const Symbols& symbols)
      : input_(input), clauses_(clauses), symbols_(symbols) {}

  Expected<Image> link() {
    const bool has_errors = !input_.error_clauses.empty();
    made_.push_back(CLEW_TRY(make_run(input_.clauses, has_errors)));
    made_.push_back(CLEW_TRY(make_run_errors(input_.error_clauses)));
    CLEW_TRY(place(input_.main));
    // Grows while functions that are called are added.
    for (size_t i = 0; i < functions_.size(); ++i) {
      for (const Reference& one : functions_[i]->references) {
        if (one.is_call || is_callback(one.symbol)) CLEW_TRY(place(one.symbol));
      }
    }
    if (functions_.size() > kFunctionsMax) {
      return fail(ErrorCode::Limit, fmt::format("{} functions in one program, the kernel takes {}",
                                                functions_.size(), kFunctionsMax));
    }
    for (size_t i = 0; i < functions_.size(); ++i)
      CLEW_TRY(resolve(*functions_[i], begins_.at(functions_[i]->name)));
    return finish();
  }

 private:
  [[nodiscard]] const Function* find(const std::string& name) const {
    for (const Function& one : made_) {
      if (one.name == name) return &one;
    }
    const Function* more = input_.static_arguments;
    if (more != nullptr && more->name == name) return more;
    const Functions& accessors = accessor_functions(input_.loops);
    const auto accessor = accessors.find(name);
    if (accessor != accessors.end()) return &accessor->second;
    for (const Function& one : clauses_) {
      if (one.name == name) return &one;
    }
    return nullptr;
  }

  // What runs at each firing, of which there is one copy anyway, and what is short, unless there
  // are many clauses for the verifier to look at.
  [[nodiscard]] bool is_inlined(std::string_view name) const {
    constexpr size_t kFewClauses = 16;
    if (name != "d_run" && input_.clauses.size() > kFewClauses) return false;
    const bool is_only_clause =
        input_.clauses.size() == 1 && name == clause_name(input_.clauses[0].clause);
    return name == "d_run" || is_only_clause || is_short_accessor(name);
  }

  Expected<void> place(const std::string& name) {
    if (begins_.find(name) != begins_.end()) return {};
    const Function* function = find(name);
    if (function == nullptr) {
      return fail(ErrorCode::Refused, fmt::format("the kernel has no '{}' yet", name));
    }
    if (input_.inlines) {
      inlined_.push_back(*function);
      static_cast<isa::Body&>(inlined_.back()) = isa::with_inlined_calls(
          *function, [this](const std::string& callee) { return find(callee); },
          [this](std::string_view callee) { return is_inlined(callee); });
      function = &inlined_.back();
    }
    if (input_.loops == LoopKind::Counted) {
      older_.push_back(CLEW_TRY(for_older_kernel(*function)));
      function = &older_.back();
    }
    begins_[name] = static_cast<uint32_t>(image_.code.size());
    image_.code.insert(image_.code.end(), function->code.begin(), function->code.end());
    functions_.push_back(function);
    return {};
  }

  Expected<void> resolve(const Function& function, uint32_t begin) {
    for (const Reference& one : function.references) {
      Instruction& i = image_.code[begin + one.instruction];
      if (one.is_call) {
        i.opcode = isa::kCallOpcode;
        i.registers = BPF_PSEUDO_CALL << 4;
        i.immediate = distance(begin + one.instruction, one.symbol);
      } else if (is_callback(one.symbol)) {
        i.registers = static_cast<uint8_t>(i.destination() | BPF_PSEUDO_FUNC << 4);
        i.immediate = distance(begin + one.instruction, one.symbol);
      } else {
        CLEW_TRY(resolve_address(begin + one.instruction, one.symbol));
      }
    }
    return {};
  }

  [[nodiscard]] bool is_callback(const std::string& name) const {
    const Function* const function = find(name);
    return function != nullptr && function->is_callback;
  }

  // From behind an instruction to a function, in instructions.
  [[nodiscard]] int32_t distance(uint32_t instruction, const std::string& name) const {
    return static_cast<int32_t>(begins_.at(name)) - static_cast<int32_t>(instruction + 1);
  }

  static Instruction call_of_kernel(uint64_t function) {
    if (function == 0) return {kMove, 0 | kWindowRegister << 4, 0, 0};
    return {isa::kCallOpcode, BPF_PSEUDO_KFUNC_CALL << 4, 0, static_cast<int32_t>(function)};
  }

  // The compiler leaves what is to be added to the symbol in the first immediate.
  Expected<void> resolve_address(uint32_t at, const std::string& name) {
    const auto found = symbols_.find(name);
    if (found == symbols_.end()) {
      return fail(ErrorCode::Refused, fmt::format("the kernel has no '{}' yet", name));
    }
    Instruction& low = image_.code[at];
    if (found->second.kind == Symbol::Kind::Function) {
      low = call_of_kernel(found->second.value);
      return {};
    }
    Instruction& high = image_.code[at + 1];
    const Symbol& symbol = found->second;
    const int32_t addend = low.immediate;
    switch (symbol.kind) {
      case Symbol::Kind::Number:
        low.registers = low.destination();
        low.immediate = static_cast<int32_t>(symbol.value);
        high.immediate = static_cast<int32_t>(symbol.value >> 32);
        return {};
      case Symbol::Kind::MapAddress:
        low.registers = static_cast<uint8_t>(low.destination() | BPF_PSEUDO_MAP_VALUE << 4);
        low.immediate = static_cast<int32_t>(symbol.value);
        high.immediate = addend;
        return {};
      case Symbol::Kind::Map:
        low.registers = static_cast<uint8_t>(low.destination() | BPF_PSEUDO_MAP_FD << 4);
        low.immediate = static_cast<int32_t>(symbol.value);
        return {};
      case Symbol::Kind::Function:
        break;
    }
    return {};
  }

  Expected<Image> finish() {
    image_.name = input_.name;
    image_.type = input_.type;
    image_.attach_type = input_.attach_type;
    FunctionTypes types;
    for (const Function* function : functions_) {
      image_.function_info.push_back(begins_.at(function->name));
      image_.function_info.push_back(types.add(*function));
    }
    image_.types = types.finish();
    return std::move(image_);
  }

  const LinkInput& input_;
  const std::vector<Function>& clauses_;
  const Symbols& symbols_;
  std::vector<Function> made_;
  std::deque<Function> inlined_;
  std::deque<Function> older_;
  std::vector<const Function*> functions_;  // In the order of their code.
  std::map<std::string, uint32_t> begins_;
  Image image_;
};

}  // namespace

Expected<Image> link(const LinkInput& input, const std::vector<Function>& clause_functions,
                     const Symbols& symbols) {
  return Linker(input, clause_functions, symbols).link();
}

}  // namespace clew::kernel
