// SPDX-License-Identifier: Apache-2.0
// Two passes: find the targets of branches, then print line by line.
#include "isa/print.h"

#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "isa/opcode.h"

namespace clew::isa {
namespace {

std::string memory_operand(unsigned base, int offset) {
  if (offset == 0) return fmt::format("[%r{}]", base);
  return fmt::format("[%r{}{:+}]", base, offset);
}

std::string source_operand(const Instruction& i) {
  return has_register_source(i) ? fmt::format("%r{}", i.source()) : fmt::format("{}", i.immediate);
}

class Printer {
 public:
  explicit Printer(const Program& program) : code_(program.code), is_target_(code_.size()) {}

  std::string print() {
    for (size_t at = 0; at < code_.size(); at += length(at))
      mark_target(at);
    for (size_t at = 0; at < code_.size(); at += length(at))
      print_line(at);
    return std::move(out_);
  }

 private:
  // The row of the instruction at `at`; null also for an LDDW whose second half is missing.
  [[nodiscard]] const OpcodeRow* row(size_t at) const {
    const OpcodeRow* found = find_row(code_[at]);
    const bool cut = found && found->form == Form::Load64 && at + 1 == code_.size();
    return cut ? nullptr : found;
  }

  [[nodiscard]] size_t length(size_t at) const {
    const OpcodeRow* found = row(at);
    return found && found->form == Form::Load64 ? 2 : 1;
  }

  [[nodiscard]] bool in_program(int64_t at) const {
    return at >= 0 && at < static_cast<int64_t>(code_.size());
  }

  void mark_target(size_t at) {
    const std::optional<int64_t> target = branch_target(code_, at);
    if (target && in_program(*target)) is_target_[static_cast<size_t>(*target)] = true;
  }

  [[nodiscard]] std::string target_operand(size_t at) const {
    const std::optional<int64_t> target = branch_target(code_, at);
    CLEW_ASSERT(target.has_value());
    if (in_program(*target)) return fmt::format("L{}", *target);
    return fmt::format("{:+}", *target - static_cast<int64_t>(at) - 1);
  }

  void print_line(size_t at) {
    if (is_target_[at]) fmt::format_to(std::back_inserter(out_), "L{}:\n", at);
    const OpcodeRow* found = row(at);
    if (found) {
      out_ += fmt::format("  {} {}", found->mnemonic, operands(*found, at));
      out_.erase(out_.find_last_not_of(' ') + 1);
    } else {
      const Instruction& i = code_[at];
      out_ +=
          fmt::format("  # not an instruction: {:02x} {:02x} {:04x} {:08x}", i.opcode, i.registers,
                      static_cast<uint16_t>(i.offset), static_cast<uint32_t>(i.immediate));
    }
    out_ += '\n';
  }

  [[nodiscard]] std::string operands(const OpcodeRow& found, size_t at) const {
    const Instruction& i = code_[at];
    const unsigned dst = i.destination();
    const unsigned src = i.source();
    switch (found.form) {
      case Form::Binary:
        return fmt::format("%r{}, {}", dst, source_operand(i));
      case Form::MoveSigned:
        return fmt::format("%r{}, %r{}", dst, src);
      case Form::Unary:
      case Form::Swap:
        return fmt::format("%r{}", dst);
      case Form::Jump:
      case Form::JumpFar:
      case Form::CallLocal:
        return target_operand(at);
      case Form::JumpIf:
        return fmt::format("%r{}, {}, {}", dst, source_operand(i), target_operand(at));
      case Form::CallAccessor:
        return accessor_operand(i);
      case Form::Exit:
        return {};
      case Form::Load:
        return fmt::format("%r{}, {}", dst, memory_operand(src, i.offset));
      case Form::StoreImmediate:
        return fmt::format("{}, {}", memory_operand(dst, i.offset), i.immediate);
      case Form::StoreRegister:
      case Form::Atomic:
        return fmt::format("{}, %r{}", memory_operand(dst, i.offset), src);
      case Form::Load64:
        return fmt::format("%r{}, {:#x}", dst, constant(at));
    }
    return {};
  }

  [[nodiscard]] static std::string accessor_operand(const Instruction& i) {
    const auto number = static_cast<uint32_t>(i.immediate);
    if (number >= abi::kAccessorCount) return fmt::format("{}", i.immediate);
    return std::string(accessor_name(static_cast<abi::Accessor>(number)));
  }

  [[nodiscard]] uint64_t constant(size_t at) const {
    const uint64_t high = static_cast<uint32_t>(code_[at + 1].immediate);
    return high << 32 | static_cast<uint32_t>(code_[at].immediate);
  }

  const std::vector<Instruction>& code_;
  std::vector<bool> is_target_;
  std::string out_;
};

}  // namespace

std::string print(const Program& program) {
  return Printer(program).print();
}

}  // namespace clew::isa
