// SPDX-License-Identifier: Apache-2.0
// The structural rules: each instruction alone, then where branches lead.
#include "isa/validator.h"

#include <vector>

#include "isa/opcode.h"
#include "isa/violation.h"

namespace clew::isa {
namespace {

constexpr uint8_t kFrameEndRegister = static_cast<uint8_t>(Register::R10);

bool writes_frame_register(Form form, const Instruction& i) {
  switch (form) {
    case Form::Binary:
    case Form::MoveSigned:
    case Form::Unary:
    case Form::Swap:
    case Form::Load:
    case Form::Load64:
      return i.destination() == kFrameEndRegister;
    case Form::Atomic:
      return is_fetch(i) && i.source() == kFrameEndRegister;
    case Form::Jump:
    case Form::JumpFar:
    case Form::JumpIf:
    case Form::CallAccessor:
    case Form::CallLocal:
    case Form::Exit:
    case Form::StoreImmediate:
    case Form::StoreRegister:
      break;
  }
  return false;
}

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program), code_(program.code), is_start_(code_.size()) {}

  Expected<void> validate() {
    CLEW_TRY(check_length());
    for (size_t at = 0; at < code_.size(); at += length(at))
      CLEW_TRY(check_instruction(at));
    for (size_t at = 0; at < code_.size(); at += length(at))
      CLEW_TRY(check_branch(at));
    return check_end();
  }

 private:
  [[nodiscard]] size_t length(size_t at) const { return code_[at].opcode == kLoad64Opcode ? 2 : 1; }

  [[nodiscard]] Expected<void> check_length() const {
    if (code_.empty()) return broken(0, Rule::Length, "a program without instructions");
    if (code_.size() > kInstructionsMax) {
      return broken(kInstructionsMax, Rule::Length,
                    fmt::format("at most {} instructions are allowed", kInstructionsMax));
    }
    if (program_.site_constant_count > kSiteConstantsMax) {
      return broken(0, Rule::Length,
                    fmt::format("{} site constants, at most {} are allowed",
                                program_.site_constant_count, kSiteConstantsMax));
    }
    return {};
  }

  Expected<void> check_instruction(size_t at) {
    is_start_[at] = true;
    const Instruction& i = code_[at];
    const OpcodeRow* row = find_row(i);
    if (!row) {
      return broken(at, Rule::Opcode,
                    fmt::format("opcode {:#04x} with source {}, offset {}, immediate {} is not an "
                                "instruction",
                                i.opcode, i.source(), i.offset, i.immediate));
    }
    CLEW_TRY(check_fields(at, row->form));
    if (row->form == Form::Load64) CLEW_TRY(check_load64(at));
    const bool unknown = row->form == Form::CallAccessor &&
                         static_cast<uint32_t>(i.immediate) >= abi::kAccessorCount;
    if (unknown) return broken(at, Rule::Accessor, fmt::format("no accessor {}", i.immediate));
    return {};
  }

  [[nodiscard]] Expected<void> check_fields(size_t at, Form form) const {
    const Instruction& i = code_[at];
    if (i.destination() >= kRegisterCount || i.source() >= kRegisterCount) {
      return broken(at, Rule::RegisterNumber, "registers are r0 to r10");
    }
    const UsedFields used = used_fields(form, i);
    if (!used.destination && i.destination() != 0) return reserved(at, "destination");
    if (!used.source && i.source() != 0) return reserved(at, "source");
    if (!used.offset && i.offset != 0) return reserved(at, "offset");
    if (!used.immediate && i.immediate != 0) return reserved(at, "immediate");
    if (writes_frame_register(form, i)) return broken(at, Rule::ReadOnlyFrame, "r10 is read-only");
    return {};
  }

  [[nodiscard]] Expected<void> check_load64(size_t at) const {
    if (at + 1 == code_.size()) return broken(at, Rule::Load64, "the second half is missing");
    const Instruction& second = code_[at + 1];
    if (second.opcode != 0) return broken(at + 1, Rule::Load64, "the second half has an opcode");
    if (second.registers != 0) return reserved(at + 1, "register");
    if (second.offset != 0) return reserved(at + 1, "offset");
    const auto kind = static_cast<Load64>(code_[at].source());
    if (kind == Load64::Immediate) return {};
    if (second.immediate != 0) return broken(at, Rule::Load64, "a window pointer of over 32 bits");
    const auto index = static_cast<uint32_t>(code_[at].immediate);
    if (kind == Load64::Context && index != 0) return reserved(at, "immediate");
    if (kind == Load64::SiteConstant && index >= program_.site_constant_count) {
      return broken(at, Rule::SiteConstant,
                    fmt::format("site constant {} of {}", index, program_.site_constant_count));
    }
    return {};
  }

  [[nodiscard]] Expected<void> check_branch(size_t at) const {
    const std::optional<int64_t> target = branch_target(code_, at);
    if (!target) return {};
    const bool inside = *target >= 0 && *target < static_cast<int64_t>(code_.size());
    if (inside && is_start_[static_cast<size_t>(*target)]) return {};
    return broken(at, Rule::BranchTarget,
                  fmt::format("a branch to {}, where no instruction starts", *target));
  }

  [[nodiscard]] Expected<void> check_end() const {
    size_t last = 0;
    for (size_t at = 0; at < code_.size(); at += length(at))
      last = at;
    const Form form = find_row(code_[last])->form;
    const bool leaves = form == Form::Exit || form == Form::Jump || form == Form::JumpFar;
    if (leaves) return {};
    return broken(last, Rule::FallOff, "the program continues after its last instruction");
  }

  [[nodiscard]] tl::unexpected<Error> reserved(size_t at, std::string_view field) const {
    return broken(at, Rule::ReservedField, fmt::format("the {} field must be 0", field));
  }

  [[nodiscard]] tl::unexpected<Error> broken(size_t at, Rule rule, std::string_view what) const {
    return violation(program_, at, rule, what);
  }

  const Program& program_;
  const std::vector<Instruction>& code_;
  std::vector<bool> is_start_;
};

}  // namespace

std::string_view rule_name(Rule rule) {
  switch (rule) {
    case Rule::Length:
      return "length";
    case Rule::Opcode:
      return "opcode";
    case Rule::RegisterNumber:
      return "register-number";
    case Rule::ReservedField:
      return "reserved-field";
    case Rule::ReadOnlyFrame:
      return "read-only-frame";
    case Rule::Load64:
      return "load64";
    case Rule::SiteConstant:
      return "site-constant";
    case Rule::BranchTarget:
      return "branch-target";
    case Rule::FallOff:
      return "fall-off";
    case Rule::Accessor:
      return "accessor";
    case Rule::Loop:
      return "loop";
    case Rule::LocalCall:
      return "local-call";
    case Rule::Recursion:
      return "recursion";
    case Rule::Unreachable:
      return "unreachable";
    case Rule::Uninitialised:
      return "uninitialised";
    case Rule::Context:
      return "context";
    case Rule::Frame:
      return "frame";
  }
  return "";
}

Expected<void> validate(const Program& program) {
  return Validator(program).validate();
}

}  // namespace clew::isa
