// SPDX-License-Identifier: Apache-2.0
#include "verify/stack_page.h"

namespace clew::verify {
namespace {

constexpr int64_t kPage = 4096;

bool is_register(const Operand& operand) {
  return operand.kind == Operand::Kind::Register;
}

}  // namespace

StackPage::Known StackPage::result(const Instruction& i) const {
  const Known& before = of(i.first.in);
  if (i.operation == Operation::AddressOf) {
    const bool of_stack = i.memory.base == Register::Rsp && !i.memory.index;
    return of_stack ? Known{Kind::Address, i.memory.displacement} : Known{};
  }
  if (i.operation == Operation::Move && i.size_bytes == 8 && is_register(i.second)) {
    return of(i.second.in);
  }
  const bool cuts = i.operation == Operation::And && i.has_immediate && i.immediate == kPage - 1;
  return cuts && before.kind == Kind::Address ? Known{Kind::PageOffset, before.offset} : Known{};
}

// The immediate is compared as a number without a sign: the branches are ja and jae.
std::optional<StackPage::Bound> StackPage::compared(const Instruction& i) const {
  const bool compares = i.operation == Operation::Compare && is_register(i.first) &&
                        i.has_immediate && i.immediate < uint64_t{kPage};
  if (!compares || of(i.first.in).kind != Kind::PageOffset) return std::nullopt;
  return Bound{of(i.first.in).offset, static_cast<int64_t>(i.immediate)};
}

void StackPage::apply(const Instruction& i, abi::RegisterSet written) {
  const Known first = is_register(i.first) ? result(i) : Known{};
  compared_ = compared(i);
  for (unsigned r = 0; r < known_.size(); ++r) {
    if (written.has(static_cast<Register>(r))) known_[r] = {};
  }
  if (is_register(i.first) && written.has(i.first.in)) {
    known_[static_cast<unsigned>(i.first.in)] = first;
  }
}

void StackPage::apply_not_taken(const Instruction& branch) {
  constexpr uint8_t kAboveOrEqual = 3;  // jae
  constexpr uint8_t kAbove = 7;         // ja
  if (branch.operation != Operation::JumpIf || !compared_) return;
  if (branch.condition == kAbove) bound_ = compared_;
  if (branch.condition == kAboveOrEqual) bound_ = Bound{compared_->offset, compared_->at_most - 1};
}

bool StackPage::holds(int64_t from, int64_t end, int64_t mapped_end) const {
  if (!bound_ || bound_->offset < 0 || bound_->offset >= mapped_end) return false;
  return bound_->offset <= from && end <= bound_->offset + kPage - bound_->at_most;
}

}  // namespace clew::verify
