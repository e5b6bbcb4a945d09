// SPDX-License-Identifier: Apache-2.0
#include "code/unexplained.h"

#include <algorithm>

#include "code/exits.h"

namespace clew::code {

bool UnexplainedJumps::may_lead_to(uint64_t address) {
  const uint32_t function = code_.owner_of(*code_.range_at(address));
  if (function != function_) {
    function_ = function;
    jumps_ = unexplained_jumps(code_, function);
    depths_.reset();
  }
  if (jumps_.empty()) return false;
  if (!depths_) depths_.emplace(code_, function);
  const std::optional<int64_t> there = depths_->at(address);
  return std::any_of(jumps_.begin(), jumps_.end(), [&](uint64_t jump) {
    const std::optional<int64_t> depth = depths_->at(jump);
    return !depth || !there || *depth == *there;
  });
}

}  // namespace clew::code
