// SPDX-License-Identifier: Apache-2.0
#include "plan/d/clause_coder.h"

#include <fmt/format.h>

namespace clew::plan::d {

using abi::MachineAccessor;
using isa::Jump;
using isa::Label;
using query::d::Compiled;
using query::d::CompileError;
using query::d::StatementKind;

namespace {

// The words of spilled values lie in front of the temporaries.
constexpr uint32_t kSlotBytes = 8 * kWindowSlots;

bool records_nothing(const std::vector<query::d::Statement>& body) {
  return body.empty();
}

}  // namespace

ClauseCoder::ClauseCoder(const query::d::Script& script, const StoragePlan& storage,
                         Generated& generated, uint32_t clause, ClauseForm form)
    : script_(script),
      storage_(storage),
      generated_(generated),
      clause_(clause),
      form_(form),
      emit_(script.types, storage.temporaries_begin()),
      temporaries_(storage.temporaries_begin() + kSlotBytes),
      temporaries_end_(temporaries_) {}

uint32_t ClauseCoder::temporary(uint32_t size_bytes) {
  const uint32_t begin = temporaries_;
  temporaries_ += (size_bytes + 7) & ~7U;
  temporaries_end_ = std::max(temporaries_end_, temporaries_);
  if (temporaries_end_ > abi::kMachineWindowBytes) is_too_large_ = true;
  return begin;
}

// Some accessors write a whole address before they cut it to a string's size.
uint32_t ClauseCoder::string_temporary() {
  constexpr uint32_t kAddressBytes = 64;
  return temporary(std::max(storage_.string_bytes(), kAddressBytes) + 8);
}

uint32_t ClauseCoder::copied(uint64_t size_bytes) {
  copied_max_ = std::max(copied_max_, size_bytes);
  return static_cast<uint32_t>(std::min<uint64_t>(size_bytes, abi::kMachineCopyBytesMax));
}

Compiled<isa::Program> ClauseCoder::code(const query::d::Clause& clause) {
  const Label end = code().label();
  line_ = clause.line;
  layout() = {};
  lay_out(clause.body);
  const bool has_record = records_nothing(clause.body) || !layout().actions.empty();
  if (has_record) place_fields();
  if (clause.predicate) {
    truth(*clause.predicate);
    code().jump_if(Jump::Equal, Register::R0, 0, end);
  }
  if (has_record) clear_flags();
  code_body(clause.body);
  if (has_record) {
    emit_.argument(Register::R2, layout().size_bytes);
    emit_.call(MachineAccessor::Commit);
  }
  emit_.bind_fault();
  code().bind(end).move(Register::R0, 0).exit();
  generated_.scratch_begin[clause_] = std::min(temporaries_end_, abi::kMachineWindowBytes);
  auto program = code().finish(fmt::format("dt_clause_{}", clause_));
  if (copied_max_ > abi::kMachineCopyBytesMax) {
    return tl::unexpected(CompileError{"D_NOMEM",
                                       fmt::format("the clause copies {} bytes at once; {} is the "
                                                   "most",
                                                   copied_max_, abi::kMachineCopyBytesMax),
                                       clause.line,
                                       clause.span,
                                       {}});
  }
  if (!program || is_too_large_ || emit_.is_too_deep()) {
    return tl::unexpected(
        CompileError{"D_NOMEM",
                     fmt::format("the clause needs more {} than a firing has",
                                 !program ? "instructions" : "room for strings and records"),
                     clause.line,
                     clause.span,
                     {}});
  }
  return std::move(*program);
}

// No flag is left of an earlier firing.
void ClauseCoder::clear_flags() {
  const auto count = static_cast<uint32_t>(layout().actions.size());
  for (uint32_t done = 0; done < count; done += 8) {
    code().load_window(
        Register::R1,
        abi::kMachineRecordOffset + static_cast<uint32_t>(sizeof(abi::MachineRecordHeader)) + done);
    code().store(isa::Size::Double, Register::R1, 0, 0);
  }
}

void ClauseCoder::code_body(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    const uint32_t begin = temporaries_;
    switch (statement.kind) {
      case StatementKind::Expression:
        value(statement.expression);
        break;
      case StatementKind::Action:
        code_action(statement);
        break;
      case StatementKind::Aggregate:
        code_aggregate(statement);
        break;
      case StatementKind::If:
        code_if(statement);
        break;
    }
    temporaries_ = begin;
  }
}

void ClauseCoder::code_if(const Statement& statement) {
  const Label otherwise = code().label();
  const Label end = code().label();
  truth(statement.expression);
  code().jump_if(Jump::Equal, Register::R0, 0, otherwise);
  code_body(statement.then_part);
  code().jump(end).bind(otherwise);
  code_body(statement.else_part);
  code().bind(end);
}

}  // namespace clew::plan::d
